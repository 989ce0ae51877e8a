/* SPDX-License-Identifier: Apache-2.0 */
#include "copying.h"

#include <unistd.h>

#include "../../format/record.h"
#include "../../format/writer.h"
#include "../base/ending.h"
#include "../base/outfile.h"
#include "../base/plain_file.h"
#include "symbols.h"
#include "running.h"

struct copy {
	struct gmt_writer *writer;
	uint64_t events;
	int err;
};

static int copy_def(void *ctx, const struct gmt_def *d)
{
	struct copy *c = ctx;

	c->err = gmt_writer_def(c->writer, d);
	return c->err;
}

static int copy_event(void *ctx, const struct gmt_event *e)
{
	struct copy *c = ctx;

	c->events++;
	c->err = gmt_writer_event(c->writer, e);
	return c->err;
}

/* Adds the fact that marks the file as a copy. */
static int add_mark(struct gmt_writer *w, const char *why)
{
	struct {
		struct gmt_def_meta head;
		char text[32]; /* key and value, without terminating zeros */
	} __attribute__((packed)) payload = { .head = { strlen(COPYING_META) } };
	int len = snprintf(payload.text, sizeof(payload.text), COPYING_META "%s", why);
	struct gmt_def d = { GMT_DEF_META, 0, sizeof(payload.head) + (uint32_t)len, &payload };

	return gmt_writer_def(w, &d);
}

static int add_name(struct gmt_writer *w, uint32_t id, uint64_t address, const char *name)
{
	size_t len = strlen(name);
	struct gmt_def_function *payload = need_new(sizeof(*payload) + len);
	struct gmt_def d = { GMT_DEF_FUNCTION, id, (uint32_t)(sizeof(*payload) + len), payload };
	int rc;

	payload->address = address;
	memcpy(payload + 1, name, len);
	rc = gmt_writer_def(w, &d);
	free(payload);
	return rc;
}

/* Adds the names of native functions, which a killed program had no time to write. */
static int add_names(const struct defs *defs, struct gmt_writer *w)
{
	const struct defs_node *nodes = defs->nodes.items;
	struct symbols *symbols = symbols_new(defs);
	struct map seen = { 0 };
	uint32_t count = 0;
	int rc = 0;

	for (size_t i = 0; i < defs->nodes.count && !rc; i++) {
		uint64_t address = nodes[i].value;
		const char *name;

		if (nodes[i].frame != GMT_FRAME_NATIVE || defs_function(defs, address).len ||
		    map_number(&seen, address, count) < count)
			continue;
		count++;
		name = symbols_find(symbols, address, UINT64_MAX)->raw;
		if (*name)
			rc = add_name(w, defs->functions.count + count, address, name);
	}
	map_free(&seen);
	symbols_free(symbols);
	return rc;
}

static int copy_all(const struct recording *r, int fd, const char *why, struct copy *c)
{
	static const struct gmt_tool tool = { .def = copy_def, .event = copy_event };
	struct gmt_writer_info info = { r->info->pid, r->info->realtime_minus_monotonic_ns, 0,
					r->info->origin.start };
	size_t bytes = (gmt_writer_workspace(0) + 63) & ~(size_t)63;
	void *workspace = aligned_alloc(64, bytes);
	int rc;

	if (!workspace)
		return -GMT_ERR_NO_MEMORY;
	c->writer = gmt_writer_open(workspace, bytes, fd, &info, &rc);
	if (c->writer) {
		rc = add_mark(c->writer, why);
		if (!rc)
			rc = gmt_reader_run(r->reader, 0, UINT64_MAX, &tool, c);
		if (!rc && !r->defs.symbols.count)
			rc = add_names(&r->defs, c->writer);
		if (!rc)
			rc = gmt_writer_finish(c->writer);
		if (!rc && fsync(fd) && errno != EINVAL)
			rc = -GMT_ERR_SYS;
	}
	free(workspace);
	return rc;
}

static int write_copy(const struct recording *r, const char *path, const char *mark,
		      uint64_t *events)
{
	struct copy c = { 0 };
	struct outfile file;
	int rc = outfile_begin(&file, path), why;

	if (rc)
		return rc;
	rc = copy_all(r, fileno(file.f), mark, &c);
	why = errno;
	if (!rc && outfile_commit(&file))
		return EXIT_UNREADABLE;
	*events = c.events;
	if (!rc)
		return 0;
	outfile_drop(&file);
	if (rc == -GMT_ERR_UNKNOWN_KIND)
		return recording_refused(r->path, rc);
	return say_unreadable("%s cannot be written: %s", path,
			      rc == -GMT_ERR_SYS ? strerror(why) : gmt_strerror(rc));
}

/* Whether path is the recording or the live file beside it. r->path can be either of the two. */
static bool is_source(const struct recording *r, const char *path)
{
	static const char live[] = ".live";
	char other[PATH_MAX];
	size_t len = strlen(r->path);

	if (ending_is(r->path, live))
		snprintf(other, sizeof(other), "%.*s", (int)(len - strlen(live)), r->path);
	else
		snprintf(other, sizeof(other), "%s%s", r->path, live);
	return file_same(r->path, path) || file_same(other, path) || !strcmp(other, path);
}

int copying_write(const struct recording *r, const char *path, const char *why, uint64_t *events)
{
	int rc;

	if (is_source(r, path))
		return say_usage("the output must be another file than %s", r->path);
	rc = outfile_check(path);
	if (!rc)
		rc = running_refuse(path);
	return rc ? rc : write_copy(r, path, why, events);
}

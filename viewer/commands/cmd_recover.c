/* SPDX-License-Identifier: Apache-2.0 */
/* recover: what can be read of a recording, and of the live file beside it, as a new whole file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../format/writer.h"
#include "../base/human.h"
#include "../base/outfile.h"
#include "../base/say.h"
#include "../documents/document.h"
#include "../recording/recording.h"
#include "command.h"

struct recover_options {
	const char *file, *output;
};

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

/* Says in the copy itself that it is one. */
static int add_mark(struct gmt_writer *w)
{
	struct {
		struct gmt_def_meta head;
		char key[9], value[3]; /* no zero at the ends */
	} __attribute__((packed)) payload = { .head = { sizeof(payload.key) } };
	struct gmt_def d = { GMT_DEF_META, 0, sizeof(payload), &payload };

	memcpy(payload.key, "recovered", sizeof(payload.key));
	memcpy(payload.value, "yes", sizeof(payload.value));
	return gmt_writer_def(w, &d);
}

static int copy_all(const struct recording *r, int fd, struct copy *c)
{
	static const struct gmt_tool tool = { .def = copy_def, .event = copy_event };
	struct gmt_writer_info info = { r->info->pid, r->info->realtime_minus_monotonic_ns, 0 };
	size_t bytes = (gmt_writer_workspace() + 63) & ~(size_t)63;
	void *workspace = aligned_alloc(64, bytes);
	int rc;

	if (!workspace)
		return -GMT_ERR_NO_MEMORY;
	c->writer = gmt_writer_open(workspace, bytes, fd, &info, &rc);
	if (c->writer) {
		rc = add_mark(c->writer);
		if (!rc)
			rc = gmt_reader_run(r->reader, 0, UINT64_MAX, &tool, c);
		if (!rc)
			rc = gmt_writer_finish(c->writer);
		if (!rc && fsync(fd) && errno != EINVAL)
			rc = -GMT_ERR_SYS;
	}
	free(workspace);
	return rc;
}

static void print(struct emit *out, const struct recording *r, const struct copy *c,
		  const struct recover_options *o)
{
	const struct row_recover row = { .file = o->output,
					 .events = c->events,
					 .live_events = r->info->live_events,
					 .damaged_blocks = r->info->damaged_blocks,
					 .skipped_bytes = r->info->skipped_bytes };
	char n[HUMAN_MAX];

	emit_document(out, recover, &row);
	emit_line(out, "%s: %s events, %" PRIu64 " of them from the live file", o->output,
		  human_count(n, c->events), r->info->live_events);
	if (r->info->damaged_blocks || r->info->skipped_bytes)
		emit_line(out,
			  "lost: damaged blocks: %" PRIu64 ", bytes that belong to none: %" PRIu64,
			  r->info->damaged_blocks, r->info->skipped_bytes);
}

static int write_copy(struct emit *out, const struct recording *r, const struct recover_options *o)
{
	struct copy c = { 0 };
	struct outfile file;
	int rc = outfile_begin(&file, o->output), why;

	if (rc)
		return rc;
	rc = copy_all(r, fileno(file.f), &c);
	why = errno;
	if (!rc && outfile_commit(&file))
		return EXIT_UNREADABLE;
	if (rc) {
		outfile_drop(&file);
		return say_error(EXIT_UNREADABLE, "%s cannot be written: %s", o->output,
				 rc == -GMT_ERR_SYS ? strerror(why) : gmt_strerror(rc));
	}
	print(out, r, &c, o);
	return EXIT_OK;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int run_recover(const void *options, struct emit *out)
{
	const struct recover_options *o = options;
	struct recording r;
	int rc;

	if (!o->output)
		return say_error(EXIT_USAGE,
				 "-o OUT is missing: where to write the recovered recording");
	rc = recording_open(&r, o->file);
	if (rc)
		return rc;
	if (same_file(o->file, o->output))
		rc = say_error(EXIT_USAGE, "the output must be another file than %s", o->file);
	else
		rc = outfile_check(o->output);
	if (!rc)
		rc = write_copy(out, &r, o);
	recording_close(&r);
	return rc;
}

static const struct option_row options[] = {
	OPTION(struct recover_options, output, "output", 'o', TEXT, "OUT",
	       "file to write (needed)"),
	{ 0 },
};

const struct command command_recover = {
	.name = "recover",
	.summary = "make a whole recording from a broken or interrupted one",
	.text = "Copies every event that can be read, from the recording and from the live file "
		"beside it "
		"(FILE.live), into a new file. All other commands read broken and interrupted "
		"recordings "
		"as they are; recover is for keeping or sending them as one file.",
	.options = options,
	.run = run_recover,
	COMMAND_FILE(struct recover_options, OPERAND_ONE, COMMAND_ONE),
};

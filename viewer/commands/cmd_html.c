/* SPDX-License-Identifier: Apache-2.0 */
/* html: one page that explains a run, and needs nothing but a browser. */
#include <stdlib.h>

#include "../base/need.h"
#include "../base/outfile.h"
#include "../page/page.h"
#include "../page/page_write.h"
#include "../ask/command.h"

#define TRACKS 64

struct source {
	struct recording recording;
	struct timeline timeline;
	bool open;
	int devices[MODEL_DEVICES];
	int count;
};

struct job {
	const struct html_options *options;
	struct source *sources;
	size_t count, opened;
	struct redact redact;
};

/* The devices of a recording that had memory. */
static int find_devices(struct source *s)
{
	int rc = timeline_open_any(&s->timeline, &s->recording);

	s->open = !rc;
	for (int i = 0; !rc && i < MODEL_DEVICES; i++) {
		const struct model_device *d = &s->timeline.model.devices[i];

		if (model_has_memory(d))
			s->devices[s->count++] = i;
	}
	return rc;
}

static void source_close(struct source *s)
{
	if (s->open)
		timeline_close(&s->timeline);
	recording_close(&s->recording);
}

static void write_track(struct page *p, struct source *s, int device)
{
	if (device != s->timeline.device)
		timeline_look(&s->timeline, device);
	track_write(p, &s->timeline, TRACK_WHOLE);
}

/* A track for each device of each recording. */
static void write_tracks(struct page *p, void *ctx)
{
	const struct job *j = ctx;
	struct source *sources = j->sources;

	for (size_t i = 0; i < j->count; i++)
		p->tracks += sources[i].count;
	p->tracks = p->tracks ? p->tracks : 1;
	emit_array(p->first, "tracks");
	emit_array(p->out, "tracks");
	for (size_t i = 0; i < j->count; i++)
		for (int d = 0; d < sources[i].count; d++)
			write_track(p, &sources[i], sources[i].devices[d]);
	emit_end(p->first);
	emit_end(p->out);
}

static int write_html(struct emit *out, struct outfile *file, const struct page_text *text)
{
	char size[HUMAN_MAX];
	struct row_html row = { .file = file->path };
	int rc = page_commit(file, text, &row.bytes);

	if (rc)
		return rc;
	emit_document(out, html, &row);
	emit_line(out, "%s: %s, opens in any browser", file->path, human_bytes(size, row.bytes));
	return EXIT_OK;
}

static int open_one(struct job *j, struct source *s, const char *path)
{
	int rc = recording_open(&s->recording, path);

	if (rc)
		return rc;
	j->opened++;
	if (j->options->redact)
		redact_recording(&j->redact, &s->recording);
	return find_devices(s);
}

static int open_all(struct job *j)
{
	char *const *files = j->options->files;
	int rc = 0, devices = 0;

	for (size_t i = 0; i < j->count && !rc; i++) {
		rc = open_one(j, &j->sources[i], files[i]);
		devices += j->sources[i].count;
	}
	if (!rc && !devices)
		return say_error(EXIT_USAGE, "%s: the program used no device memory", files[0]);
	if (!rc && devices > TRACKS)
		return say_error(EXIT_USAGE, "%d devices in all; a page shows at most %d", devices,
				 TRACKS);
	return rc;
}

static int make_html(struct emit *out, struct job *j, struct outfile *file)
{
	const struct html_options *o = j->options;
	struct page_text text = { .title = o->redact ? "a recording" : owners_base(o->files[0]) };
	int rc = open_all(j);

	if (rc) {
		outfile_drop(file);
	} else {
		page_make(&text, o->redact ? &j->redact : NULL, write_tracks, j);
		rc = write_html(out, file, &text);
	}
	for (size_t i = 0; i < j->opened; i++)
		source_close(&j->sources[i]);
	redact_free(&j->redact);
	page_text_free(&text);
	return rc;
}

int run_html(const struct html_options *o, struct emit *out)
{
	struct job j = { .options = o };
	struct outfile file;
	int rc = outfile_open(&file, o->output, "<!doctype html>", "a page");

	if (rc)
		return rc;
	j.count = need_count(o->files);
	j.sources = need_new(j.count * sizeof(*j.sources));
	rc = make_html(out, &j, &file);
	free(j.sources);
	return rc;
}

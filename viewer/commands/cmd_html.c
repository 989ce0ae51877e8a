/* SPDX-License-Identifier: Apache-2.0 */
/* html: one page that explains a run, and needs nothing but a browser. */
#include "../base/outfile.h"
#include "../page/page.h"
#include "../page/page_write.h"
#include "../ask/command.h"

/* The open recording. Ranks are read one after the other, so that only one is in memory. */
struct source {
	struct recording recording;
	struct timeline timeline;
	int devices[MODEL_DEVICES];
	size_t number, count; /* number of the file, from 1, 0 = none; count of its devices */
};

struct job {
	const struct html_options *options;
	struct source source;
	size_t files, tracks;
	struct redact redact;
	int rc;
};

static void close_source(struct job *j)
{
	if (!j->source.number)
		return;
	timeline_close(&j->source.timeline);
	recording_close(&j->source.recording);
	j->source = (struct source){ 0 };
}

static int open_source(struct job *j, size_t number)
{
	struct source *s = &j->source;
	int rc;

	if (s->number == number)
		return 0;
	close_source(j);
	rc = recording_open(&s->recording, j->options->files[number - 1]);
	if (rc)
		return rc;
	if (j->options->redact)
		redact_recording(&j->redact, &s->recording);
	rc = timeline_open_any(&s->timeline, &s->recording);
	if (rc) {
		recording_close(&s->recording);
		return rc;
	}
	s->number = number;
	for (int i = 0; i < MODEL_DEVICES; i++) /* those that had memory */
		if (model_has_memory(&s->timeline.model.devices[i]))
			s->devices[s->count++] = i;
	return 0;
}

static int write_source(struct page *p, struct job *j, size_t number)
{
	struct source *s = &j->source;
	struct timeline *t = &s->timeline;
	int rc = open_source(j, number);

	if (rc)
		return rc;
	if (p->written + s->count > PAGE_TRACKS)
		return say_usage("more than %d devices; a page shows at most so many", PAGE_TRACKS);
	if (number == 1) /* the other ranks most likely have as many */
		p->tracks = s->count ? j->files * s->count : 1;
	for (size_t i = 0; i < s->count; i++) {
		if (s->devices[i] != t->device)
			timeline_look(t, s->devices[i]);
		track_write(p, t, TRACK_WHOLE);
	}
	return 0;
}

/* A track for each device of each recording. */
static void write_tracks(struct page *p, void *ctx)
{
	struct job *j = ctx;

	emit_array(p->first, "tracks");
	emit_array(p->out, "tracks");
	for (size_t i = 1; i <= j->files && !j->rc; i++) {
		say_progress("recordings", i - 1, j->files);
		j->rc = write_source(p, j, i);
	}
	emit_end(p->first);
	emit_end(p->out);
	page_strays_emit(p);
	j->tracks = p->written;
}

/* The first recording's name, and how many more there are. */
static const char *page_title(const struct job *j, char *buf, size_t room)
{
	const struct html_options *o = j->options;
	size_t more = j->files - 1;

	if (o->redact)
		return more ? "recordings" : "a recording";
	snprintf(buf, room, "%.*s", NAME_MAX, owners_base(o->files[0]));
	if (more)
		text_add(buf, room, " and %zu more", more);
	return buf;
}

static int make_html(struct job *j, struct outfile *file, uint64_t *bytes)
{
	const struct html_options *o = j->options;
	char title[NAME_MAX + 32];
	struct page_text text = { .title = page_title(j, title, sizeof(title)) };

	page_make(&text, o->redact ? &j->redact : NULL, write_tracks, j);
	say_progress_end();
	if (!j->rc && !j->tracks)
		j->rc = say_usage("%s: the program used no device memory", o->files[0]);
	if (j->rc)
		outfile_drop(file);
	else
		j->rc = page_commit(file, &text, bytes);
	close_source(j);
	redact_free(&j->redact);
	page_text_free(&text);
	return j->rc;
}

int html_page(const struct html_options *o, uint64_t *bytes)
{
	struct job j = { .options = o, .files = need_count(o->files) };
	struct outfile file;
	int rc = outfile_open(&file, o->output, OUTFILE_PAGE);

	return rc ? rc : make_html(&j, &file, bytes);
}

int run_html(const struct html_options *o, struct emit *out)
{
	struct row_html row = { .file = o->output };
	int rc = html_page(o, &row.bytes);

	if (rc)
		return rc;
	emit_document(out, html, &row);
	emit_line(out, "%s: %s, opens in any browser", row.file, B(row.bytes));
	return EXIT_OK;
}

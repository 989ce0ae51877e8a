/* SPDX-License-Identifier: Apache-2.0 */
#include "following.h"

#include "../../format/record.h"
#include "../base/now.h"
#include "../recording/running.h"
#include "moments.h"

#define SLACK 2000000000u /* ns; reading goes on so long before the last event, for late ones */

/* Whether the definition is new or changed. A fact has no id and is known by its hash. */
static bool note_def(struct following *f, const struct gmt_def *d)
{
	uint32_t hash = (uint32_t)map_hash(d->len, d->payload, d->len);
	uint32_t id = d->kind == GMT_DEF_META ? hash : d->id;
	bool fresh;
	uint32_t *at = map_put(&f->defs, (uint64_t)d->kind << 32 | id, &fresh);

	if (!fresh && *at == hash)
		return false;
	*at = hash;
	return true;
}

static int first_def(void *ctx, const struct gmt_def *d)
{
	note_def(ctx, d);
	return 0;
}

static int next_def(void *ctx, const struct gmt_def *d)
{
	struct following *f = ctx;

	if (!note_def(f, d))
		return 0;
	if (d->kind == GMT_DEF_MODULE || d->kind == GMT_DEF_SYMBOL)
		f->new_names = true;
	return defs_add(&f->recording.defs, d);
}

static void note_gap(struct following *f, uint64_t first, uint64_t last)
{
	if (f->gap_count == FOLLOWING_GAPS)
		memmove(f->gaps, f->gaps + 1, --f->gap_count * sizeof(*f->gaps));
	f->gaps[f->gap_count++] = (struct gap){ first, last };
}

static int follow_event(void *ctx, const struct gmt_event *e)
{
	struct following *f = ctx;

	if (e->time_ns >= f->wait_ns)
		f->waiting = true;
	if (e->seq <= f->seq &&
	    ANY_OF(x, f->gaps, f->gap_count, e->seq >= x->first && e->seq <= x->last))
		f->stale = true;
	if (f->waiting || e->seq <= f->seq)
		return 0;
	if (e->seq > f->seq + 1)
		note_gap(f, f->seq + 1, e->seq - 1);
	model_event(&f->timeline.model, e);
	f->seq = e->seq;
	f->ns = e->time_ns > f->ns ? e->time_ns : f->ns;
	return 0;
}

static void begin_look(struct following *f)
{
	uint64_t now = now_ns();

	f->waiting = false;
	f->wait_ns = UINT64_MAX;
	if (!f->once && running_lives(f->recording.info->pid) && f->recording.info->last_ns <= now)
		f->wait_ns = now - FOLLOWING_SETTLED;
}

static int read_whole(struct following *f)
{
	defs_read(f->recording.reader, first_def, f);
	begin_look(f);
	timeline_begin(&f->timeline, &f->recording);
	f->open = true;
	f->whole_reads++;
	return recording_run(&f->recording, follow_event, f);
}

static int open_anew(struct following *f)
{
	uint64_t before = f->whole_reads;
	int rc;

	following_close(f);
	f->gap_count = 0;
	f->seq = f->ns = 0;
	f->stale = f->new_names = false;
	f->whole_reads = before;
	rc = recording_open(&f->recording, f->path);
	return rc ? rc : read_whole(f);
}

/* Reads on from the last event. False: the whole file must be read again. */
static bool read_on(struct following *f)
{
	static const struct gmt_tool tool = { .def = next_def, .event = follow_event };
	uint64_t from = f->ns > SLACK ? f->ns - SLACK : 0;
	struct gmt_reader *r;
	int err;

	r = gmt_reader_open(f->path, &err);
	if (!r)
		return false;
	gmt_reader_close(f->recording.reader);
	f->recording.reader = r;
	f->recording.info = gmt_reader_info(r);
	f->recording.file_bytes = f->recording.info->file_bytes;
	begin_look(f);
	if (gmt_reader_run(r, from, UINT64_MAX, &tool, f) || f->stale)
		return false;
	if (f->new_names)
		timeline_rename(&f->timeline);
	f->new_names = false;
	return true;
}

int following_look(struct following *f)
{
	int rc = 0, device;

	if (!f->open || (!f->timeline.model.ended && !read_on(f)))
		rc = open_anew(f);
	if (!rc)
		rc = moments_device(&f->recording, &f->timeline.model, f->device, &device);
	if (rc)
		following_close(f);
	else
		timeline_look(&f->timeline, device);
	return rc;
}

void following_close(struct following *f)
{
	if (f->open) {
		timeline_close(&f->timeline);
		recording_close(&f->recording);
	}
	map_free(&f->defs);
	f->defs = (struct map){ 0 };
	f->open = false;
}

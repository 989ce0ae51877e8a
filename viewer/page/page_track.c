/* SPDX-License-Identifier: Apache-2.0 */
/* Collects all data of a track in one pass over its recording, then writes it. */
#include "page.h"

enum { CURVE_GROUPS = 24000, CURVE_MOST = 8000, CURVE_FIRST = 500, LIFE_ROWS = 60000 };

/* Gives the key moments before event `seq` the figures from before it. */
static void note_keys(struct track *t, uint64_t seq)
{
	struct page_lives *l = &t->blocks;

	for (; l->key_next < l->key_count && l->key_order[l->key_next]->seq < seq; l->key_next++)
		l->key_order[l->key_next]->at = t->curve.now;
}

static void change(void *ctx, const struct series_change *c)
{
	struct track *t = ctx;

	note_keys(t, c->seq);
	t->curve.now.figures[c->category] += (uint64_t)c->bytes;
	t->curve.now.bytes += (uint64_t)c->bytes;
	if (t->parts == TRACK_WHOLE)
		lives_change(&t->blocks, c);
}

static void event(void *ctx, const struct series_event *e)
{
	struct track *t = ctx;
	const struct series_device *d = &e->devices[t->timeline->device];
	struct point *now = &t->curve.now;
	const struct point *last =
		t->curve.count ? &t->curve.groups[t->curve.count - 1].last : NULL;

	note_keys(t, e->seq);
	now->figures[POINT_RESERVED] = d->reserved;
	now->figures[POINT_USED] = d->driver + d->context;
	if (last && !memcmp(last->figures, now->figures, sizeof(now->figures)))
		return;
	now->seq = e->seq;
	now->time_ns = e->time_ns;
	page_curve_add(&t->curve);
}

static void add_key(struct page_lives *l, const char *name, size_t number, uint64_t seq,
		    uint64_t ns)
{
	/* leaves room for the summary's findings and for out of memory */
	if (l->key_count < LIVES_KEYS - SUMMARY_MOST - 4)
		l->keys[l->key_count++] = (struct key_moment){
			.seq = seq, .time_ns = ns, .name = name, .number = number
		};
}

/* Makes the highest moment of each step a key moment; of many steps the first ones, the last, and
 * the one with the peak. */
static void add_steps(struct page_lives *l, const struct steps *steps, const struct extent *peak)
{
	size_t last = steps->count - 1 - steps->tail;

	for (size_t i = 1; i <= last; i++) {
		const struct extent *x = &steps->items[i].extent;

		if (i <= 8 || i == last || x->peak_seq == peak->peak_seq)
			add_key(l, "step", i, x->peak_seq, x->peak_ns);
	}
}

static void choose_keys(struct track *t)
{
	const struct model *m = &t->timeline->model;
	const struct peak *peak = &model_curve(&m->devices[t->timeline->device])->peak;
	size_t step;

	add_key(&t->blocks, "peak", 0, peak->event.seq, peak->event.time_ns);
	add_key(&t->blocks, "end", 0, m->last_seq, m->last_ns);
	add_steps(&t->blocks, &t->timeline->steps, timeline_peak(t->timeline, &step));
}

static void run(struct track *t)
{
	const struct series_sink sink = { .change = change, .event = event, .ctx = t };
	size_t groups;

	t->blocks.device = t->timeline->device;
	t->blocks.model = &t->timeline->model;
	t->blocks.limit = page_room(t->page, LIFE_ROWS, 100);
	groups = page_room(t->page, CURVE_GROUPS, 100) & ~(size_t)1;
	t->curve.size = 1;
	t->curve.limit = groups < CURVE_MOST ? groups : CURVE_MOST;
	choose_keys(t);
	if (t->parts == TRACK_WHOLE)
		page_summary_find(t);
	marks_find(t);
	page_lives_choose(&t->blocks, t->parts == TRACK_WHOLE);
	timeline_series(t->timeline, &sink, NULL, 0);
	note_keys(t, UINT64_MAX);
}

/* Writes the curve of the first picture with few groups. Returns their number. */
static size_t emit_curve(struct track *t)
{
	struct page_curve coarse =
		page_curve_coarse(&t->curve, page_room(t->page, CURVE_FIRST, 60));
	size_t groups = coarse.count;

	page_curve_emit(&coarse, t->timeline->model.first_ns, t->page->first);
	page_curve_free(&coarse);
	return groups;
}

static void emit_moments(struct track *t)
{
	struct emit *out = t->page->first;

	emit_array(out, "moments");
	FOR_EACH (const struct key_moment, k, t->blocks.keys, t->blocks.key_count) {
		emit_object(out, NULL);
		emit_text(out, "name", k->name);
		emit_number(out, "number", k->number);
		emit_number(out, "seq", k->seq);
		emit_number(out, "time_ns", k->time_ns);
		page_curve_point(&k->at, out, "figures");
		emit_end(out);
	}
	emit_end(out);
}

/* Parts that need the blocks. */
static void emit_blocks(struct track *t)
{
	page_lives_emit(t);
	segments_emit(t);
	page_account_emit(t);
	page_leaks_emit(t);
	page_oom_emit(t);
}

static void emit_track(struct track *t)
{
	struct emit *out = t->page->out;
	size_t groups;

	emit_object(t->page->first, NULL);
	page_facts_emit(t);
	groups = emit_curve(t);
	emit_moments(t);
	if (t->parts == TRACK_WHOLE)
		page_summary_emit(t);
	emit_end(t->page->first);
	emit_object(out, NULL);
	if (groups < t->curve.count)
		page_curve_emit(&t->curve, t->timeline->model.first_ns, out);
	page_curve_free(&t->curve);
	page_steps_emit(t);
	marks_emit(t);
	if (t->parts == TRACK_WHOLE)
		emit_blocks(t);
	emit_end(out);
}

void track_write(struct page *p, struct timeline *timeline, enum track_parts parts)
{
	struct track t = {
		.page = p, .parts = parts, .recording = timeline->recording, .timeline = timeline
	};

	if (p->written < PAGE_TRACKS)
		p->peaks[p->written++] =
			model_curve(&timeline->model.devices[timeline->device])->peak.bytes;
	run(&t);
	emit_track(&t);
	page_lives_free(&t.blocks);
	summary_free(&t.summary);
	free(t.marks);
	map_free(&t.stacks);
}

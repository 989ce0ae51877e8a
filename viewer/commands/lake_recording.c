/* SPDX-License-Identifier: Apache-2.0 */
#include "lake.h"

#include "../answers/holders.h"
#include "../export/export_events.h"
#include "../oom/oom.h"

/* Rows for steps and for failed allocations. */

static void lake_step_rows(struct lake_rows *x)
{
	const struct steps *steps = &x->timeline->steps;
	size_t count = steps_number(steps);
	struct instant at;

	for (size_t i = 1; i <= count; i++) {
		const struct step *s = &steps->items[i];

		instant_of_peak(&at, x->timeline, &s->extent);
		put_int(x->w, steps, step, i);
		put_int(x->w, steps, begin_ns, s->extent.first_ns);
		put_int(x->w, steps, end_ns, s->extent.last_ns);
		put_int(x->w, steps, begin_bytes, s->extent.begin_bytes);
		put_int(x->w, steps, peak_bytes, s->extent.peak);
		put_int(x->w, steps, peak_ns, s->extent.peak_ns);
		put_text(x->w, steps, peak_phase, phases[at.phase].name);
		put_int(x->w, steps, end_bytes, s->extent.end_bytes);
		put_int(x->w, steps, growth_bytes, s->extent.growth);
		put_flag(x->w, steps, ended, s->ended);
		lake_row(x->w, LAKE_steps);
	}
}

/* Cause of the last failed allocation, as `oom` reports it. */
static void cause_cells(struct lake_rows *x, const struct refusal *last)
{
	struct oom o = { 0 };
	struct oom_answer a;

	oom_look(&o, x->timeline, last);
	oom_answer(&a, &o);
	put_text(x->w, refusals, cause, oom_cause_name(a.cause));
	put_text(x->w, refusals, text, a.why);
	put_int(x->w, refusals, asked_bytes, o.asked);
	if (o.room.sampled)
		put_int(x->w, refusals, free_bytes, o.room.free);
	put_int(x->w, refusals, cached_bytes, o.room.cached);
	put_int(x->w, refusals, largest_hole_bytes, o.room.hole);
	if (a.count) {
		put_text(x->w, refusals, remedy, a.remedies[0].what);
		put_int(x->w, refusals, remedy_bytes, a.remedies[0].saves);
	}
	oom_close(&o);
}

static void refusal_row(struct lake_rows *x, const struct lives_mark *e, uint64_t nth,
			const struct refusal *last)
{
	struct timeline *t = x->timeline;
	const struct block b = {
		.device = e->device, .seq = e->seq, .stack = e->stack, .name = e->name
	};
	struct owner owner = owners_find(&t->owners, &b);
	size_t item = steps_at(&t->steps, e->seq);
	const struct span *span = steps_span(&t->steps, &t->model.spans, e->seq);
	bool tail = t->steps.tail && item == t->steps.count - 1;

	put_int(x->w, refusals, nth, nth);
	put_int(x->w, refusals, device, e->device);
	put_int(x->w, refusals, time_ns, e->ns);
	if (x->recording->info->realtime_minus_monotonic_ns)
		put_int(x->w, refusals, time,
			((int64_t)e->ns + x->recording->info->realtime_minus_monotonic_ns) / 1000);
	put_int(x->w, refusals, step, tail ? 0 : item);
	if (span)
		put_text(x->w, refusals, phase, phases[span->phase].name);
	put_int(x->w, refusals, block_bytes, e->size);
	put_owner(x->w, refusals, &owner, lake_module(x, e->stack));
	if (e->seq == last->event.seq)
		cause_cells(x, last);
	lake_row(x->w, LAKE_refusals);
}

static void lake_refusal_rows(struct lake_rows *x)
{
	struct timeline *t = x->timeline;
	const struct row_store *marks = &t->model.lives.marks;
	bool reported = refusals_reported(&t->model.lives);
	struct refusal last;
	uint64_t nth = 0;
	int device = -1;

	if (!x->refusals || !refusals_find(&last, &t->model.lives, 0))
		return;
	x->out_of_memory = !last.later_allocs;
	for (uint32_t i = 0; i < marks->count; i++) {
		const struct lives_mark *e = rows_at(marks, i);

		if (!refusals_is_one(e, reported) || e->device < 0)
			continue;
		if (e->device != device) {
			device = e->device;
			timeline_look(t, device);
		}
		refusal_row(x, e, ++nth, &last);
	}
}

/* The large tables: every block, every event, as the exports have them. */

struct large {
	struct lake_writer *w;
	struct export_events events;
};

static void put_cell(struct lake_writer *w, enum lake_table_id t, unsigned column,
		     const struct export_cell *cell)
{
	if (cell->null)
		return;
	if (lake_tables[t].columns[column].type == LAKE_TEXT)
		lake_bytes(w, t, column, cell->text, cell->len);
	else
		lake_int(w, t, column, (int64_t)cell->number);
}

static void block_row(void *ctx, const struct export_cell *cells)
{
	struct large *x = ctx;

	for (unsigned c = 0; c < COLUMNS; c++)
		put_cell(x->w, LAKE_allocations, c, &cells[c]);
	lake_row(x->w, LAKE_allocations);
}

/* Rows of the large tables. */
static int lake_allocation_rows(struct lake_writer *w, struct recording *r)
{
	struct recording again; /* events are read once more */
	struct export x = { .recording = &again, .device = -1 };
	struct large large = { .w = w };
	int rc = recording_open(&again, r->path);

	if (rc)
		return rc;
	rc = moments_read(&again, &x.facts, NULL);
	if (!rc) {
		owners_open(&x.owners, &x.stacks, &again.defs);
		x.classifier = classifier_new(&x.facts, &x.owners);
		export_table(&x, block_row, &large);
		classifier_free(x.classifier);
		owners_close(&x.owners);
	}
	model_free(&x.facts);
	recording_close(&again);
	return rc;
}

static void event_row(void *ctx, const struct export_cell *cells)
{
	struct large *x = ctx;

	for (unsigned i = 0; i < x->events.count; i++)
		put_cell(x->w, LAKE_events, x->events.what[i], &cells[i]);
	lake_row(x->w, LAKE_events);
}

static int lake_event_rows(struct lake_writer *w, struct recording *r)
{
	struct large x = { .w = w, .events = { .defs = &r->defs, .row = event_row, .ctx = &x } };

	for (unsigned c = 0; c < EVENT_COLUMNS; c++)
		if (lake_wants(w, LAKE_events, c))
			x.events.what[x.events.count++] = c;
	return recording_run(r, UINT64_MAX, export_event_row, &x.events);
}

/* ---- lines at the peak ---- */

static void held_rows(struct lake_rows *x, const struct holders *all)
{
	FOR_EACH (const struct holder, h, all->items, all->count) {
		put_text(x->w, lines, class, categories[h->category].name);
		put_owner(x->w, lines, &h->owner, h->inside);
		put_int(x->w, lines, bytes, h->bytes);
		put_int(x->w, lines, blocks, h->blocks);
		lake_row(x->w, LAKE_lines);
	}
}

/* By class, line and modules; the names of modules stay until this process ends. */
static uint32_t place_line(struct lake_rows *x, struct holders *all, const struct block *b)
{
	const struct holder h = { .category = b->category,
				  .owner = owners_find(&x->timeline->owners, b),
				  .inside = need_text(lake_module(x, b->stack)) };

	return holders_place(all, &h);
}

static void peak_rows(struct lake_rows *x, struct peak_answer *peak)
{
	const struct moment *mo = &peak->shot.moment;
	struct holders all = { 0 };
	struct map ids = { 0 }; /* class, stack and node -> item */

	FOR_EACH (const struct block, b, mo->blocks, mo->count) {
		uint64_t site = (uint64_t)b->stack << 32 | (b->memory ? 0 : b->name);
		uint32_t at =
			map_known(&ids, site * CATEGORIES + b->category, place_line(x, &all, b));

		all.items[at].bytes += b->size;
		all.items[at].blocks++;
	}
	holders_sort(&all);
	held_rows(x, &all);
	free(all.items);
	map_free(&ids);
}

/* ---- all of them ---- */

static int small_tables(struct lake_writer *w, struct recording *r)
{
	struct timeline t = { 0 };
	struct lake_rows x = { .w = w, .recording = r, .timeline = &t };
	struct peak_answer peak = { 0 };
	int rc = timeline_open_any(&t, r), main;

	if (rc)
		return rc;
	main = t.device;
	lake_device_rows(&x);
	if (main >= 0) {
		timeline_look(&t, main);
		peak_find(&peak, &t);
		peak_rows(&x, &peak);
		lake_step_rows(&x);
	}
	lake_refusal_rows(&x);
	if (main >= 0)
		timeline_look(&t, main);
	t.device = main;
	lake_rank_row(&x, &peak);
	if (main >= 0)
		peak_free(&peak);
	timeline_close(&t);
	return 0;
}

int lake_recording_rows(struct lake_writer *w, const char *path)
{
	struct recording r;
	int rc = recording_open(&r, path);

	if (rc)
		return rc;
	w->root = defs_meta(&r.defs, "git.root").s;
	if (w->files[LAKE_ranks])
		rc = small_tables(w, &r);
	if (!rc && w->files[LAKE_allocations])
		rc = lake_allocation_rows(w, &r);
	if (!rc && w->files[LAKE_events])
		rc = lake_event_rows(w, &r);
	recording_close(&r);
	return rc;
}

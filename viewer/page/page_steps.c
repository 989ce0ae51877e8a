/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a track, its phases as bands, and the account: formulas beside measured figures. */
#include "../answers/account.h"
#include "../moments/timeline.h"
#include "page.h"

enum { STEP_ROWS = 4000, SPAN_ROWS = 30000 };

static uint32_t peak_words(struct track *t, const struct extent *x)
{
	struct instant at;

	instant_of_peak(&at, t->timeline, x);
	return names_word(&t->page->names, at.what);
}

/* Numbers are written as differences from the step before. */
static void put_extent(struct bytes *c, const struct extent *x, const struct extent *before)
{
	column_row(c, x->first_seq - before->first_seq, x->last_seq - x->first_seq,
		   zigzag(x->first_ns - before->first_ns), zigzag(x->last_ns - x->first_ns),
		   x->begin_bytes, x->end_bytes, x->peak, x->peak_seq - x->first_seq,
		   zigzag(x->peak_ns - x->first_ns), zigzag(x->growth));
}

static void put_step(struct bytes *c, struct track *t, const struct step *s)
{
	column_row(c, s->peak_phase, s->ended, peak_words(t, &s->extent));
	for (int p = 0; p < PHASES; p++) {
		struct step_phase phase = steps_phase(&t->timeline->model.spans, s, p);

		bytes_varint(c, phase.times);
		if (phase.times)
			column_row(c, phase.extent.peak, phase.extent.end_bytes,
				   zigzag(phase.extent.growth));
	}
}

/* Whether row i is kept if there is not room for all. Kept rows are spread evenly. */
static bool stays(size_t i, size_t count, size_t room)
{
	return count <= room || i * room % count < room || i + 1 == count;
}

/* Writes as many steps as fit, always the last and the highest. Returns their number. */
static size_t put_steps(struct bytes *c, struct track *t, size_t room)
{
	const struct steps *s = &t->timeline->steps;
	struct extent before = { .first_ns = t->timeline->model.first_ns };
	size_t rows = 0, number = 0, best;

	timeline_peak(t->timeline, &best);
	for (size_t i = 0; i < s->count; i++) {
		if (!stays(i, s->count, room) && i != best)
			continue;
		bytes_varint(c, i - number);
		put_extent(c, &s->items[i].extent, &before);
		put_step(c, t, &s->items[i]);
		number = i;
		before = s->items[i].extent;
		rows++;
	}
	return rows;
}

/* Phases are kept in runs of RUN, because every n-th phase would often be the same one of a step.
 */
static void emit_spans(struct track *t)
{
	enum { RUN = 16 };
	const struct spans *s = &t->timeline->model.spans;
	size_t room = page_room(t->page, SPAN_ROWS, 1000), rows = 0;
	uint64_t before = 0, ns = t->timeline->model.first_ns;
	struct bytes c = { 0 };

	for (size_t i = 0; i < s->count; i++) {
		const struct extent *x = &s->items[i].extent;

		if (s->count > room && !stays(i / RUN, (s->count + RUN - 1) / RUN, room / RUN))
			continue;
		rows++;
		column_row(&c, s->items[i].phase, zigzag(x->first_seq - before),
			   zigzag(x->first_ns - ns), x->last_seq - x->first_seq,
			   zigzag(x->last_ns - x->first_ns));
		before = x->first_seq;
		ns = x->first_ns;
	}
	emit_number(t->page->out, "span_count", rows);
	emit_number(t->page->out, "spans_left_out", s->count - rows);
	column_emit(&c, t->page->out, "spans");
}

void page_steps_emit(struct track *t)
{
	const struct steps *s = &t->timeline->steps;
	struct emit *out = t->page->out;
	struct bytes c = { 0 };
	size_t rows = put_steps(&c, t, page_room(t->page, STEP_ROWS, 200));

	emit_object(out, "steps");
	emit_number(out, "count", s->count);
	emit_number(out, "left_out", s->count - rows);
	emit_flag(out, "tail", s->tail);
	emit_text(out, "basis", steps_bases[s->basis].text);
	column_emit(&c, out, "rows");
	emit_spans(t);
	emit_end(out);
}

static void emit_account_row(struct emit *out, const struct account_row *r)
{
	emit_object(out, NULL);
	emit_text(out, "section", r->row.section);
	emit_text(out, "title", r->row.title);
	emit_text(out, "unit", r->row.unit);
	if (r->row.has_measured && !r->repeats)
		emit_decimal(out, "measured", r->row.measured);
	if (r->row.has_formula)
		emit_decimal(out, "formula", r->row.formula);
	emit_text(out, "note", r->note);
	emit_end(out);
}

void page_account_emit(struct track *t)
{
	const double given[SHAPE_FIGURES] = { 0 };
	struct emit *out = t->page->out;
	struct account a;

	if (!t->timeline->framework || t->timeline->steps.count < 2)
		return;
	account_make(&a, t->timeline, given);
	emit_object(out, "account");
	emit_number(out, "step", a.step);
	emit_array(out, "shape");
	for (int f = 0; f < SHAPE_FIGURES; f++) {
		if (!shape_has(&a.shape, f))
			continue;
		emit_object(out, NULL);
		emit_text(out, "name", shape_names[f]);
		emit_decimal(out, "value", shape_get(&a.shape, f));
		emit_text(out, "source", shape_sources[a.shape.figures[f].source]);
		emit_end(out);
	}
	emit_end(out);
	emit_array(out, "rows");
	for (size_t i = 0; i < a.count; i++)
		emit_account_row(out, &a.rows[i]);
	emit_end(out);
	emit_end(out);
}

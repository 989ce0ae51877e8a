/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of memory at the peak of each step, side by side. They show if a step holds more than
 * the one before, and of which class. */
#include "../base/human.h"
#include "../base/sorted.h"
#include "columns.h"
#include "../moments/series.h"
#include "report.h"

#define COLUMNS 5 /* steps in text */

struct collect {
	struct report *r;
	size_t next; /* first item of steps whose peak is still to come */
	int64_t now[CATEGORIES], before[CATEGORIES]; /* after the latest event, and before it */
};

/* True if a step's peak is where it begins, before its first event. */
static bool is_at_begin(const struct extent *x)
{
	return x->peak_seq == x->first_seq && x->peak == x->begin_bytes;
}

/* Stores the classes of items whose peak is not later than that event. */
static void take_peaks(struct collect *k, uint64_t seq)
{
	const struct steps *steps = &k->r->timeline.steps;

	for (; k->next < steps->count; k->next++) {
		const struct extent *x = &steps->items[k->next].extent;
		const int64_t *at = x->peak_seq == seq && is_at_begin(x) ? k->before : k->now;

		if (x->peak_seq > seq)
			break;
		for (unsigned c = 0; c < CATEGORIES; c++)
			k->r->step_bytes[k->next][c] = at[c] > 0 ? at[c] : 0;
	}
}

static void note_class_change(void *ctx, const struct series_change *c)
{
	struct collect *k = ctx;

	take_peaks(k, c->seq - 1);
	k->now[c->category] += c->bytes;
}

static void end_of_event(void *ctx, const struct series_event *e)
{
	struct collect *k = ctx;

	take_peaks(k, e->seq);
	memcpy(k->before, k->now, sizeof(k->now));
}

/* The events of all peaks and the events before them, in order. The caller frees them. */
static uint64_t *peaks(const struct steps *steps)
{
	uint64_t *seqs = need_new((2 * steps->count + 1) * sizeof(*seqs));

	for (size_t i = 0; i < steps->count; i++) {
		uint64_t seq = steps->items[i].extent.peak_seq;

		seqs[2 * i] = seq ? seq - 1 : 0;
		seqs[2 * i + 1] = seq;
	}
	qsort(seqs, 2 * steps->count, sizeof(*seqs), sorted_numbers);
	return seqs;
}

void report_steps_find(struct report *r)
{
	struct collect k = { .r = r };
	uint64_t *seqs = peaks(&r->timeline.steps);
	const struct series s = { .model = &r->timeline.model,
				  .classifier = timeline_classifier(&r->timeline),
				  .device = r->timeline.device,
				  .moments = seqs,
				  .moment_count = 2 * r->timeline.steps.count };

	r->step_bytes = need_new((r->timeline.steps.count + 1) * sizeof(*r->step_bytes));
	if (r->timeline.steps.count)
		series_run(&s, &(struct series_sink){ .change = note_class_change,
						      .event = end_of_event,
						      .ctx = &k });
	take_peaks(&k, UINT64_MAX);
	free(seqs);
}

/* Chooses the items with a column: of many steps the first two, the last two and the highest, and
 * without steps the time before them. Returns how many. */
static unsigned choose_steps(const struct timeline *t, size_t columns[COLUMNS])
{
	size_t best, n = steps_number(&t->steps);
	unsigned count = 0;

	timeline_peak(t, &best);
	for (size_t i = 1; i <= n && count < COLUMNS; i++)
		if (n <= COLUMNS || i <= 2 || i == best || i > n - 2)
			columns[count++] = i;
	if (!count)
		columns[count++] = 0;
	return count;
}

/* The steps that have a column, and the class of the row that is written (CATEGORIES = all). */
struct report_steps_view {
	const struct report *report;
	size_t columns[COLUMNS];
	unsigned count;
	size_t category;
	char cell[HUMAN_MAX];
};

static uint64_t bytes_of(const struct report_steps_view *v, size_t column)
{
	size_t i = v->columns[column];

	return v->category == CATEGORIES ? v->report->timeline.steps.items[i].extent.peak
					 : v->report->step_bytes[i][v->category];
}

static const char *step_cell(const void *ctx, size_t column)
{
	struct report_steps_view *v = (struct report_steps_view *)ctx;
	uint64_t bytes = bytes_of(v, column);

	return bytes ? human_bytes(v->cell, bytes) : "-";
}

static bool class_by_step_row(void *ctx, size_t category, struct row_report_by_step *row)
{
	struct report_steps_view *v = ctx;
	bool any = false;

	v->category = category;
	for (unsigned c = 0; c < v->count; c++)
		any |= bytes_of(v, c);
	*row = (struct row_report_by_step){
		.class = category == CATEGORIES ? "all" : categories[category].words,
		.steps = { v->count, step_cell, v },
	};
	return any;
}

void report_steps(struct report *r, struct emit *out)
{
	struct report_steps_view v = { .report = r };
	struct rows_report_by_step rows = { CATEGORIES + 1, class_by_step_row, &v };
	struct text_column columns[1 + COLUMNS] = { TEXT_COLUMN("at the peak of",
								report_by_step_class, 2, -21) };
	char titles[COLUMNS][32];

	v.count = choose_steps(&r->timeline, v.columns);
	for (unsigned c = 0; c < v.count; c++) {
		snprintf(titles[c], sizeof(titles[c]), "step %zu", v.columns[c]);
		columns[1 + c] = (struct text_column)TEXT_COLUMN(
			v.columns[c] ? titles[c] : "all", report_by_step_steps, 1, 10, .item = c);
	}
	columns_write(out, &document_report_by_step, columns, 1 + v.count, &rows, 0);
	emit_line(out, "%s", "");
}

static bool step_row(void *ctx, size_t i, struct row_report_step *row)
{
	struct report *r = ctx;
	const struct extent *x = &r->timeline.steps.items[i].extent;

	instant_of_peak(&r->at, &r->timeline, x);
	*row = (struct row_report_step){
		.step = r->timeline.steps.tail && i == r->timeline.steps.count - 1 ? 0 : i,
		.peak_bytes = x->peak,
		.peak_time_ns = x->peak_ns,
		.peak_phase = phases[r->at.phase].name,
		.peak_at = r->at.text,
		.categories_at_peak = r->step_bytes[i],
	};
	return true;
}

struct rows_report_step report_steps_rows(struct report *r)
{
	return (struct rows_report_step){ r->timeline.steps.count, step_row, r };
}

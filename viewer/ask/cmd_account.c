/* SPDX-License-Identifier: Apache-2.0 */
/* account: published formulas of training memory beside the measured figures. */
#include "../answers/account.h"
#include "command.h"

enum { PEAK = 2 };

static const struct {
	const char *name, *title;
} sections[] = {
	{ "parameters", "Bytes for each parameter" },
	{ "activations", "Activations" },
	[PEAK] = { "peak",
		   "The peak: parameters + state + max(gradients + temporaries, activations)" },
	{ "residual", "Residual memory at the peak" },
	{ "out_of_memory", "When memory ran out" },
};

static const char *value_text(char buf[HUMAN_MAX], enum account_unit unit, bool has, double v)
{
	if (!has)
		return "";
	if (unit == UNIT_BYTES)
		return human_bytes(buf, v < 0 ? 0 : v);
	if (unit == UNIT_COUNT)
		return human_count(buf, v);
	snprintf(buf, HUMAN_MAX, "%.2f", v);
	return buf;
}

/* "parameters 1,555,972,800, layers 48": the figures with one source. */
static void figures_of(const struct shape *s, enum figure_source source, char *buf, size_t room)
{
	buf[0] = 0;
	for (int f = 0; f < SHAPE_FIGURES; f++) {
		const struct figure *x = &s->figures[f];

		if (x->source != source || (f == SHAPE_SHARDS && x->value < 2))
			continue;
		text_add(buf, room, "%s%s", buf[0] ? ", " : "", shape_names[f]);
		if (source != FIGURE_UNKNOWN)
			text_add(buf, room, " %s", N(x->value + 0.5));
	}
	for (char *p = buf; *p; p++)
		*p = *p == '_' ? '-' : *p;
}

/* The source of each figure of the model's shape. An unknown one can be given by the option of that
 * name. */
static void shape_lines(struct emit *out, const struct shape *s)
{
	static const enum figure_source order[] = { FIGURE_GIVEN, FIGURE_INFERRED, FIGURE_ASSUMED,
						    FIGURE_UNKNOWN };
	char words[400], head[32];

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		figures_of(s, order[i], words, sizeof(words));
		snprintf(head, sizeof(head), "  %-10s", shape_sources[order[i]]);
		emit_paragraph(out, head, "            ", words);
	}
}

#define NOTE 15 /* columns beside the figures */

struct account_view {
	struct account *account;
	const char *section; /* only rows of this section that are not idle; NULL: all */
	char measured[HUMAN_MAX], formula[HUMAN_MAX];
};

/* A row with neither formula nor note, whose measured figure is missing or zero. */
static bool is_idle(const struct row_account_row *r)
{
	return !r->has_formula && !r->has_note && (!r->has_measured || r->measured == 0);
}

static bool row_row(void *ctx, size_t i, struct row_account_row *row)
{
	struct account_view *v = ctx;
	const struct account_row *r = &v->account->rows[i];
	bool narrow = strlen(r->note) <= NOTE;

	*row = r->row;
	row->as_measured =
		value_text(v->measured, r->unit, row->has_measured && !r->repeats, row->measured);
	row->by_formula = value_text(v->formula, r->unit, row->has_formula, row->formula);
	row->beside = narrow ? r->note : "";
	row->below = narrow ? "" : r->note;
	return !v->section || (!strcmp(row->section, v->section) && !is_idle(row));
}

static void section_text(struct emit *out, struct account_view *v, const char *name,
			 const char *title)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("", account_row_title, 2, -36),
		TEXT_COLUMN("measured", account_row_as_measured, 1, 11),
		TEXT_COLUMN("by formula", account_row_by_formula, 1, 11),
		TEXT_COLUMN("", account_row_beside, 2, -1),
		TEXT_COLUMN("", account_row_below, 6, 0, .style = COLUMN_BELOW),
	};
	struct rows_account_row rows = { v->account->count, row_row, v };
	struct row_account_row row;
	size_t i = 0;

	v->section = name;
	while (i < rows.count && !row_row(v, i, &row))
		i++;
	if (i == rows.count)
		return;
	emit_line(out, "%s", "");
	emit_title(out, "%s", title);
	emit_columns(out, account_row, &rows, columns, 0);
}

static void print_account(struct emit *out, struct account_view *v, const struct timeline *t)
{
	const struct account *a = v->account;

	if (a->step)
		emit_title(out, "Device %d, step %zu of %zu; the model's shape:", t->device,
			   a->step, steps_number(&t->steps));
	else
		emit_title(out, "Device %d; no step was found", t->device);
	if (a->step)
		shape_lines(out, &a->shape);
	for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++)
		section_text(out, v, sections[s].name,
			     s == PEAK && !a->trains ? "The peak" : sections[s].title);
}

static bool figure_row(void *ctx, size_t f, struct row_account_figure *row)
{
	const struct shape *s = ctx;

	*row = (struct row_account_figure){ .name = shape_names[f],
					    .value = shape_get(s, f),
					    .source = shape_sources[s->figures[f].source] };
	return shape_has(s, f);
}

static void emit_account(struct emit *out, struct account_view *v, const struct timeline *t)
{
	struct account *a = v->account;
	struct row_account row = { .device = t->device,
				   .step = a->step,
				   .optimizer = a->optimizer,
				   .shape = { SHAPE_FIGURES, figure_row, &a->shape },
				   .rows = { a->count, row_row, v } };

	emit_document(out, account, &row);
}

int run_account(const struct account_options *o, struct emit *out, struct timeline *t)
{
	struct account a;
	struct account_view v = { .account = &a };

	account_make(&a, t, o->figures);
	emit_account(out, &v, t);
	print_account(out, &v, t);
	return 0;
}

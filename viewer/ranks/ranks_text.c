/* SPDX-License-Identifier: Apache-2.0 */
/* A run as text: a row per rank, or per group of similar ranks if there are many; then the
 * outliers, and why they differ. */
#include "../base/human.h"
#include "../answers/columns.h"
#include "../recording/owner_words.h"
#include "ranks_print.h"

#define EACH	16 /* ranks that have a row each */
#define STRAYS	8  /* outliers, and ranks on others' devices, that are named */
#define HOSTS	8
#define COLUMNS 16
#define WIDE	44 /* columns of a text in a row */
#define ROOM	300

static const char *number_words(enum ranks_kind kind, double n, char buf[ROOM])
{
	uint64_t count = n > 0 ? (uint64_t)n : 0;

	switch (kind) {
	case RANKS_BYTES:
		return human_bytes(buf, count);
	case RANKS_SECONDS:
		return human_seconds(buf, count);
	case RANKS_COUNT:
		return human_count(buf, count);
	case RANKS_GROWTH:
		return human_change(buf, (int64_t)n);
	case RANKS_FLAG:
		return n != 0 ? "yes" : "no";
	case RANKS_DECIMAL:
		snprintf(buf, ROOM, "%.2f", n);
		return buf;
	default:
		snprintf(buf, ROOM, "%.0f", n);
		return buf;
	}
}

/* Shortens to the common beginning of a group's texts, in whole parts of "step 2, backward,
 * MmBackward0". */
static void shorten(char *text, const char *other)
{
	size_t n = 0, whole = 0;

	while (text[n] && text[n] == other[n]) {
		n++;
		if (text[n] == ',' && other[n] == ',')
			whole = n;
	}
	if (text[n] || other[n])
		text[whole] = 0;
}

/* A group's figures in one column: one figure, or the least and the most. */
static void group_words(const struct ranks_table *t, const bool *of, size_t column, char buf[ROOM])
{
	const struct ranks_column *c = &t->columns[column];
	double least = 0, most = 0;
	char a[ROOM], b[ROOM];
	bool known = false;

	buf[0] = 0;
	for (size_t i = 0; i < t->run->count; i++) {
		const struct ranks_value *v =
			of[i] && t->rows[i].fine ? &t->rows[i].values[column] : NULL;

		if (!v || !v->known)
			continue;
		if (v->words && !known)
			snprintf(buf, ROOM, "%s", v->words);
		else if (v->words && c->kind != RANKS_CLASS)
			shorten(buf, v->words);
		else if (v->words && strcmp(buf, v->words))
			buf[strcspn(buf, "0123456789")] = 0; /* the class alone */
		least = known && least < v->n ? least : v->n;
		most = known && most > v->n ? most : v->n;
		known = true;
	}
	if (buf[0] || !known || c->kind >= RANKS_WORDS)
		return;
	snprintf(a, sizeof(a), "%s", number_words(c->kind, least, b));
	snprintf(buf, ROOM, "%s", number_words(c->kind, most, b));
	if (strcmp(a, buf))
		snprintf(buf, ROOM, "%.100s to %.100s", a, number_words(c->kind, most, b));
}

static bool is_column_shown(const struct ranks_table *t, size_t column)
{
	const struct ranks_column *c = &t->columns[column];

	if (c->flags & RANKS_QUIET)
		return false;
	for (size_t i = 0; i < t->run->count; i++) {
		const struct ranks_value *v = t->rows[i].fine ? &t->rows[i].values[column] : NULL;

		if (v && v->known && (v->n != 0 || !(c->flags & RANKS_SOME)))
			return true;
	}
	return false;
}

/* Marks the rows of a group. With few rows each is a group. */
static size_t mark_group(const struct ranks_strays *s, size_t count, size_t first, bool each,
			 bool *of)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += of[i] = each ? i == first : s->group[i] == first;
	return n;
}

/* The rows of the table, and the current one: a group of ranks, or a sum. */
struct rows {
	const struct ranks_table *table;
	const struct ranks_strays *strays;
	size_t hosts; /* hosts with a sum */
	bool *marked;
	bool is_sum;
	struct ranks_sums sum;
	char who[ROOM], cell[ROOM], words[ROOM];
};

static const char *row_cell(const void *ctx, size_t column)
{
	struct rows *r = (struct rows *)ctx;
	const struct ranks_column *c = &r->table->columns[column];

	if (r->is_sum)
		return c->flags & RANKS_SUM
			       ? number_words(c->kind, ranks_sum(&r->sum, column), r->cell)
			       : "";
	group_words(r->table, r->marked, column, r->words);
	return words_within(r->words, r->cell, sizeof(r->cell), WIDE);
}

/* Sums under the rows, of columns where they are meaningful: one per host, then the total. */
static bool sum_row(struct rows *r, size_t i)
{
	const struct ranks_run *run = r->table->run;
	bool all = i == run->count;

	r->sum = (struct ranks_sums){ r->table, all ? NULL : run->items[i].host };
	snprintf(r->who, sizeof(r->who), "%s%s", all ? "sum" : "on ", all ? "" : r->sum.host);
	return run->count > 1 && (all || (r->hosts && ranks_new_host(run, i))) &&
	       ANY_OF(x, r->table->columns, r->table->count,
		      x->flags & RANKS_SUM && !(x->flags & RANKS_QUIET));
}

static bool group_row(struct rows *r, size_t i)
{
	size_t count = r->table->run->count;

	if (!r->table->rows[i].fine || !mark_group(r->strays, count, i, count <= EACH, r->marked))
		return false;
	ranks_words(r->table->run, r->marked, r->who, 60);
	return true;
}

static bool rank_table_row(void *ctx, size_t i, struct row_ranks_group *row)
{
	struct rows *r = ctx;
	size_t count = r->table->run->count;

	r->is_sum = i >= count;
	*row = (struct row_ranks_group){ .who = r->who, .cells = { 0, row_cell, r } };
	return r->is_sum ? sum_row(r, i - count) : group_row(r, i);
}

static size_t find_columns(const struct ranks_table *t, struct text_column columns[COLUMNS])
{
	bool named = t->run->items[0].rank < 0;
	size_t n = 1;

	columns[0] = (struct text_column)TEXT_COLUMN(named ? "recording" : "rank", ranks_group_who,
						     2, -1);
	for (size_t c = 0; c < t->count && n < COLUMNS; c++)
		if (is_column_shown(t, c))
			columns[n++] = (struct text_column)TEXT_COLUMN(
				t->columns[c].title, ranks_group_cells, 2,
				t->columns[c].kind >= RANKS_FLAG ? -1 : 0, .item = c);
	return n;
}

static size_t count_hosts(const struct ranks_run *run)
{
	size_t n = 0;

	for (size_t i = 0; i < run->count; i++)
		n += ranks_new_host(run, i);
	return n;
}

static void print_errors(struct emit *out, const struct ranks_table *t,
			 const struct ranks_strays *s, bool *marked)
{
	char ranks[80];

	for (size_t i = 0; i < t->run->count; i++)
		if (!t->rows[i].fine && mark_group(s, t->run->count, i, false, marked))
			emit_line(out, "  %s  %s",
				  ranks_words(t->run, marked, ranks, sizeof(ranks)),
				  t->rows[i].error);
}

/* Rows without an answer stand behind the others. */
static void print_rows(struct emit *out, const struct ranks_table *t, const struct ranks_strays *s)
{
	size_t hosts = count_hosts(t->run);
	struct rows r = { .table = t,
			  .strays = s,
			  .hosts = hosts > 1 && hosts <= HOSTS ? hosts : 0,
			  .marked = need_new(t->run->count + 1) };
	struct rows_ranks_group all = { 2 * t->run->count + 1, rank_table_row, &r };
	struct text_column columns[COLUMNS];

	columns_write(out, &document_ranks_group, columns, find_columns(t, columns), &all, 0);
	print_errors(out, t, s, r.marked);
	free(r.marked);
}

/* "rank 3", "ranks 0-2, 5", or the names of the recordings. */
static const char *whom(const struct ranks_run *run, const bool *of, size_t n, char buf[ROOM])
{
	char ranks[200];

	ranks_words(run, of, ranks, sizeof(ranks));
	snprintf(buf, ROOM, "%s%s",
		 run->items[0].rank < 0 ? ""
		 : n > 1		? "ranks "
					: "rank ",
		 ranks);
	return buf;
}

static void say_stray(struct emit *out, const struct ranks_table *t, const struct ranks_strays *s,
		      size_t i, const bool *of, size_t n)
{
	struct ranks_stray w = ranks_stray_why(s, t, i);
	const struct ranks_column *c = &t->columns[t->main];
	char who[ROOM], a[ROOM], b[ROOM], line[3 * ROOM], place[OWNER_WORDS] = "";

	text_put(line, sizeof(line), "%s: %s, %s %s than the median", whom(t->run, of, n, who),
		 number_words(c->kind, t->rows[i].values[t->main].n, a),
		 human_bytes(b, (uint64_t)(w.more < 0 ? -w.more : w.more)),
		 w.more < 0 ? "less" : "more");
	if (w.place >= 0)
		owner_words(&t->places[w.place], place, sizeof(place), 0);
	if (w.category >= 0)
		text_add(line, sizeof(line), "; %s %s", categories[w.category].words,
			 CHANGE(w.category_more));
	for (size_t k = 0; !t->classes && k < t->count; k++)
		if ((t->columns[k].kind == RANKS_CATEGORY || t->columns[k].kind == RANKS_PLACE) &&
		    t->rows[i].values[k].known)
			text_add(line, sizeof(line), "%s%s",
				 t->columns[k].kind == RANKS_PLACE ? " of " : "; ",
				 t->rows[i].values[k].words);
	if (place[0])
		text_add(line, sizeof(line), ", most of it %s (%s)", place, CHANGE(w.place_more));
	emit_paragraph(out, "  ", "    ", line);
}

static void print_strays(struct emit *out, const struct ranks_table *t,
			 const struct ranks_strays *s)
{
	size_t count = t->run->count, said = 0, left = 0, n;
	bool *marked = need_new(count + 1);

	if (s->count) {
		emit_line(out, "%s", "");
		emit_title(out, "%zu of %zu %s from the median", s->count, s->compared,
			   s->count == 1 ? "is far" : "are far");
	}
	for (size_t i = 0; i < count; i++) {
		n = s->stray[i] && s->group[i] == i ? mark_group(s, count, i, false, marked) : 0;
		if (n && said++ < STRAYS)
			say_stray(out, t, s, i, marked, n);
		else if (n)
			left += n;
	}
	if (left)
		emit_line(out, "  ... and %zu more ranks (--json names all)", left);
	free(marked);
}

static void say_elsewhere(struct emit *out, const struct ranks_table *t,
			  const struct ranks_elsewhere *e)
{
	const struct owner *o = &t->places[e->device->place];
	char one[HUMAN_MAX], place[OWNER_WORDS], made[ROOM] = "";
	char context[ROOM], line[4 * ROOM];

	human_bytes(one, ranks_elsewhere_context(t));
	snprintf(context, sizeof(context), "a context%s%s",
		 ranks_elsewhere_context(t) ? " of about " : "",
		 ranks_elsewhere_context(t) ? one : "");
	if (o->function[0])
		snprintf(made, sizeof(made), " (%s)", owner_words(o, place, sizeof(place), 0));
	snprintf(line, sizeof(line),
		 "%s: %s%s on device %d, where %s works%s%s%s. All ranks together have up to %s "
		 "there",
		 t->rows[e->row].file->name, e->device->reserved ? B(e->device->reserved) : context,
		 e->device->reserved ? " reserved" : "", e->device->number,
		 t->rows[e->of].file->name, made, e->device->reserved ? ", and " : "",
		 e->device->reserved ? context : "", B(ranks_elsewhere_sum(t, e)));
	emit_paragraph(out, "  ", "    ", line);
}

static void print_elsewhere(struct emit *out, const struct ranks_table *t)
{
	size_t n;
	struct ranks_elsewhere *all = ranks_elsewhere(t, &n);

	if (n) {
		emit_line(out, "%s", "");
		emit_title(out, "Memory on another rank's device");
	}
	for (size_t i = 0; i < n && i < STRAYS; i++)
		say_elsewhere(out, t, &all[i]);
	free(all);
	if (n > STRAYS)
		emit_line(out, "  ... and %zu more (--json names all)", n - STRAYS);
}

static void say_missing(struct emit *out, const struct ranks_run *run)
{
	bool *gone = ranks_missing(run), alone = true;
	struct ranks_run all = { .count = gone ? (size_t)run->world : 0 };
	char ranks[200], text[ROOM];
	long n = 0;

	all.items = need_new((all.count + 1) * sizeof(*all.items));
	for (size_t i = 0; i < all.count; i++) {
		all.items[i].rank = (long)i;
		n += gone[i];
	}
	for (size_t i = 0; i < run->count; i++)
		alone &= run->items[i].by_itself;
	if (n && alone) {
		emit_line(out, "The other %ld of %ld ranks were simulated, not run.", n,
			  run->world);
	} else if (n) {
		snprintf(text, sizeof(text),
			 "Of the %ld ranks of this run %ld left no recording here: %s.", run->world,
			 n, ranks_words(&all, gone, ranks, sizeof(ranks)));
		emit_paragraph(out, "", "", text);
	}
	free(all.items);
	free(gone);
}

/* For ranks whose program was killed or still runs, or whose file is cut or damaged: their other
 * figures may be too low. */
static void say_parts(struct emit *out, const struct ranks_table *t, const struct ranks_strays *s)
{
	const struct ranks_run *run = t->run;
	bool *marked = need_new(run->count + 1);
	char who[ROOM], text[ROOM + 256];
	size_t n = 0;

	for (size_t i = 0; i < run->count; i++)
		n += marked[i] = t->rows[i].part;
	snprintf(text, sizeof(text),
		 n == 1 ? "%s file of %s has no end or is damaged (see gpumemtrace verify): "
			  "figures are those of its readable part%s."
			: "%s files of %s have no end or are damaged (see gpumemtrace verify): "
			  "figures are those of their readable parts%s.",
		 t->pairs ? (n == 1 ? "A" : "Some") : "The", whom(run, marked, n, who),
		 t->main < 0 ? ""
		 : s->known  ? ", and the median is of the others"
			     : ", and there is no median");
	if (n)
		emit_paragraph(out, "", "", text);
	free(marked);
}

/* "4 ranks on 2 hosts, python train.py", and omitted files. */
static void print_head(struct emit *out, const struct ranks_table *t, const struct ranks_strays *s)
{
	const struct ranks_run *run = t->run;
	const char *command = "";
	char text[2048], many[ROOM] = "", runs[64] = "";
	size_t count = count_hosts(run);

	for (size_t i = 0; i < run->count && !command[0] && run->runs == 1 && !run->differ[0]; i++)
		command = run->items[i].command;
	if (count > 1)
		snprintf(many, sizeof(many), " on %zu hosts", count);
	if (run->runs > 1)
		snprintf(runs, sizeof(runs), " of %zu runs", run->runs);
	snprintf(text, sizeof(text), "%zu %s%s%s%s%s%s", run->count,
		 run->items[0].rank < 0 || run->runs > 1 ? "recording" : "rank",
		 run->count == 1 ? "" : "s", runs, many, command[0] ? "  |  " : "", command);
	emit_paragraph(out, "", "  ", text);
	if (run->note[0])
		emit_paragraph(out, "", "", run->note);
	if (run->left_count)
		emit_line(out, "Not read: %zu other file%s in the folder", run->left_count,
			  run->left_count == 1 ? "" : "s");
	say_missing(out, run);
	say_parts(out, t, s);
	emit_line(out, "%s", "");
}

/* The row with the highest figure. Partial recordings count too, because what they show was really
 * allocated. */
static bool find_highest(const struct ranks_table *t, size_t *best, bool *equal)
{
	const struct ranks_value *highest = NULL;

	*equal = true;
	for (size_t i = 0; i < t->run->count; i++) {
		const struct ranks_value *v = t->rows[i].fine ? &t->rows[i].values[t->main] : NULL;

		if (!v || !v->known)
			continue;
		*equal &= !highest || v->n == highest->n;
		if (!highest || v->n > highest->n) {
			highest = v;
			*best = i;
		}
	}
	return highest;
}

static void print_summary(struct emit *out, const struct ranks_table *t,
			  const struct ranks_strays *s)
{
	const struct ranks_column *c = &t->columns[t->main];
	char a[ROOM], b[ROOM], median[ROOM + 16] = "";
	const char *highest;
	size_t best;
	bool equal;

	if (!find_highest(t, &best, &equal))
		return;
	highest = number_words(c->kind, t->rows[best].values[t->main].n, b);
	if (s->known)
		snprintf(median, sizeof(median), "; median %s",
			 number_words(c->kind, s->median, a));
	if (equal)
		emit_title(out, "All: %s %s", c->title, highest);
	else
		emit_title(out, "Highest %s: %s, %s%s", c->title, highest, t->rows[best].file->name,
			   median);
	emit_line(out, "%s", "");
}

void ranks_print_text(struct emit *out, const struct ranks_table *t, const struct ranks_strays *s)
{
	print_head(out, t, s);
	if (t->main >= 0 && t->columns[t->main].kind == RANKS_BYTES)
		print_summary(out, t, s);
	print_rows(out, t, s);
	print_elsewhere(out, t);
	if (s->known)
		print_strays(out, t, s);
}

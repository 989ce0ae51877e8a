/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks_stray.h"

#include <math.h>

#include "../base/sorted.h"

#define ALIKE 10 /* outliers are alike if they differ by less than 1/ALIKE */

struct entry {
	double n;
	size_t row;
};

COMPARE(by_number, struct entry, ORDER(x->n, y->n) ?: ORDER(x->row, y->row))

static double value_of_row(const struct ranks_table *t, size_t row)
{
	return t->rows[row].values[t->main].n;
}

/* Rows that are compared. A partial recording is left out, because it shows only part of what its
 * rank held. */
static bool is_compared(const struct ranks_row *row, int main)
{
	return row->fine && !row->part && row->values[main].known;
}

/* The median. For an even number of rows it is the lower of the two in the middle, so that it is
 * the figure of an existing rank, as in the view stray_ranks (viewer/commands/views.sql). */
static void find_median(struct ranks_strays *s, const struct ranks_table *t)
{
	struct entry *all = need_new((t->run->count + 1) * sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; i < t->run->count; i++)
		if (is_compared(&t->rows[i], t->main))
			all[n++] = (struct entry){ value_of_row(t, i), i };
	qsort(all, n, sizeof(*all), by_number);
	s->known = n;
	s->compared = n;
	if (n) {
		s->median = all[(n - 1) / 2].n;
		s->middle = all[(n - 1) / 2].row;
	}
	free(all);
}

static bool is_further(double a, double b, double least)
{
	return fabs(a - b) > fmax(least, fabs(b) * STRAY_PERCENT / 100);
}

bool ranks_is_apart(double bytes, double median)
{
	return is_further(bytes, median, STRAY_BYTES);
}

static bool is_apart(const struct ranks_table *t, double a, double b)
{
	return is_further(a, b, t->columns[t->main].flags & RANKS_EXACT ? 0 : STRAY_BYTES);
}

static bool same_value(const struct ranks_value *a, const struct ranks_value *b)
{
	return a->known == b->known && a->n == b->n &&
	       (!a->words == !b->words && (!a->words || !strcmp(a->words, b->words)));
}

/* Compares the names of the classes only, because the figures behind them differ from rank to
 * rank. */
static bool same_class(const struct ranks_value *a, const struct ranks_value *b)
{
	size_t n = strcspn(a->words, "0123456789");

	return n == strcspn(b->words, "0123456789") && !strncmp(a->words, b->words, n);
}

/* Whether two outliers have the same cause. */
static bool same_stray(const struct ranks_strays *s, const struct ranks_table *t, size_t a,
		       size_t b)
{
	struct ranks_stray x, y;

	if (t->main < 0 || s->stray[a] != s->stray[b])
		return t->main < 0;
	if (!s->stray[a])
		return true;
	x = ranks_stray_why(s, t, a);
	y = ranks_stray_why(s, t, b);
	return x.category == y.category && x.place == y.place &&
	       fabs(x.more - y.more) <= fabs(x.more) / ALIKE;
}

static bool same_group(const struct ranks_strays *s, const struct ranks_table *t, size_t a,
		       size_t b)
{
	const struct ranks_row *x = &t->rows[a], *y = &t->rows[b];

	if (!x->fine || !y->fine)
		return !x->fine && !y->fine && !strcmp(x->error, y->error);
	if (t->main >= 0 && is_apart(t, value_of_row(t, b), value_of_row(t, a)))
		return false;
	for (size_t c = 0; c < t->count; c++) {
		if (!(t->columns[c].flags & RANKS_APART))
			continue;
		if (t->columns[c].kind == RANKS_CLASS ? !same_class(&x->values[c], &y->values[c])
						      : !same_value(&x->values[c], &y->values[c]))
			return false;
	}
	return same_stray(s, t, a, b);
}

/* A row joins the group of the first row that is like it. */
static void find_groups(struct ranks_strays *s, const struct ranks_table *t)
{
	for (uint32_t i = 0; i < t->run->count; i++) {
		s->group[i] = i;
		for (uint32_t k = 0; k < i && s->group[i] == i; k++)
			if (s->group[k] == k && same_group(s, t, k, i))
				s->group[i] = k;
	}
}

void ranks_strays(struct ranks_strays *s, const struct ranks_table *t)
{
	*s = (struct ranks_strays){ 0 };
	s->stray = need_new(t->run->count + 1);
	s->group = need_new((t->run->count + 1) * sizeof(*s->group));
	if (t->main >= 0)
		find_median(s, t);
	for (size_t i = 0; i < t->run->count && s->known; i++) {
		s->stray[i] = is_compared(&t->rows[i], t->main) &&
			      is_apart(t, value_of_row(t, i), s->median);
		s->count += s->stray[i];
	}
	find_groups(s, t);
}

void ranks_strays_free(struct ranks_strays *s)
{
	free(s->stray);
	free(s->group);
}

size_t ranks_furthest(const struct ranks_strays *s, const struct ranks_table *t)
{
	const bool *most =
		GREATEST_OF(x, s->stray, t->run->count, *x,
			    (uint64_t)fabs(value_of_row(t, (size_t)(x - s->stray)) - s->median));

	return most ? (size_t)(most - s->stray) : t->run->count;
}

static int64_t held(const struct ranks_row *row, uint32_t category, uint32_t place)
{
	return (int64_t)SUM_OF(x, row->lines, row->line_count,
			       x->category == category && x->place == place ? x->bytes : 0);
}

/* The line with the greatest difference, among the rows in `of`. */
static void greatest(struct ranks_stray *w, const struct ranks_row *of, const struct ranks_row *row,
		     const struct ranks_row *middle, int sign)
{
	FOR_EACH (const struct ranks_line, l, of->lines, of->line_count) {
		int64_t more;

		if ((int)l->category != w->category)
			continue;
		more = held(row, l->category, l->place) - held(middle, l->category, l->place);
		if (more * sign > w->place_more * sign) {
			w->place = l->place;
			w->place_more = more;
		}
	}
}

struct ranks_stray ranks_stray_why(const struct ranks_strays *s, const struct ranks_table *t,
				   size_t i)
{
	const struct ranks_row *row = &t->rows[i], *middle = &t->rows[s->middle];
	struct ranks_stray w = { .more = value_of_row(t, i) - s->median,
				 .category = -1,
				 .place = -1 };
	int sign = w.more < 0 ? -1 : 1;

	for (unsigned c = 0; t->classes && c < CATEGORIES; c++) {
		int64_t more = (int64_t)row->classes[c] - (int64_t)middle->classes[c];

		if (more * sign > w.category_more * sign) {
			w.category = (int)c;
			w.category_more = more;
		}
	}
	if (w.category >= 0) {
		greatest(&w, row, row, middle, sign);
		greatest(&w, middle, row, middle, sign);
	}
	return w;
}

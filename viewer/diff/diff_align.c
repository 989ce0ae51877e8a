/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches functions and lines of the old and the new program. Functions are matched by name, file
 * and calls, the best match first, so that a renamed file or function is found. Lines of two
 * matched functions keep their order: the alignment with the most in common is used, by the calls
 * of each line.
 */
#include "../base/sorted.h"
#include "diff.h"

#define LINES_MOST 1500 /* of one function; lines beyond are paired by number */

struct lines {
	uint32_t *places; /* in order of line */
	size_t count;
};

/* All functions of a side, with their lines and calls. */
struct shelf {
	struct diff_side *side;
	struct lines *lines;
	uint32_t *partner; /* 1 + function on the other side */
};

static int by_line(const void *a, const void *b, void *ctx)
{
	const struct diff_side *sorting = ctx;
	const struct diff_place *x = &sorting->places[*(const uint32_t *)a];
	const struct diff_place *y = &sorting->places[*(const uint32_t *)b];

	return ORDER(x->function, y->function) ?: ORDER(x->line, y->line);
}

static void shelf_make(struct shelf *s, struct diff_side *side)
{
	uint32_t *all = need_new((side->place_count + 1) * sizeof(*all));

	*s = (struct shelf){ .side = side };
	s->lines = need_new((side->function_count + 1) * sizeof(*s->lines));
	s->partner = need_new((side->function_count + 1) * sizeof(*s->partner));
	for (size_t i = 0; i < side->place_count; i++)
		all[i] = (uint32_t)i;
	qsort_r(all, side->place_count, sizeof(*all), by_line, side);
	for (size_t i = 0; i < side->place_count; i++) {
		struct lines *l = &s->lines[side->places[all[i]].function];

		if (!l->count++)
			l->places = &all[i];
	}
	if (!side->place_count)
		free(all);
	else
		s->lines[side->function_count].places = all;
}

static void shelf_free(struct shelf *s)
{
	free(s->lines[s->side->function_count].places);
	free(s->lines);
	free(s->partner);
}

/* Shared calls as a part of all calls of two lines. */
static double calls_alike(const struct diff_place *a, const struct diff_place *b)
{
	unsigned common = 0;

	for (unsigned i = 0; i < a->token_count; i++)
		common += ANY_OF(x, b->tokens, b->token_count, *x == a->tokens[i]);
	return (double)common / (a->token_count + b->token_count - common + 1e-9);
}

/* Whether two lines do different work with the same function: they assign to other names, and their
 * blocks differ greatly in size. */
bool diff_like_work(const struct diff_place *a, uint64_t largest_a, const struct diff_place *b,
		    uint64_t largest_b)
{
	double large = (double)(largest_a > largest_b ? largest_a : largest_b);
	double small = (double)(largest_a > largest_b ? largest_b : largest_a);

	return !a->text || !b->text || a->target == b->target || !small || large <= 8 * small;
}

static bool same_statement(const struct diff_place *a, const struct diff_place *b)
{
	return a->text && a->text == b->text;
}

static bool like_lines(const struct diff_place *a, const struct diff_place *b)
{
	return same_statement(a, b) || calls_alike(a, b) > 0.6;
}

/* Share of lines with a counterpart in the other function. */
static double functions_alike(const struct shelf *o, const struct lines *a, const struct shelf *n,
			      const struct lines *b)
{
	size_t found = 0, most = a->count > b->count ? a->count : b->count;

	for (size_t i = 0; i < a->count; i++) {
		bool any = false;

		for (size_t j = 0; j < b->count && !any; j++)
			any = like_lines(&o->side->places[a->places[i]],
					 &n->side->places[b->places[j]]);
		found += any;
	}
	return (double)found / (double)most;
}

/* Number of innermost folders that two files share, the name included. */
static unsigned common_tail(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);
	unsigned parts = 0;

	while (x && y && a[x - 1] == b[y - 1]) {
		x--;
		y--;
		parts += a[x] == '/';
	}
	return parts + (!x && !y);
}

static double score(const struct shelf *o, uint32_t i, const struct shelf *n, uint32_t j)
{
	const struct diff_function *a = &o->side->functions[i], *b = &n->side->functions[j];
	bool same_name = !strcmp(a->name, b->name), same_file = !strcmp(a->file, b->file);
	bool same_base = !strcmp(owners_base(a->file), owners_base(b->file));
	unsigned tail = common_tail(a->file, b->file);
	double calls = functions_alike(o, &o->lines[i], n, &n->lines[j]);

	if (!same_name && calls < 0.6)
		return 0;
	if (same_name && !same_base && !strcmp(a->name, "<module>") && calls < 0.3)
		return 0;
	return 4 * same_name + 3 * same_file + 2 * same_base + 0.1 * (tail > 9 ? 9 : tail) +
	       2 * calls + 0.5 * (a->first_line == b->first_line);
}

static void match_functions(struct shelf *o, struct shelf *n)
{
	struct diff_match *all = NULL;
	size_t count = 0, room = 0;

	for (uint32_t i = 0; i < o->side->function_count; i++)
		for (uint32_t j = 0; j < n->side->function_count; j++) {
			double s = score(o, i, n, j);

			if (s <= 0)
				continue;
			*need_item(all, count, room) = (struct diff_match){ i, j, s };
		}
	diff_sort_matches(all, count);
	for (size_t k = 0; k < count; k++) {
		if (o->partner[all[k].old] || n->partner[all[k].new])
			continue;
		o->partner[all[k].old] = (uint32_t)all[k].new + 1;
		n->partner[all[k].new] = (uint32_t)all[k].old + 1;
	}
	free(all);
}

/* Similarity of two lines of matched functions; 0 = no match. */
static double lines_alike(const struct shelf *o, uint32_t i, const struct shelf *n, uint32_t j)
{
	const struct diff_place *a = &o->side->places[i], *b = &n->side->places[j];
	unsigned from_a = a->line - o->side->functions[a->function].first_line;
	unsigned from_b = b->line - n->side->functions[b->function].first_line;
	double s = 4 * calls_alike(a, b) + 3 * same_statement(a, b) + (from_a == from_b);

	if (s < 1 || !diff_like_work(a, a->largest, b, b->largest))
		return 0;
	return s + (a->largest == b->largest);
}

/* Lines that call something else now, between the same neighbours, if their number is equal. */
static void fill_gap(struct diff_side *old, const uint32_t *a, size_t count_a,
		     const struct diff_side *new, const uint32_t *b, size_t count_b)
{
	for (size_t i = 0; count_a == count_b && i < count_a; i++) {
		struct diff_place *x = &old->places[a[i]];
		const struct diff_place *y = &new->places[b[i]];

		if (diff_like_work(x, x->largest, y, y->largest))
			x->common = b[i];
	}
}

/* table[i][j]: the best score for the first i and j lines. */
static void align_lines(const struct shelf *o, const struct lines *a, const struct shelf *n,
			const struct lines *b)
{
	size_t rows = a->count < LINES_MOST ? a->count : LINES_MOST;
	size_t width = (b->count < LINES_MOST ? b->count : LINES_MOST) + 1;
	double *t = need_new((rows + 1) * width * sizeof(*t));
	size_t i, j, to_a = rows, to_b = width - 1;

	for (i = 1; i <= rows; i++)
		for (j = 1; j < width; j++) {
			double s = lines_alike(o, a->places[i - 1], n, b->places[j - 1]);
			double up = t[(i - 1) * width + j], left = t[i * width + j - 1];
			double both = s > 0 ? t[(i - 1) * width + j - 1] + s : 0;

			t[i * width + j] = both >= up && both >= left ? both
					   : up > left		      ? up
								      : left;
		}
	for (i = rows, j = width - 1; i && j;) {
		double here = t[i * width + j];

		if (here == t[(i - 1) * width + j]) {
			i--;
		} else if (here == t[i * width + j - 1]) {
			j--;
		} else {
			fill_gap(o->side, &a->places[i], to_a - i, n->side, &b->places[j],
				 to_b - j);
			i--, j--;
			o->side->places[a->places[i]].common = b->places[j];
			to_a = i;
			to_b = j;
		}
	}
	fill_gap(o->side, a->places, to_a, n->side, b->places, to_b);
	free(t);
}

static void align(struct diff_side *old, struct diff_side *new)
{
	struct shelf o, n;

	for (size_t j = 0; j < new->place_count; j++)
		new->places[j].common = (uint32_t)j;
	for (size_t i = 0; i < old->place_count; i++)
		old->places[i].common = (uint32_t)(new->place_count + i);
	shelf_make(&o, old);
	shelf_make(&n, new);
	match_functions(&o, &n);
	for (size_t i = 0; i < old->function_count; i++)
		if (o.partner[i])
			align_lines(&o, &o.lines[i], &n, &n.lines[o.partner[i] - 1]);
	for (size_t i = 0; i < old->function_count; i++)
		old->functions[i].common =
			o.partner[i] ? o.partner[i] - 1 : (uint32_t)(new->function_count + i);
	for (size_t j = 0; j < new->function_count; j++)
		new->functions[j].common = (uint32_t)j;
	shelf_free(&o);
	shelf_free(&n);
}

static int compare_lines(const struct diff_side *a, const struct diff_side *b)
{
	for (size_t i = 0; i < a->place_count; i++)
		if (a->places[i].line != b->places[i].line)
			return a->places[i].line < b->places[i].line ? -1 : 1;
	return 0;
}

/* A fixed order of two programs, so that the result does not depend on which one is the old one. */
static int compare_programs(const struct diff_side *a, const struct diff_side *b)
{
	if (a->place_count != b->place_count)
		return a->place_count < b->place_count ? -1 : 1;
	if (a->function_count != b->function_count)
		return a->function_count < b->function_count ? -1 : 1;
	return compare_lines(a, b);
}

void diff_align(struct diff_side *old, struct diff_side *new)
{
	if (compare_programs(old, new) > 0)
		align(new, old);
	else
		align(old, new);
}

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

static int by_line(const void *a, const void *b, void *ctx)
{
	const struct diff_place *places = ctx;

	return ORDER(places[*(const uint32_t *)a].line, places[*(const uint32_t *)b].line);
}

static void sort_lines(struct diff_side *s)
{
	FOR_EACH (struct diff_function, f, s->functions, s->function_count) {
		qsort_r(f->places, f->count, sizeof(*f->places), by_line, s->places);
		f->partner = 0;
	}
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

/* Share of lines with a counterpart in the other function. */
static double functions_alike(const struct diff_side *o, const struct diff_function *a,
			      const struct diff_side *n, const struct diff_function *b)
{
	size_t found = 0, most = a->count > b->count ? a->count : b->count;

	for (size_t i = 0; i < a->count; i++) {
		const struct diff_place *x = &o->places[a->places[i]];

		found += ANY_OF(at, b->places, b->count,
				same_statement(x, &n->places[*at]) ||
					calls_alike(x, &n->places[*at]) > 0.6);
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

static double score(const struct diff_side *o, const struct diff_function *a,
		    const struct diff_side *n, const struct diff_function *b)
{
	bool same_name = !strcmp(a->name, b->name), same_file = !strcmp(a->file, b->file);
	bool same_base = !strcmp(owners_base(a->file), owners_base(b->file));
	unsigned tail = common_tail(a->file, b->file);
	double calls = functions_alike(o, a, n, b);

	if (!same_name && calls < 0.6)
		return 0;
	if (same_name && !same_base && !strcmp(a->name, "<module>") && calls < 0.3)
		return 0;
	return 4 * same_name + 3 * same_file + 2 * same_base + 0.1 * (tail > 9 ? 9 : tail) +
	       2 * calls + 0.5 * (a->first_line == b->first_line);
}

COMPARE(by_score, struct diff_match,
	ORDER(y->score, x->score) ?:
	ORDER(x->old < x->new ? x->old : x->new, y->old < y->new ? y->old : y->new) ?:
	ORDER(x->old + x->new, y->old + y->new))

void diff_sort_matches(struct diff_match *all, size_t count)
{
	SORT(all, count, by_score);
}

static void match_functions(struct diff_side *o, struct diff_side *n)
{
	struct diff_match *all = NULL;
	size_t count = 0, room = 0;

	for (uint32_t i = 0; i < o->function_count; i++)
		for (uint32_t j = 0; j < n->function_count; j++) {
			double s = score(o, &o->functions[i], n, &n->functions[j]);

			if (s <= 0)
				continue;
			*need_item(all, count, room) = (struct diff_match){ i, j, s };
		}
	diff_sort_matches(all, count);
	for (size_t k = 0; k < count; k++) {
		struct diff_function *a = &o->functions[all[k].old], *b = &n->functions[all[k].new];

		if (a->partner || b->partner)
			continue;
		a->partner = (uint32_t)all[k].new + 1;
		b->partner = (uint32_t)all[k].old + 1;
	}
	free(all);
}

/* Similarity of two lines of matched functions; 0 = no match. */
static double lines_alike(const struct diff_side *o, uint32_t i, const struct diff_side *n,
			  uint32_t j)
{
	const struct diff_place *a = &o->places[i], *b = &n->places[j];
	unsigned from_a = a->line - o->functions[a->function].first_line;
	unsigned from_b = b->line - n->functions[b->function].first_line;
	double s = 4 * calls_alike(a, b) + 3 * same_statement(a, b) + (from_a == from_b);

	if (s < 1 || !diff_like_work(a, a->largest, b, b->largest))
		return 0;
	return s + (a->largest == b->largest);
}

/* Pairs the lines between two matched ones by order, if equally many call something else now. */
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
static void align_lines(struct diff_side *o, const struct diff_function *a,
			const struct diff_side *n, const struct diff_function *b)
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
			fill_gap(o, &a->places[i], to_a - i, n, &b->places[j], to_b - j);
			i--, j--;
			o->places[a->places[i]].common = b->places[j];
			to_a = i;
			to_b = j;
		}
	}
	fill_gap(o, a->places, to_a, n, b->places, to_b);
	free(t);
}

static void align(struct diff_side *old, struct diff_side *new)
{
	for (size_t j = 0; j < new->place_count; j++)
		new->places[j].common = (uint32_t)j;
	for (size_t i = 0; i < old->place_count; i++)
		old->places[i].common = (uint32_t)(new->place_count + i);
	for (size_t j = 0; j < new->function_count; j++)
		new->functions[j].common = (uint32_t)j;
	sort_lines(old);
	sort_lines(new);
	match_functions(old, new);
	for (size_t i = 0; i < old->function_count; i++) {
		struct diff_function *f = &old->functions[i];

		f->common = (uint32_t)(new->function_count + i);
		if (!f->partner)
			continue;
		f->common = f->partner - 1;
		align_lines(old, f, new, &new->functions[f->common]);
	}
}

static int compare_lines(const struct diff_side *a, const struct diff_side *b)
{
	for (size_t i = 0; i < a->place_count; i++)
		if (a->places[i].line != b->places[i].line)
			return ORDER(a->places[i].line, b->places[i].line);
	return 0;
}

/* A fixed order of two programs, so that the result does not depend on which one is the old one. */
static int compare_programs(const struct diff_side *a, const struct diff_side *b)
{
	return ORDER(a->place_count, b->place_count) ?:
	       ORDER(a->function_count, b->function_count) ?: compare_lines(a, b);
}

void diff_align(struct diff_side *old, struct diff_side *new)
{
	if (compare_programs(old, new) > 0)
		align(new, old);
	else
		align(old, new);
}

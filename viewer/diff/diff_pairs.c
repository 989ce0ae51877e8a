/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs the blocks of the two sides one to one: first by the whole call path, then the rest by ever
 * less of it. Code that was moved, split or rewritten is found by its statement, its operator and
 * the sizes of its blocks. Among several candidates the most similar are paired, independent of
 * which side is the old one. If classes cannot be compared, a pair is a line with all its classes.
 */
#include <math.h>

#include "../base/sorted.h"
#include "diff.h"

#define TRIED_MOST (1u << 20) /* candidate pairs per key; beyond that rows are paired in order */

/* Properties that both rows of a pair must share. */
enum like {
	PATH = 1,
	LINE = 2,
	FUNCTION = 4,
	STATEMENT = 8,	/* the line's text */
	CALL = 16,	/* what the line called */
	OPERATOR = 32,	/* the operator of PyTorch */
	SIZES = 64,	/* number and sizes of the blocks */
	LARGEST = 128,	/* size of the largest block */
	MODULE = 2048,	/* the path of modules */
	DOUBLED = 1024, /* equally many parameters, each larger by one power of two */
	ANY_CLASS = 256,
	NO_LINE = 512, /* everything is one pair, if backward nodes have no names */
};

static const unsigned levels[] = {
	PATH | CALL | OPERATOR,
	LINE | CALL | OPERATOR,
	LINE | CALL | OPERATOR | SIZES | ANY_CLASS,
	FUNCTION | CALL | OPERATOR | SIZES,
	STATEMENT | OPERATOR | SIZES,
	OPERATOR | SIZES,
	STATEMENT | OPERATOR | SIZES | ANY_CLASS,
	FUNCTION | OPERATOR | SIZES | ANY_CLASS,
	LINE,
	STATEMENT | OPERATOR,
	FUNCTION | CALL | OPERATOR,
	OPERATOR | LARGEST,
	FUNCTION | SIZES,
	MODULE | SIZES,
	LINE | SIZES | ANY_CLASS,
	DOUBLED,
};

/* The site of that single pair. */
static const struct diff_site no_line = { .outer = "",
					  .op = "",
					  .operator= "",
					  .module = "",
					  .owner = { .function = "the backward pass and libraries",
						     .file = "" },
					  .caller = { .function = "", .file = "" } };

/* A row without a pair. */
struct free_row {
	uint64_t key;
	uint32_t row, nth; /* in order of time */
};

struct free_rows {
	const struct diff_side *side;
	struct free_row *items;
	size_t count;
};

/* Free rows of both sides with one key. */
struct group {
	const struct free_row *old, *new;
	size_t old_count, new_count;
};

static const struct diff_site *site_of(const struct diff_side *s, const struct diff_row *row)
{
	return &s->sites[row->site];
}

/* ---- similarity of rows */

static uint64_t line_key(const struct diff_side *s, const struct diff_site *site, unsigned like,
			 uint64_t h)
{
	const struct diff_place *inner = diff_innermost(s, site);

	if (!inner)
		return map_hash_text(h, site->owner.function);
	if (like & PATH)
		for (unsigned i = 0; i < site->depth; i++)
			h = map_hash(h, &s->places[site->places[i]].common, sizeof(uint32_t));
	if (like & LINE)
		h = map_hash(h, &inner->common, sizeof(inner->common));
	if (like & FUNCTION)
		h = map_hash(h, &s->functions[inner->function].common, sizeof(uint32_t));
	if (like & STATEMENT)
		h = map_hash(h, &inner->text, sizeof(inner->text));
	return h;
}

static uint64_t key_of(const struct diff *d, const struct diff_side *s, const struct diff_row *row,
		       unsigned like)
{
	const struct diff_site *site = site_of(s, row);
	unsigned category = d->no_classes || like & ANY_CLASS ? 0 : row->category;
	uint64_t h = map_hash(diff_innermost(s, site) != NULL, &category, sizeof(category));

	if (like & NO_LINE)
		return h;
	h = line_key(s, site, like, h);
	if (like & (SIZES | DOUBLED))
		h = map_hash(h, &row->blocks, sizeof(row->blocks));
	if (like & MODULE)
		h = map_hash_text(h, site->module);
	if (like & CALL)
		h = map_hash_text(h, site->op);
	if (like & OPERATOR && !d->no_operators)
		h = map_hash_text(h, site->operator);
	return h;
}

static bool takes_part(const struct diff *d, const struct diff_side *s, const struct diff_row *row,
		       unsigned like)
{
	const struct diff_site *site = site_of(s, row);
	const struct diff_place *inner = diff_innermost(s, site);

	if (row->pair || (like & NO_LINE && inner) ||
	    (like & DOUBLED && row->category != CATEGORY_parameters))
		return false;
	if (!inner || like & (LINE | FUNCTION | PATH))
		return true;
	/* An unknown statement or operator matches nothing. */
	return like & STATEMENT ? inner->text != 0
				: like & OPERATOR
		       ? !d->no_operators && site->operator[0] : true;
}

static const uint64_t *sizes_of(const struct diff_side *s, const struct diff_row *row)
{
	return &s->shot.sizes[row->sizes];
}

bool diff_like_size(uint64_t a, uint64_t b)
{
	return a == b ||
	       (a > DIFF_REMAINDER && b > DIFF_REMAINDER && diff_apart(a, b) <= DIFF_REMAINDER);
}

bool diff_like_sizes(const uint64_t *a, const uint64_t *b, uint64_t count)
{
	while (count && diff_like_size(a[count - 1], b[count - 1]))
		count--;
	return !count;
}

/* Whether one size is the other times the factor; both are rounded up, and large ones can have a
 * remainder. */
static bool scaled_size(uint64_t a, uint64_t b, double factor)
{
	double low = factor * (double)a, high = low;

	low -= factor * (a > DIFF_REMAINDER ? DIFF_REMAINDER : DIFF_SMALLEST - 1);
	high += b > DIFF_REMAINDER ? DIFF_REMAINDER : DIFF_SMALLEST - 1;
	return (double)b >= low && (double)b <= high;
}

/* Share of blocks that are larger by that factor, among those large enough to measure. */
static double scaled_blocks(const uint64_t *x, const uint64_t *y, uint64_t count, double factor)
{
	uint64_t told = 0, fit = 0;

	for (uint64_t i = 0; i < count; i++) {
		bool fits = scaled_size(x[i], y[i], factor);

		if (fits && x[i] == y[i])
			continue;
		told++;
		fit += fits;
	}
	return told ? (double)fit / (double)told : 0;
}

double diff_power_of_two(const uint64_t *x, const uint64_t *y, uint64_t count)
{
	static const double factors[] = { 0.25, 0.5, 2, 4 };

	for (size_t k = 0; k < sizeof(factors) / sizeof(factors[0]); k++)
		if (scaled_blocks(x, y, count, factors[k]) > 0.95)
			return factors[k];
	return 0;
}

static bool like_work(const struct diff *d, const struct diff_row *a, const struct diff_row *b)
{
	const struct diff_place *from = diff_innermost(&d->old, site_of(&d->old, a));
	const struct diff_place *to = diff_innermost(&d->new, site_of(&d->new, b));

	return !from || !to ||
	       diff_like_work(from, sizes_of(&d->old, a)[a->blocks - 1], to,
			      sizes_of(&d->new, b)[b->blocks - 1]);
}

static bool may_pair(const struct diff *d, const struct diff_row *a, const struct diff_row *b,
		     unsigned like)
{
	const uint64_t *x = sizes_of(&d->old, a), *y = sizes_of(&d->new, b);

	if (like & DOUBLED)
		return diff_power_of_two(x, y, a->blocks) != 0;
	if (!(like & SIZES) && !like_work(d, a, b))
		return false;
	if (like & LARGEST)
		return diff_like_size(x[a->blocks - 1], y[b->blocks - 1]);
	return !(like & SIZES) || diff_like_sizes(x, y, a->blocks);
}

/* Similarity of two rows beyond their key; symmetric. */
static double score_of(const struct diff *d, const struct free_row *a, const struct free_row *b)
{
	const struct diff_row *x = &d->old.shot.rows[a->row], *y = &d->new.shot.rows[b->row];
	const struct diff_site *o = site_of(&d->old, x), *n = site_of(&d->new, y);
	const struct diff_place *from = diff_innermost(&d->old, o);
	const struct diff_place *to = diff_innermost(&d->new, n);
	double s = 8 * (x->bytes == y->bytes && x->blocks == y->blocks) - fabs(x->at - y->at);

	s += 4 * !strcmp(o->module, n->module) + 2 * (x->category == y->category);
	s += 2 * !strcmp(o->operator, n->operator);
	if (from && to)
		s += 2 * (d->old.functions[from->function].common ==
			  d->new.functions[to->function].common) +
		     2 * (from->text && from->text == to->text) + (from->common == to->common);
	return s;
}

/* ---- pairing them */

static struct diff_pair *new_pair(struct diff *d, unsigned category)
{
	*need_item(d->pairs, d->pair_count, d->pair_room) =
		(struct diff_pair){ .category = category };
	return &d->pairs[d->pair_count - 1];
}

static void join_row(struct diff *d, bool old, struct diff_row *row)
{
	const struct diff_side *s = old ? &d->old : &d->new;
	struct diff_pair *p = &d->pairs[d->pair_count - 1];

	*(old ? &p->bytes_old : &p->bytes_new) += row->bytes;
	*(old ? &p->blocks_old : &p->blocks_new) += row->blocks;
	*(old ? &p->unused_old : &p->unused_new) += row->unused;
	*(old ? &p->idle_old : &p->idle_new) += row->idle;
	*(old ? &p->old_site : &p->new_site) = site_of(s, row);
	*(old ? &p->old_sizes : &p->new_sizes) = sizes_of(s, row);
	p->at = row->at;
	row->pair = (uint32_t)d->pair_count;
}

static void join(struct diff *d, const struct free_row *a, const struct free_row *b)
{
	struct diff_row *old = &d->old.shot.rows[a->row], *new = &d->new.shot.rows[b->row];

	new_pair(d, new->category);
	join_row(d, true, old);
	join_row(d, false, new);
}

static void pair_in_order(struct diff *d, const struct group *g, unsigned like)
{
	for (size_t i = 0; i < g->old_count && i < g->new_count; i++)
		if (may_pair(d, &d->old.shot.rows[g->old[i].row], &d->new.shot.rows[g->new[i].row],
			     like))
			join(d, &g->old[i], &g->new[i]);
}

static void pair_most_alike(struct diff *d, const struct group *g, unsigned like)
{
	struct diff_match *all = need_new(g->old_count * g->new_count * sizeof(*all));
	size_t count = 0;

	for (size_t i = 0; i < g->old_count; i++)
		for (size_t j = 0; j < g->new_count; j++)
			if (may_pair(d, &d->old.shot.rows[g->old[i].row],
				     &d->new.shot.rows[g->new[j].row], like))
				all[count++] =
					(struct diff_match){ i, j,
							     score_of(d, &g->old[i], &g->new[j]) };
	diff_sort_matches(all, count);
	for (size_t k = 0; k < count; k++) {
		const struct free_row *a = &g->old[all[k].old], *b = &g->new[all[k].new];

		if (!d->old.shot.rows[a->row].pair && !d->new.shot.rows[b->row].pair)
			join(d, a, b);
	}
	free(all);
}

static void pair_all(struct diff *d, const struct group *g)
{
	new_pair(d, d->new.shot.rows[g->new->row].category);
	for (size_t i = 0; i < g->old_count; i++)
		join_row(d, true, &d->old.shot.rows[g->old[i].row]);
	for (size_t j = 0; j < g->new_count; j++)
		join_row(d, false, &d->new.shot.rows[g->new[j].row]);
	d->pairs[d->pair_count - 1].old_site = &no_line;
	d->pairs[d->pair_count - 1].new_site = &no_line;
}

static void pair_group(struct diff *d, const struct group *g, unsigned like)
{
	if (like & NO_LINE)
		pair_all(d, g);
	else if (g->old_count > TRIED_MOST / g->new_count)
		pair_in_order(d, g, like);
	else
		pair_most_alike(d, g, like);
}

/* ---- free rows, by key */

static int by_time(const void *a, const void *b, void *ctx)
{
	const struct diff_row *rows = ctx;
	const struct free_row *x = a, *y = b;
	uint64_t v = rows[x->row].first_seq, w = rows[y->row].first_seq;

	return ORDER(v, w);
}

COMPARE(by_key, struct free_row, ORDER(x->key, y->key) ?: ORDER(x->nth, y->nth))

static void put_in_order(struct free_rows *out, struct diff_side *s)
{
	*out = (struct free_rows){ .side = s, .count = s->shot.count };
	out->items = need_new((s->shot.count + 1) * sizeof(*out->items));
	for (size_t i = 0; i < out->count; i++)
		out->items[i].row = (uint32_t)i;
	if (out->count)
		qsort_r(out->items, out->count, sizeof(*out->items), by_time, s->shot.rows);
	for (size_t i = 0; i < out->count; i++) {
		out->items[i].nth = (uint32_t)i;
		s->shot.rows[out->items[i].row].at = (double)i / (double)out->count;
	}
}

static void keep_free(struct free_rows *f, const struct diff *d, unsigned like,
		      struct free_rows *out)
{
	*out = (struct free_rows){ .side = f->side };
	out->items = need_new((f->count + 1) * sizeof(*out->items));
	for (size_t i = 0; i < f->count; i++) {
		const struct diff_row *row = &f->side->shot.rows[f->items[i].row];

		if (!takes_part(d, f->side, row, like))
			continue;
		out->items[out->count] = f->items[i];
		out->items[out->count++].key = key_of(d, f->side, row, like);
	}
	SORT(out->items, out->count, by_key);
}

static size_t same_key(const struct free_rows *f, size_t at)
{
	size_t n = 0;

	while (at + n < f->count && f->items[at + n].key == f->items[at].key)
		n++;
	return n;
}

static void pair_level(struct diff *d, struct free_rows *old, struct free_rows *new, unsigned like)
{
	struct free_rows o, n;
	size_t i = 0, j = 0;

	keep_free(old, d, like, &o);
	keep_free(new, d, like, &n);
	while (i < o.count && j < n.count) {
		struct group g = { &o.items[i], &n.items[j], same_key(&o, i), same_key(&n, j) };

		if (g.old->key == g.new->key)
			pair_group(d, &g, like);
		i += g.old->key <= g.new->key ? g.old_count : 0;
		j += g.new->key <= g.old->key ? g.new_count : 0;
	}
	free(o.items);
	free(n.items);
}

static void leftovers(struct diff *d, struct diff_side *s)
{
	FOR_EACH (struct diff_row, row, s->shot.rows, s->shot.count) {
		if (row->pair)
			continue;
		new_pair(d, row->category);
		join_row(d, s == &d->old, row);
	}
}

static bool has_operators(const struct diff_side *s)
{
	return ANY_OF(x, s->sites, s->site_count, x->operator[0]);
}

void diff_pair_rows(struct diff *d)
{
	struct free_rows old, new;

	diff_align(&d->old, &d->new);
	d->no_operators = !has_operators(&d->old) || !has_operators(&d->new);
	put_in_order(&old, &d->old);
	put_in_order(&new, &d->new);
	if (d->no_nodes)
		pair_level(d, &old, &new, NO_LINE);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		pair_level(d, &old, &new, levels[i]);
	free(old.items);
	free(new.items);
	leftovers(d, &d->old);
	leftovers(d, &d->new);
}

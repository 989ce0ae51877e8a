/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causes that enlarge many blocks by one factor: another size of elements, another batch or
 * sequence.
 */
#include <math.h>

#include "../base/sorted.h"
#include "diff_causes.h"

/* Whether each block is larger by the factor. The allocator rounds small blocks up. A large block
 * can exceed its request by up to a MiB, if the remainder is too small to be used; the old block's
 * remainder is multiplied too. */
static bool fits(const struct diff_pair *p, double factor, bool spare)
{
	double want = factor * (double)p->bytes_old, blocks = (double)p->blocks_new;
	double slack = 0.03 * want + 512 * blocks;

	if (spare && fmax((double)p->bytes_old, (double)p->bytes_new) > 1048576 * blocks)
		slack += fmin(1048576 * blocks * fmax(factor, 1), 0.12 * want);
	return p->bytes_old && p->blocks_old == p->blocks_new &&
	       fabs((double)p->bytes_new - want) <= slack;
}

static double factor_of(const struct diff_pair *p)
{
	return (double)p->bytes_new / (double)p->bytes_old;
}

/* ---- elements of another size */

/* Parameters that all became larger by the same power of two. */
struct elements {
	double factor; /* 0: they did not */
	uint64_t count;
	double old, new;
	bool cast; /* an operator converted them, on one side at least */
};

static bool is_cast(const struct diff_site *site)
{
	return !strcmp(site->operator, "to_dtype") || !strcmp(site->operator, "_to_copy");
}

/* Sizes of all parameters of a side, ascending. */
struct sizes {
	uint64_t *items;
	size_t count, room;
};

static void add_sizes(struct sizes *s, const uint64_t *items, uint64_t count)
{
	for (uint64_t i = 0; items && i < count; i++)
		*need_item(s->items, s->count, s->room) = items[i];
}

/* Removes sizes that occur on both sides, wherever those parameters were made. */
static void leave_different(struct sizes *a, struct sizes *b)
{
	size_t i = 0, j = 0, kept_a = 0, kept_b = 0;

	while (i < a->count || j < b->count) {
		bool both = i < a->count && j < b->count;

		if (both && diff_like_size(a->items[i], b->items[j])) {
			i++, j++;
			continue;
		}
		if (j == b->count || (both && a->items[i] < b->items[j]))
			a->items[kept_a++] = a->items[i++];
		else
			b->items[kept_b++] = b->items[j++];
	}
	a->count = kept_a;
	b->count = kept_b;
}

static double factor_of_sizes(const struct sizes *a, const struct sizes *b)
{
	return a->count && a->count == b->count ? diff_power_of_two(a->items, b->items, a->count)
						: 0;
}

static struct elements elements_of(const struct diff *d)
{
	struct sizes old = { 0 }, new = { 0 };
	struct elements e = { 0 };

	FOR_EACH (const struct diff_pair, p, d->pairs, d->pair_count) {
		if (p->category != CATEGORY_parameters)
			continue;
		add_sizes(&old, p->old_sizes, p->blocks_old);
		add_sizes(&new, p->new_sizes, p->blocks_new);
		if (diff_differs(p) && ((p->old_site && is_cast(p->old_site)) ||
					(p->new_site && is_cast(p->new_site))))
			e.cast = true;
	}
	SORT(old.items, old.count, sorted_numbers);
	SORT(new.items, new.count, sorted_numbers);
	e.factor = factor_of_sizes(&old, &new);
	if (!e.factor) { /* maybe only some: half of a large one can be as large as another */
		leave_different(&old, &new);
		e.factor = factor_of_sizes(&old, &new);
	}
	e.count = old.count;
	e.old = (double)SUM_OF(x, old.items, old.count, *x);
	e.new = (double)SUM_OF(x, new.items, new.count, *x);
	free(old.items);
	free(new.items);
	return e;
}

/* Results of a function that began, or ceased, to cast to these parameters' type. */
static bool shows_cast(const struct diff_pair *p, double factor)
{
	bool one_sided = !p->bytes_old || !p->bytes_new;

	if (!diff_is_result(p) || (diff_delta(p) > 0) != (factor > 1))
		return false;
	return one_sided ? is_cast(diff_site_of(p)) : fits(p, factor, true);
}

static bool in_function_that_casts(const struct diff *d, const struct diff_pair *p, double factor)
{
	return ANY_OF(x, d->pairs, d->pair_count,
		      diff_differs(x) && shows_cast(x, factor) && diff_same_place(d, x, p, false));
}

static bool is_of_cast(const struct diff *d, const struct diff_pair *p, const void *facts)
{
	const struct elements *e = facts;

	if (p->category == CATEGORY_parameters)
		return true;
	if (1u << p->category & CLASSES_THAT(FOLLOW_TRAINING))
		return (diff_delta(p) > 0) == (e->factor > 1);
	return p->category == CATEGORY_backward_temporaries ||
	       (diff_is_result(p) && in_function_that_casts(d, p, e->factor));
}

static bool fits_elements(UNUSED const struct diff *d, const struct diff_pair *p, const void *facts)
{
	return fits(p, ((const struct elements *)facts)->factor, true);
}

/* Requires all parameters, or a visible cast; else the cause might be a larger vocabulary. */
void diff_find_precision(struct diff *d, const struct diff_sums *s)
{
	struct elements e = elements_of(d);
	bool all = e.old > 0.8 * s->old[CATEGORY_parameters] &&
		   e.new > 0.8 * s->new[CATEGORY_parameters];
	struct diff_rule rule = { .cause = all ? CAUSE_PRECISION : CAUSE_ELEMENTS,
				  .takes = all ? fits_elements : is_of_cast,
				  .facts = &e,
				  /* the weights, or what they are cast for */
				  .named_by =
					  all ? 0 : CLASS_BIT(parameters) | CLASS_BIT(activations),
				  .factor = e.factor,
				  .count = e.count };

	if (e.factor && (all || e.cast))
		diff_collect(d, &rule);
}

/* ---- batch and sequence: results of a pass, by one factor (scores of attention by its square) */

struct scale {
	double base;
	bool square;
	bool by_inputs;
};

static double weight_of(const struct diff *d, double factor)
{
	return (double)SUM_OF(
		p, d->pairs, d->pair_count,
		diff_is_result(p) && diff_differs(p) && fits(p, factor, false) ? diff_size(p) : 0);
}

static double heaviest_factor(const struct diff *d, double *weight)
{
	double best = 1;

	*weight = 0;
	FOR_EACH (const struct diff_pair, p, d->pairs, d->pair_count) {
		double w;

		if (!diff_is_result(p) || !diff_differs(p) || !p->bytes_old || !p->bytes_new ||
		    p->blocks_old != p->blocks_new || fabs(factor_of(p) - 1) < 0.02)
			continue;
		w = weight_of(d, factor_of(p));
		if (w > *weight) {
			*weight = w;
			best = factor_of(p);
		}
	}
	return best;
}

/* The inputs are the best evidence, if they are large enough to measure. If the largest one of a
 * line is unchanged, it shows no factor. */
static double factor_of_inputs(const struct diff *d)
{
	FOR_EACH (const struct diff_pair, p, d->pairs, d->pair_count)
		if (p->category == CATEGORY_inputs && diff_differs(p) && p->bytes_old &&
		    p->blocks_old == p->blocks_new && p->bytes_old >= 2048 * p->blocks_old &&
		    p->old_sizes[p->blocks_old - 1] != p->new_sizes[p->blocks_new - 1])
			return factor_of(p);
	return 0;
}

/* Blocks multiplied in number: a loop over a longer sequence. */
static bool repeats(const struct diff_pair *p, double factor)
{
	double bytes = factor * (double)p->bytes_old, blocks = factor * (double)p->blocks_old;

	return p->bytes_old && p->blocks_old != p->blocks_new &&
	       fabs((double)p->bytes_new - bytes) < 0.05 * bytes &&
	       fabs((double)p->blocks_new - blocks) < 0.05 * blocks;
}

static bool goes_with(UNUSED const struct diff *d, const struct diff_pair *p, const void *facts)
{
	const struct scale *s = facts;

	return fits(p, s->base, true) || (s->square && fits(p, s->base * s->base, true)) ||
	       (s->by_inputs && repeats(p, s->base));
}

/* Bytes of results on one side: all, those that changed by the factor, and the largest line. */
struct share {
	double all, fit, most;
};

static void add_share(struct share *s, uint64_t bytes, bool goes)
{
	s->all += (double)bytes;
	s->fit += goes ? (double)bytes : 0;
	s->most = goes ? fmax(s->most, (double)bytes) : s->most;
}

/* Most of the bytes, also without the line that has the most. */
static bool is_most(const struct share *s, bool by_inputs)
{
	double rest = s->all - s->most;

	if (s->fit <= 0.5 * s->all)
		return false;
	return rest > 0.02 * s->all ? s->fit - s->most > 0.5 * rest : by_inputs;
}

/* A batch enlarges nearly all results of a pass, a wider layer only its own. So most of the old and
 * of the new bytes must have changed by the factor, and not in a single line only. */
static bool is_general(const struct diff *d, const struct scale *s)
{
	struct share old = { 0 }, new = { 0 };
	bool results = false;

	FOR_EACH (const struct diff_pair, p, d->pairs, d->pair_count) {
		bool goes = diff_differs(p) && goes_with(d, p, s);

		if (!diff_is_result(p) || p->finding)
			continue;
		add_share(&old, p->bytes_old, goes);
		add_share(&new, p->bytes_new, goes);
		if (goes && p->category != CATEGORY_inputs)
			results = true;
	}
	return results && is_most(&old, s->by_inputs) && is_most(&new, s->by_inputs);
}

/* f: the factor of most bytes, which might be the square of the inputs' factor. */
static struct scale scale_of(const struct diff *d, double f, double *weight)
{
	double inputs = factor_of_inputs(d), root = sqrt(f), other;

	if (inputs > 0 && fabs(inputs / f - 1) < 0.1)
		return (struct scale){ .base = inputs,
				       .square = weight_of(d, inputs * inputs) > 0 };
	other = weight_of(d, root);
	if ((inputs > 0 && fabs(inputs / root - 1) < 0.1) ||
	    (other > 0.02 * *weight && (f > 1.2 || f < 0.8))) {
		*weight += other;
		return (struct scale){ .base = inputs > 0 ? inputs : root, .square = true };
	}
	other = weight_of(d, f * f);
	*weight += other;
	return (struct scale){ .base = f, .square = other > 0 };
}

/* Weights changed in the same direction and inputs did not: wider layers, or a larger
 * vocabulary. */
static bool is_wider(const struct diff *d, const struct diff_sums *s, double factor)
{
	double change = s->new[CATEGORY_parameters] - s->old[CATEGORY_parameters];

	return factor_of_inputs(d) == 0 && change * (factor - 1) > 0 &&
	       fabs(change) > 0.01 * s->old[CATEGORY_parameters];
}

void diff_find_scale(struct diff *d, const struct diff_sums *sums)
{
	double weight, f = heaviest_factor(d, &weight);
	struct scale s;

	if (weight <= 0)
		return;
	s = scale_of(d, f, &weight);
	s.by_inputs = factor_of_inputs(d) > 0;
	if (!is_general(d, &s) || is_wider(d, sums, s.base))
		return;
	diff_collect(d, &(struct diff_rule){ .cause = CAUSE_SCALE,
					     .classes = ~OF_THE_MODEL,
					     .takes = goes_with,
					     .facts = &s,
					     .named_by = CLASSES_THAT(ARE_OF_FORWARD),
					     .factor = s.base,
					     .square = s.square });
}

/* ---- results that began, or ceased, to be cast to smaller elements, with equal inputs and
 * parameters */

void diff_find_casts(struct diff *d, const struct diff_sums *s)
{
	double before = s->old[CATEGORY_activations], after = s->new[CATEGORY_activations];
	double parameters = s->old[CATEGORY_parameters];
	static const struct diff_rule rule = { .cause = CAUSE_CASTS,
					       .classes = DIFF_OF_PASSES,
					       .named_by = CLASS_BIT(activations) };

	if (d->old.casts == d->new.casts || factor_of_inputs(d) > 0 ||
	    fabs(s->new[CATEGORY_parameters] - parameters) > 0.01 * parameters)
		return;
	if (d->new.casts ? after < 0.9 * before : before < 0.9 * after)
		diff_collect(d, &rule);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes in a program make of many differences one finding: a batch, a precision, a layer, a
 * list that keeps things, checkpointing, an optimizer. Each cause is a test that takes pairs; what
 * no cause takes stays a line of code by itself (diff_findings.c).
 */
#include <math.h>
#include <string.h>

#include "diff.h"

#define BIT(c)	       (1u << CATEGORY_##c)
#define PASS_RESULTS   (BIT(activations) | BIT(inputs) | BIT(forward_temporaries))
#define MODEL_FOLLOWED (BIT(gradients) | BIT(optimizer_state))

struct sums {
	double old[CATEGORIES], new[CATEGORIES];
};

static void sum_up(const struct diff *d, struct sums *s)
{
	*s = (struct sums){ 0 };
	for (size_t i = 0; i < d->pair_count; i++) {
		s->old[d->pairs[i].category] += (double)d->pairs[i].bytes_old;
		s->new[d->pairs[i].category] += (double)d->pairs[i].bytes_new;
	}
}

/* The same blocks, each as large by the factor. Small ones are rounded up by the allocator; a large
 * one may get up to a MiB more than it asked for, if what is left over is too little to be used. */
static bool fits(const struct diff_pair *p, double factor, bool spare)
{
	double want = factor * (double)p->bytes_old, blocks = (double)p->blocks_new;
	double slack = 0.03 * want + 512 * blocks;

	if (spare && fmax((double)p->bytes_old, (double)p->bytes_new) > 1048576 * blocks)
		slack += fmin(1048576 * blocks, 0.12 * want);
	return p->bytes_old && p->blocks_old == p->blocks_new &&
	       fabs((double)p->bytes_new - want) <= slack;
}

static bool scaled(const struct diff_pair *p, double factor)
{
	return fits(p, factor, true);
}

static double factor_of(const struct diff_pair *p)
{
	return (double)p->bytes_new / (double)p->bytes_old;
}

/* ---- what grows from step to step on one side only */

static const struct leak *leak_at(const struct leaks *all, const struct diff_site *site)
{
	for (size_t i = 0; site && i < all->count; i++)
		if (owners_same(&all->items[i].owner, &site->owner))
			return &all->items[i];
	return NULL;
}

static bool takes_kept(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	const struct leak *new = leak_at(&d->new_leaks, p->new_site);
	const struct leak *old = leak_at(&d->old_leaks, p->old_site);
	const bool *gained = ctx;
	uint64_t before = old ? old->bytes_per_step : 0, after = new ? new->bytes_per_step : 0;

	if (p->category == CATEGORY_parameters || p->category == CATEGORY_optimizer_state)
		return false;
	return *gained ? diff_delta(p) > 0 && after > before + before / 4
		       : diff_delta(p) < 0 && before > after + after / 4;
}

static void find_kept(struct diff *d)
{
	static const bool gained = true, lost = false;

	diff_collect(d, CAUSE_KEPT, 0, takes_kept, &gained);
	diff_collect(d, CAUSE_KEPT, 0, takes_kept, &lost);
}

/* ---- elements of another size */

static bool takes_factor(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	(void)d;
	return scaled(p, *(const double *)ctx);
}

static void find_precision(struct diff *d, const struct sums *s)
{
	static const double factors[] = { 0.25, 0.5, 2, 4 };
	double sum;

	for (size_t k = 0; k < sizeof(factors) / sizeof(factors[0]); k++) {
		sum = 0;
		for (size_t i = 0; i < d->pair_count; i++)
			if (d->pairs[i].category == CATEGORY_parameters &&
			    diff_differs(&d->pairs[i]) && scaled(&d->pairs[i], factors[k]))
				sum += (double)d->pairs[i].bytes_old;
		if (sum > 0.8 * s->old[CATEGORY_parameters] && sum > 0) {
			struct diff_finding *f =
				diff_collect(d, CAUSE_PRECISION, 0, takes_factor, &factors[k]);

			f->factor = factors[k];
			return;
		}
	}
}

/* ---- batch and sequence: what a pass makes, by one factor (scores of attention by its square) */

struct scale {
	double base;
	bool square;
};

static bool is_pass_result(const struct diff_pair *p)
{
	return 1u << p->category & PASS_RESULTS;
}

static double weight_of(const struct diff *d, double factor)
{
	double w = 0;

	for (size_t i = 0; i < d->pair_count; i++)
		if (is_pass_result(&d->pairs[i]) && diff_differs(&d->pairs[i]) &&
		    fits(&d->pairs[i], factor, false))
			w += fabs((double)diff_delta(&d->pairs[i]));
	return w;
}

static double heaviest_factor(const struct diff *d, double *weight)
{
	double best = 1;

	*weight = 0;
	for (size_t i = 0; i < d->pair_count; i++) {
		const struct diff_pair *p = &d->pairs[i];
		double w;

		if (!is_pass_result(p) || !diff_differs(p) || !p->bytes_old || !p->bytes_new ||
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

/* A batch makes nearly all that a pass makes larger, a wider layer only its own results. */
static bool is_general(const struct diff *d, const struct scale *s)
{
	double all = 0, fit = 0;
	bool results = false;

	for (size_t i = 0; i < d->pair_count; i++) {
		const struct diff_pair *p = &d->pairs[i];
		bool goes = diff_differs(p) &&
			    (scaled(p, s->base) || (s->square && scaled(p, s->base * s->base)));

		if (!is_pass_result(p) || p->finding || !p->bytes_old)
			continue;
		all += (double)p->bytes_old;
		fit += goes ? (double)p->bytes_old : 0;
		results |= goes && p->category != CATEGORY_inputs;
	}
	return results && fit > 0.5 * all;
}

static bool takes_scale(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	const struct scale *s = ctx;

	(void)d;
	if (1u << p->category & (BIT(parameters) | MODEL_FOLLOWED | BIT(buffers)))
		return false;
	return scaled(p, s->base) || (s->square && scaled(p, s->base * s->base));
}

/* The inputs say it best, where they are large enough to tell. */
static double factor_of_inputs(const struct diff *d)
{
	for (size_t i = 0; i < d->pair_count; i++) {
		const struct diff_pair *p = &d->pairs[i];

		if (p->category == CATEGORY_inputs && diff_differs(p) && p->bytes_old &&
		    p->blocks_old == p->blocks_new && p->bytes_old >= 2048 * p->blocks_old)
			return factor_of(p);
	}
	return 0;
}

/* f: what most bytes grew by, which may be the square of what the inputs did. */
static struct scale scale_of(const struct diff *d, double f, double *weight)
{
	double inputs = factor_of_inputs(d), root = sqrt(f), other;

	if (inputs > 0 && fabs(inputs / f - 1) < 0.1)
		return (struct scale){ inputs, weight_of(d, inputs * inputs) > 0 };
	other = weight_of(d, root);
	if ((inputs > 0 && fabs(inputs / root - 1) < 0.1) ||
	    (other > 0.02 * *weight && (f > 1.2 || f < 0.8))) {
		*weight += other;
		return (struct scale){ inputs > 0 ? inputs : root, true };
	}
	other = weight_of(d, f * f);
	*weight += other;
	return (struct scale){ f, other > 0 };
}

static void find_scale(struct diff *d)
{
	double weight, f = heaviest_factor(d, &weight);
	struct diff_finding *made;
	struct scale s;

	if (weight <= 0)
		return;
	s = scale_of(d, f, &weight);
	if (!is_general(d, &s))
		return;
	made = diff_collect(d, CAUSE_SCALE, PASS_RESULTS, takes_scale, &s);
	if (!made)
		return;
	made->factor = s.base;
	made->square = s.square;
}

/* ---- checkpointing */

static bool takes_recomputed(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	const struct diff_site *site = p->old_site ? p->old_site : p->new_site;
	bool less = diff_delta(p) < 0;

	(void)ctx;
	return p->category == CATEGORY_activations && site->module[0] && less == d->new.recomputes;
}

static void find_recompute(struct diff *d)
{
	if (d->old.recomputes != d->new.recomputes)
		diff_collect(d, CAUSE_RECOMPUTE, 0, takes_recomputed, NULL);
}

/* ---- parameters, and what there is for each of them */

/* It changed as the parameters did: as many bytes for each of theirs as before. */
static bool follows(const struct sums *s, unsigned category)
{
	double p0 = s->old[CATEGORY_parameters], p1 = s->new[CATEGORY_parameters];
	double before = p0 > 0 ? s->old[category] / p0 : 0;
	double after = p1 > 0 ? s->new[category] / p1 : 0;

	if ((s->new[category] - s->old[category]) * (p1 - p0) <= 0)
		return false;
	return p0 <= 0 || p1 <= 0 || fabs(after - before) <= 0.15 * fmax(before, after);
}

/* At many moments only some of them are there. */
static bool gradients_follow(const struct sums *s, double parameters)
{
	double change = s->new[CATEGORY_gradients] - s->old[CATEGORY_gradients];

	return change * parameters > 0 && fabs(change) < 1.2 * fabs(parameters);
}

struct model_change {
	bool more, gradients, state, results;
};

static bool same_way(const struct diff_pair *p, bool more)
{
	return more ? diff_delta(p) > 0 : diff_delta(p) < 0;
}

/* What more or wider layers make; a batch has taken its own before. */
static bool is_result(const struct diff_pair *p, bool more)
{
	return is_pass_result(p) && same_way(p, more) && p->category != CATEGORY_inputs;
}

static bool takes_model(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	const struct model_change *m = ctx;

	(void)d;
	if (!same_way(p, m->more))
		return false;
	return p->category == CATEGORY_parameters || p->category == CATEGORY_buffers ||
	       (m->gradients && p->category == CATEGORY_gradients) ||
	       (m->state && p->category == CATEGORY_optimizer_state) ||
	       (m->results && is_result(p, m->more)) ||
	       p->category == CATEGORY_optimizer_temporaries;
}

static void find_model(struct diff *d, const struct sums *s)
{
	double change = s->new[CATEGORY_parameters] - s->old[CATEGORY_parameters];
	struct model_change m = { .more = change > 0,
				  .gradients = gradients_follow(s, change),
				  .state = follows(s, CATEGORY_optimizer_state) };

	if (change == 0)
		return;
	for (size_t i = 0; i < d->pair_count; i++)
		m.results |= !d->pairs[i].finding && is_result(&d->pairs[i], m.more);
	/* A copy of the weights has neither gradients nor state. */
	if ((s->new[CATEGORY_optimizer_state] > 0 && !m.state) ||
	    (!m.gradients && !m.state && !m.results))
		return;
	diff_collect(d, CAUSE_MODEL, BIT(parameters) | BIT(activations), takes_model, &m);
}

/* ---- what there is for the same parameters */

static bool takes_class(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	(void)d;
	return p->category == *(const unsigned *)ctx;
}

static void find_class(struct diff *d, const struct sums *s, enum diff_cause cause,
		       unsigned category)
{
	if (s->new[category] != s->old[category])
		diff_collect(d, cause, 0, takes_class, &category);
}

void diff_causes(struct diff *d)
{
	struct sums s;

	sum_up(d, &s);
	find_kept(d);
	find_precision(d, &s);
	find_scale(d);
	find_recompute(d);
	find_model(d, &s);
	find_class(d, &s, CAUSE_OPTIMIZER, CATEGORY_optimizer_state);
	find_class(d, &s, CAUSE_GRADIENTS, CATEGORY_gradients);
}

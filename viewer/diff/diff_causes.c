/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes in a program that combine many differences into one finding: another batch or precision
 * (diff_factors.c), a layer, a growing list, checkpointing, frozen parameters, an optimizer. Each
 * cause is a test that selects pairs. The remaining pairs stay single lines of code
 * (diff_findings.c).
 */
#include "diff_causes.h"

#include <math.h>

#include "../../format/record.h"
#include "../base/ending.h"

/*
 * Gradients that one program frees between its steps and the other keeps: zeroed in place
 * (set_to_none=False), or never cleared. The other program then has them at other moments, and the
 * gradients that backward computes are a second copy. The finding names the line of zero_grad. That
 * allocates nothing, so it is known from what it freed, possibly on the other side only.
 */

#define FEWEST 2 /* least number of steps: there is nothing to clear before the first one */

static bool is_zero_grad(const struct frame *f)
{
	return !strcmp(ending_behind(f->function, '.'), "zero_grad") &&
	       (strstr(f->file, "torch/optim/") || strstr(f->file, "torch/nn/modules/"));
}

/* The program's line that calls zero_grad. */
static bool find_line(struct diff_side *s, struct owner *out)
{
	const struct map *ids = &s->recording.defs.nodes.ids;
	const struct defs_node *nodes = s->recording.defs.nodes.items;
	struct stacks *st = &s->timeline.stacks;

	for (size_t i = 0; i < ids->room; i++) {
		size_t k = 0;

		if (!ids->slots[i].used || nodes[ids->slots[i].value].frame != GMT_FRAME_PYTHON)
			continue;
		stacks_read_python(st, (uint32_t)ids->slots[i].key);
		if (!st->count || !is_zero_grad(&st->frames[0]))
			continue;
		while (k < st->count && owners_is_plumbing(st->frames[k].file))
			k++;
		if (k == st->count)
			continue;
		*out = (struct owner){ .function = st->frames[k].function,
				       .file = st->frames[k].file,
				       .line = st->frames[k].line };
		return true;
	}
	return false;
}

bool diff_has_gradients(const struct diff_side *s)
{
	return s->timeline.model.spans.backwards || s->shot.bytes[CATEGORY_gradients] ||
	       s->at_peak.bytes[CATEGORY_gradients];
}

bool diff_keeps_gradients(const struct diff *d)
{
	return diff_has_gradients(&d->old) && diff_has_gradients(&d->new) &&
	       classify_clears_gradients(&d->old.timeline.model) !=
		       classify_clears_gradients(&d->new.timeline.model) &&
	       steps_number(&d->old.timeline.steps) >= FEWEST &&
	       steps_number(&d->new.timeline.steps) >= FEWEST;
}

/* A gradient to which another is added looks like a temporary if its end was not recorded. */
static bool is_kept_gradient(UNUSED const struct diff *d, const struct diff_pair *p,
			     UNUSED const void *facts)
{
	return p->category == CATEGORY_gradients ||
	       (p->category == CATEGORY_backward_temporaries && p->blocks_old != p->blocks_new);
}

static void diff_find_cleared(struct diff *d)
{
	bool cleared = classify_clears_gradients(&d->old.timeline.model), known;
	struct owner line;

	if (!diff_keeps_gradients(d))
		return;
	known = find_line(&d->new, &line) || find_line(&d->old, &line);
	diff_collect(d, &(struct diff_rule){ .cause = CAUSE_GRADIENTS,
					     .direction = cleared ? 1 : -1,
					     .takes = is_kept_gradient,
					     .named_by = CLASS_BIT(gradients),
					     .line = known ? &line : NULL });
}

static void sum_up_pairs(const struct diff *d, struct diff_sums *s)
{
	*s = (struct diff_sums){ 0 };
	for (size_t i = 0; i < d->pair_count; i++) {
		s->old[d->pairs[i].category] += (double)d->pairs[i].bytes_old;
		s->new[d->pairs[i].category] +=
			(double)(d->pairs[i].remainders ? d->pairs[i].bytes_old
							: d->pairs[i].bytes_new);
	}
}

/* ---- growth from step to step on one side only */

static uint64_t leaked_at(const struct diff_side *s, const struct diff_site *site)
{
	const struct leak *l = leaks_at(&s->leaks, UINT_MAX, &site->owner);

	return l ? l->bytes_per_step : 0;
}

/* The line hardly grows on the other side, and no other line grows there in its place. */
static bool is_kept(const struct diff *d, const struct diff_pair *p, UNUSED const void *facts)
{
	uint64_t before = leaked_at(&d->old, p->old_site ? p->old_site : p->new_site);
	uint64_t after = leaked_at(&d->new, diff_site_of(p));
	int64_t more = (int64_t)(d->new.leaks.bytes_per_step - d->old.leaks.bytes_per_step);

	if (diff_site_of(p)->signs & STACK_STEP)
		return false;
	return diff_delta(p) > 0 ? after / 4 > before && more > (int64_t)(after / 2)
				 : before / 4 > after && -more > (int64_t)(before / 2);
}

/* ---- models that are no longer trained */

static bool is_idle(UNUSED const struct diff *d, const struct diff_pair *p,
		    UNUSED const void *facts)
{
	int64_t idle = (int64_t)(p->idle_new - p->idle_old), change = diff_delta(p);

	return (idle > 0) == (change > 0) && 2 * llabs(idle) > llabs(change);
}

/* ---- fewer or more of the same parameters are trained */

static double trained_share(const struct diff_shot *s)
{
	return (double)s->trained / (double)s->bytes[CATEGORY_parameters];
}

/* The trained share changed by itself, not with the parameters. Autocast's copies make leaves of
 * weights that get no gradient. */
static void find_trained(struct diff *d)
{
	double before = (double)d->old.shot.trained, after = (double)d->new.shot.trained;
	double change = after - before;
	double parameters = (double)d->new.shot.bytes[CATEGORY_parameters] -
			    (double)d->old.shot.bytes[CATEGORY_parameters];
	/* Memory that a weight needs when it is trained; forward results are made in any case. */
	struct diff_rule rule = { .cause = CAUSE_TRAINED,
				  .direction = change > 0 ? 1 : -1,
				  .classes = CLASSES_THAT(FOLLOW_TRAINING) |
					     CLASS_BIT(activations) |
					     CLASS_BIT(backward_temporaries) |
					     CLASS_BIT(optimizer_temporaries) };

	if (before <= 0 || after <= 0 || fabs(change) < 0.05 * fmax(before, after) ||
	    fabs(change - parameters) < 0.5 * fabs(change) ||
	    fabs(trained_share(&d->new.shot) - trained_share(&d->old.shot)) < 0.02 ||
	    diff_gradients(&d->old) == diff_gradients(&d->new))
		return;
	diff_collect(d, &rule);
}

/* ---- parameters, and memory proportional to them */

/* Whether a class changed in proportion to the parameters, of which only some might be trained: the
 * bytes per parameter are unchanged. */
static bool follows(const struct diff *d, const struct diff_sums *s, unsigned category)
{
	bool known = d->old.shot.trained && d->new.shot.trained;
	double p0 = known ? (double)d->old.shot.trained : s->old[CATEGORY_parameters];
	double p1 = known ? (double)d->new.shot.trained : s->new[CATEGORY_parameters];
	double before = p0 > 0 ? s->old[category] / p0 : 0;
	double after = p1 > 0 ? s->new[category] / p1 : 0;

	if ((s->new[category] - s->old[category]) * (p1 - p0) <= 0)
		return false;
	return p0 <= 0 || p1 <= 0 || fabs(after - before) <= 0.15 * fmax(before, after);
}

/* At many moments only some of the gradients exist. */
static bool gradients_follow(const struct diff_sums *s, double parameters)
{
	double change = s->new[CATEGORY_gradients] - s->old[CATEGORY_gradients];

	return change * parameters > 0 && fabs(change) < 1.2 * fabs(parameters);
}

struct model_change {
	bool more, gradients, state, results;
};

/* Results of more or wider layers. Changes by another batch were selected before. */
static bool is_result(const struct diff_pair *p, bool more)
{
	return category_in(p->category, FORWARD_RESULTS) && diff_delta(p) * (more ? 1 : -1) > 0;
}

/* Whether it changed with the model; gradients and state only if they follow the weights here. */
static bool is_of_model(UNUSED const struct diff *d, const struct diff_pair *p, const void *facts)
{
	const struct model_change *m = facts;

	return category_in(p->category, CLASSES_THAT(ARE_WEIGHTS)) ||
	       (m->gradients && p->category == CATEGORY_gradients) ||
	       (m->state && p->category == CATEGORY_optimizer_state) ||
	       (m->results && is_result(p, m->more)) ||
	       p->category == CATEGORY_backward_temporaries ||
	       p->category == CATEGORY_optimizer_temporaries;
}

/* Bytes of other classes that changed the other way at the same line: the same blocks, to which the
 * two sides give different classes. */
static int64_t other_class(const struct diff *d, const struct diff_pair *p)
{
	return (int64_t)SUM_OF(q, d->pairs, d->pair_count,
			       q->category != p->category &&
					       (diff_delta(q) < 0) != (diff_delta(p) < 0) &&
					       owners_same(diff_owner(q), diff_owner(p))
				       ? diff_delta(q)
				       : 0);
}

/* Change of the parameters' bytes, without cast ones and remainders, if both sides know them as
 * parameters. */
static double change_of_parameters(const struct diff *d)
{
	double change = 0, unknown = 0;

	FOR_EACH (const struct diff_pair, p, d->pairs, d->pair_count) {
		if (!diff_differs(p))
			continue;
		change += p->category == CATEGORY_parameters
				  ? (double)(diff_delta(p) + other_class(d, p))
				  : 0;
		unknown += p->category == CATEGORY_unknown ? (double)diff_delta(p) : 0;
	}
	return change * unknown < 0 && fabs(unknown) > 0.5 * fabs(change) ? 0 : change;
}

static void find_model(struct diff *d, const struct diff_sums *s)
{
	double change = change_of_parameters(d);
	struct model_change m = { .more = change > 0,
				  .gradients = gradients_follow(s, change),
				  .state = follows(d, s, CATEGORY_optimizer_state) };

	if (change == 0)
		return;
	for (size_t i = 0; i < d->pair_count; i++)
		if (!d->pairs[i].finding && is_result(&d->pairs[i], m.more))
			m.results = true;
	/* Otherwise it is a copy of the weights, which has neither gradients nor state. */
	if ((s->new[CATEGORY_optimizer_state] > 0 && !m.state) ||
	    (!m.gradients && !m.state && !m.results))
		return;
	diff_collect(d, &(struct diff_rule){ .cause = CAUSE_MODEL,
					     .direction = m.more ? 1 : -1,
					     .takes = is_of_model,
					     .facts = &m,
					     .named_by = CLASS_BIT(parameters) |
							 CLASS_BIT(activations) });
}

/* ---- copies of unchanged parameters */

/* Whether it is the optimizer's state, and not a copy of the weights that a line of the program
 * keeps while both sides have state. Such a copy is that line's finding. */
static bool is_state(const struct diff *d, const struct diff_pair *p, UNUSED const void *facts)
{
	bool both = d->old.shot.bytes[p->category] && d->new.shot.bytes[p->category];
	bool copy = (!p->old_site || !p->new_site) && !(diff_site_of(p)->signs & STACK_STEP);

	return !(both && copy);
}

/* ---- remainders in large blocks, which are chance */

/* Equally many blocks, of equal size apart from a remainder. */
static bool may_be_remainders(const struct diff_pair *p)
{
	return !p->finding && p->old_sizes && p->new_sizes && p->blocks_old == p->blocks_new &&
	       p->bytes_old != p->bytes_new &&
	       diff_like_sizes(p->old_sizes, p->new_sizes, p->blocks_old);
}

/* A change of the program makes all of them larger by the same amount, chance only some. */
static bool has_remainders(const struct diff_pair *p)
{
	uint64_t last = p->blocks_old - 1;

	return may_be_remainders(p) && p->old_sizes[last] > DIFF_REMAINDER &&
	       (p->old_sizes[0] == p->new_sizes[0] ||
		(int64_t)(p->new_sizes[0] - p->old_sizes[0]) !=
			(int64_t)(p->new_sizes[last] - p->old_sizes[last]));
}

static bool is_rounding(UNUSED const struct diff *d, const struct diff_pair *p, const void *facts)
{
	return *(const bool *)facts ? may_be_remainders(p) : has_remainders(p);
}

/* Whether possible remainders are unimportant, beside a far larger change or another cause. Alone
 * they are the only answer. */
static bool is_beside(const struct diff *d)
{
	uint64_t sure = 0, chance = 0;

	for (size_t i = 0; i < d->pair_count; i++)
		if (diff_differs(&d->pairs[i]))
			*(may_be_remainders(&d->pairs[i]) ? &chance : &sure) +=
				diff_size(&d->pairs[i]);
	return d->count || sure > 8 * chance;
}

static void find_rounding(struct diff *d)
{
	bool beside = is_beside(d);

	for (size_t i = 0; i < d->pair_count; i++)
		d->pairs[i].remainders = false;
	diff_collect(d, &(struct diff_rule){
				.cause = CAUSE_ROUNDING, .takes = is_rounding, .facts = &beside });
}

static bool in_module(UNUSED const struct diff *d, const struct diff_pair *p,
		      UNUSED const void *facts)
{
	return (p->old_site ? p->old_site : p->new_site)->module[0];
}

/* Rules that need nothing but their pairs. */
static const struct diff_rule
	idle = { .cause = CAUSE_IDLE, .takes = is_idle, .named_by = CLASS_BIT(parameters) },
	kept_more = { .cause = CAUSE_KEPT, .direction = 1, .takes = is_kept },
	kept_less = { .cause = CAUSE_KEPT, .direction = -1, .takes = is_kept },
	compiled = { .cause = CAUSE_COMPILED,
		     .classes = CLASSES_THAT(ARE_OF_FORWARD) | CLASS_BIT(gradients) |
				CLASS_BIT(backward_temporaries) | CLASS_BIT(workspace),
		     .named_by = CLASS_BIT(activations) },
	recompute_more = { .cause = CAUSE_RECOMPUTE,
			   .direction = 1,
			   .classes = CLASS_BIT(activations),
			   .takes = in_module },
	recompute_less = { .cause = CAUSE_RECOMPUTE,
			   .direction = -1,
			   .classes = CLASS_BIT(activations),
			   .takes = in_module },
	state = { .cause = CAUSE_OPTIMIZER,
		  .classes = CLASS_BIT(optimizer_state),
		  .takes = is_state },
	gradients = { .cause = CAUSE_GRADIENTS, .classes = CLASS_BIT(gradients) };

void diff_causes(struct diff *d)
{
	struct diff_sums s;

	for (size_t i = 0; i < d->pair_count; i++)
		d->pairs[i].remainders = has_remainders(&d->pairs[i]);
	sum_up_pairs(d, &s);
	diff_collect(d, &idle);
	diff_collect(d, &kept_more);
	diff_collect(d, &kept_less);
	diff_find_cleared(d);
	if (d->old.compiled != d->new.compiled)
		diff_collect(d, &compiled);
	if (d->old.recomputes != d->new.recomputes)
		diff_collect(d, d->new.recomputes ? &recompute_less : &recompute_more);
	diff_find_passes(d);
	diff_find_backwards(d);
	diff_find_recorded(d);
	diff_find_precision(d, &s);
	diff_find_casts(d, &s);
	diff_find_scale(d, &s);
	diff_find_reach(d);
	find_trained(d);
	find_model(d, &s);
	find_rounding(d);
	diff_collect(d, &state);
	diff_collect(d, &gradients);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes in the relation of passes: forward passes that build a graph for a backward pass that
 * never comes, a backward pass that reaches more parameters, several forward passes before one
 * backward pass. Passes make the same blocks as before, but hold them for another time.
 */
#include "diff_causes.h"

/* ---- graphs built for no backward pass, as without torch.no_grad() */

static bool is_recorded(UNUSED const struct diff *d, const struct diff_pair *p,
			UNUSED const void *facts)
{
	return diff_delta(p) > 0 ? p->unused_new > p->unused_old : p->unused_new < p->unused_old;
}

void diff_find_recorded(struct diff *d)
{
	uint64_t before = d->old.shot.dropped, after = d->new.shot.dropped;
	bool gained = after > before;
	struct diff_rule rule = { .cause = CAUSE_RECORDED,
				  .direction = gained ? 1 : -1,
				  .takes = is_recorded,
				  .named_by = CLASS_BIT(activations) };

	if (diff_backwards(&d->old) != diff_backwards(&d->new))
		return;
	if (gained ? before < after / 8 : after < before / 8)
		diff_collect(d, &rule);
}

/* ---- reach of backward: a result that began, or ceased, to be detached */

uint64_t diff_gradients(const struct diff_side *s)
{
	const struct steps *steps = &s->timeline.steps;
	const struct spans *spans = &s->timeline.model.spans;
	uint64_t most = 0;

	for (size_t n = 1; n <= steps_number(steps); n++) {
		uint64_t sum = SUM_OF(x, &spans->items[steps->items[n].first],
				      step_spans(spans, &steps->items[n]), x->gradients);

		most = sum > most ? sum : most;
	}
	return most;
}

unsigned diff_backwards(const struct diff_side *s)
{
	const struct timeline *t = &s->timeline;
	unsigned most = 0;

	for (size_t i = 1; i <= steps_number(&t->steps); i++) {
		unsigned times =
			steps_phase(&t->model.spans, &t->steps.items[i], PHASE_BACKWARD).times;

		most = times > most ? times : most;
	}
	return most;
}

/* Equal passes and parameters, but another number of gradients. */
void diff_find_reach(struct diff *d)
{
	uint64_t before = diff_gradients(&d->old), after = diff_gradients(&d->new);
	uint64_t most = before > after ? before : after;
	struct diff_rule rule = { .cause = CAUSE_REACH,
				  .direction = after > before ? 1 : -1,
				  .classes = CLASS_BIT(activations) |
					     CLASS_BIT(forward_temporaries) | CLASS_BIT(gradients) |
					     CLASS_BIT(backward_temporaries) | CLASS_BIT(workspace),
				  .named_by = CLASS_BIT(activations),
				  /* Backward nodes have no line, but their pass has one. */
				  .line = &d->new.shot.latest,
				  .line_if_none = true };

	if (!before || !after || diff_apart(before, after) < most / 50 + 1 ||
	    diff_backwards(&d->old) != diff_backwards(&d->new) ||
	    diff_apart(d->old.shot.trained, d->new.shot.trained) > d->old.shot.trained / 100 ||
	    diff_apart(d->old.shot.bytes[CATEGORY_parameters],
		       d->new.shot.bytes[CATEGORY_parameters]) > d->old.shot.trained / 100)
		return;
	diff_collect(d, &rule);
}

/* ---- several forward passes before one backward pass */

struct passes {
	double factor;
	bool more;
};

/* The same blocks multiplied, approximately, because the last pass might have freed some. */
static bool is_repeated(const struct diff_pair *p, const struct passes *w)
{
	double before = (double)(w->more ? p->bytes_old : p->bytes_new);
	double after = (double)(w->more ? p->bytes_new : p->bytes_old);

	return after > before * (0.5 + w->factor / 2) && after < before * (w->factor + 0.5);
}

/* Neither a larger model nor a longer sequence: steps have another number of backward passes, or
 * the inputs are repeated too. */
static bool may_be_passes(const struct diff *d, const struct passes *w)
{
	if (diff_apart(d->old.shot.bytes[CATEGORY_parameters],
		       d->new.shot.bytes[CATEGORY_parameters]) >
	    d->old.shot.bytes[CATEGORY_parameters] / 100)
		return false;
	if (diff_backwards(&d->old) != diff_backwards(&d->new))
		return true;
	return ANY_OF(x, d->pairs, d->pair_count,
		      x->category == CATEGORY_inputs && x->blocks_old != x->blocks_new &&
			      is_repeated(x, w));
}

static bool is_of_passes(UNUSED const struct diff *d, const struct diff_pair *p, const void *facts)
{
	return !p->bytes_old || !p->bytes_new || is_repeated(p, facts);
}

void diff_find_passes(struct diff *d)
{
	size_t before = d->old.shot.passes, after = d->new.shot.passes;
	double all = 0, fit = 0;
	struct passes w = { .more = after > before };
	struct diff_rule rule = { .cause = CAUSE_PASSES,
				  .direction = w.more ? 1 : -1,
				  .classes = CLASSES_THAT(ARE_OF_FORWARD),
				  .takes = is_of_passes,
				  .facts = &w,
				  .named_by = CLASS_BIT(activations) };

	if (!before || !after || before == after)
		return;
	w.factor = w.more ? (double)after / (double)before : (double)before / (double)after;
	if (!may_be_passes(d, &w))
		return;
	FOR_EACH (const struct diff_pair, p, d->pairs, d->pair_count) {
		double bytes = (double)(w.more ? p->bytes_old : p->bytes_new);

		if (p->finding || p->category != CATEGORY_activations)
			continue;
		all += bytes;
		fit += is_repeated(p, &w) ? bytes : 0;
	}
	if (fit > 0.5 * all)
		diff_collect(d, &rule);
}

/* ---- one backward pass in place of many, each of which freed its part of the graph */

static bool other_number(UNUSED const struct diff *d, const struct diff_pair *p,
			 UNUSED const void *facts)
{
	return p->blocks_old != p->blocks_new;
}

void diff_find_backwards(struct diff *d)
{
	unsigned before = diff_backwards(&d->old), after = diff_backwards(&d->new);
	int64_t change;
	struct diff_rule rule = { .cause = CAUSE_BACKWARDS,
				  /* more memory with fewer passes */
				  .direction = after < before ? 1 : -1,
				  .classes = DIFF_OF_PASSES,
				  .takes = other_number,
				  .named_by = CLASS_BIT(activations) };

	if (!before || !after || before == after)
		return;
	if (ANY_OF(x, d->findings, d->count, x->cause == CAUSE_PASSES))
		return;
	change = (int64_t)SUM_OF(
		p, d->pairs, d->pair_count,
		diff_differs(p) && p->category == CATEGORY_activations ? diff_delta(p) : 0);
	if (change * rule.direction > 0)
		diff_collect(d, &rule);
}

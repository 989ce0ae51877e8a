/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is there for a whole phase and not used in it: weights that no graph ever took, while the
 * trained ones go backward and are updated (a reference, a teacher, an average of the weights), and
 * gradients while an evaluation runs. A recording does not show reads: these are uses that the
 * phase rules out.
 */

#include "advise.h"

enum { SETTLED = 3 }; /* steps, after which every network had its turn */

/* A graph that is trained asks its leaves for gradients and takes its weights. */
static bool is_trained(const struct advise *a, const struct advised *l)
{
	return l->life >= a->lives->rows.count || a->saved[l->life] || advise_leaf(a, l);
}

/* Before a pass it is not known what it is for, such as a checkpoint that is being read. */
static bool has_seen_pass(const struct advise *a, const struct advised *l)
{
	return advise_next(a, l->from, PHASE_FORWARD) <= a->peak_seq;
}

/* An update, and for how long at most such weights are not used around it. */
struct idle {
	uint64_t from, until, first, next;
};

struct idles {
	struct idle *items;
	size_t count, room;
};

/* Passes that began before an update. Once there were passes of which autograd saved nothing, such
 * weights are used in those, to their end, and idle in the others. */
struct walk {
	size_t at;
	uint64_t since; /* idle, since the latest optimizer's step; 0: or not, PLAN_END: in use */
	uint64_t end;	/* of the latest pass without graphs; 0: there was none */
};

static uint64_t trained_since(const struct advise_passes *p, struct walk *w, uint64_t update)
{
	for (; w->at < p->count && p->items[w->at].begin < update; ++w->at) {
		const struct advise_pass *x = &p->items[w->at];

		if (!x->begin)
			continue;
		if (!x->kept) {
			w->since = PLAN_END;
			w->end = x->end;
		} else if (w->since == PLAN_END || (!w->since && w->end)) {
			w->since = w->since ? w->end : x->begin;
		}
	}
	return w->since && w->since != PLAN_END ? w->since : update;
}

/* What comes between an update and the next pass (gradients are let go, an average is updated) may
 * use them or not. Before the first backward pass an optimizer's step updates nothing (its state is
 * loaded), and it is not known which weights a graph takes. */
static struct idles find_idles(const struct advise *a)
{
	const struct spans *s = &a->timeline->model.spans;
	struct idles found = { 0 };
	size_t open = 0; /* the first whose next pass has not come yet */
	struct walk w = { 0 };
	bool trains = false;

	FOR_EACH (const struct span, x, s->items, s->count) {
		const struct extent *e = &x->extent;

		for (; span_is_forward(x) && open < found.count &&
		       found.items[open].until <= e->first_seq;
		     open++)
			found.items[open].next = e->first_seq;
		trains |= x->phase == PHASE_BACKWARD;
		if (trains && (x->phase == PHASE_BACKWARD || x->phase == PHASE_OPTIMIZER))
			*need_item(found.items, found.count, found.room) =
				(struct idle){ e->first_seq, e->last_seq + 1,
					       trained_since(&a->passes, &w, e->first_seq),
					       PLAN_END };
		w.since = x->phase == PHASE_OPTIMIZER ? 0 : w.since;
	}
	return found;
}

static void without(struct life_plan *p, const struct advised *l, const struct idles *idles,
		    bool most)
{
	uint64_t done = l->from; /* gone up to there */

	FOR_EACH (const struct idle, x, idles->items, idles->count) {
		uint64_t from = most ? x->first : x->from, until = most ? x->next : x->until;

		from = from > done ? from : done;
		until = until < l->until ? until : l->until;
		if (until <= from)
			continue;
		plan_without(p, from, until, l->size);
		done = until;
	}
}

/* The innermost Function of the stack calls no module: what is computed there is its own. */
static bool is_of_function(struct advise *a, const struct advised *l)
{
	struct stacks *s = &a->timeline->stacks;

	stacks_read_python(s, l->stack);
	for (size_t i = 0; i < s->count; i++) {
		if (strstr(s->frames[i].file, "torch/nn/modules/module.py"))
			return false;
		if (strstr(s->frames[i].file, "torch/autograd/function.py"))
			return true;
	}
	return false;
}

/* Converted, by autocast too, or nobody knows by what it was made. */
static bool may_be_cast(struct advise *a, struct map *known, const struct advised *l)
{
	bool fresh;
	uint32_t *cast = map_put(known, l->stack, &fresh);
	struct block b;
	char op[64];

	if (fresh) {
		advise_block(a, l, &b);
		instant_operator(&a->timeline->stacks, b.stack, b.seq, op, sizeof(op));
		*cast = !op[0] || ops_is_cast(op) || advise_is_by_autocast(a->timeline, &b);
	}
	return *cast;
}

/* A Function of a forward pass hides from autograd which weights its backward will take: a
 * checkpoint in the first step, one that multiplies by itself in all (ctx.weight = weight). `again`
 * gets the sizes of what checkpoints convert again. */
static bool are_hidden(struct advise *a, struct map *again)
{
	bool first = a->open && a->steps <= 1, hidden = false;
	struct map known = { 0 };

	ADVISE_EACH (a, UINT16_MAX, l) {
		if (l.born->stage == STAGE_RECOMPUTE) {
			hidden |= first;
			if (may_be_cast(a, &known, &l))
				*map_put(again, l.size, NULL) = 1;
		} else if (!stage_is_backward(l.born->stage) &&
			   model_signs(&a->timeline->model, l.stack) & STACK_FUNCTION) {
			hidden |= first ||
				  (ops_is_product(ops_find(a, &l)->name) && is_of_function(a, &l));
		}
	}
	map_free(&known);
	return hidden;
}

/* A checkpoint that computes again converts such a weight again (autocast), and saves the copy. */
static bool is_converted(const struct map *again, const struct advised *l)
{
	return map_get(again, (l->size / 2 + 511) & ~511ull) || map_get(again, 2 * l->size);
}

void advise_idle_weights(struct advise *a)
{
	struct map again = { 0 };
	struct finding *f;
	struct idles idles;

	if (advise_in_shards(a) || (a->open && !a->wanted_count && a->steps < SETTLED) ||
	    are_hidden(a, &again)) {
		map_free(&again);
		return;
	}
	idles = find_idles(a);
	f = advise_add(a, "idle_weights");
	f->range = true;
	ADVISE_EACH (a, CLASS_BIT(parameters), l) {
		if (!advise_counts(a, &l) || is_trained(a, &l) || advise_is_loaded(a, &l) ||
		    !has_seen_pass(a, &l) || is_converted(&again, &l) || advise_is_used_up(a, &l))
			continue;
		without(&f->plan, &l, &idles, true);
		without(&f->cautious, &l, &idles, false);
		f->bytes += l.size;
		f->blocks++;
		advise_name(a, f, &l);
	}
	free(idles.items);
	map_free(&again);
	advise_put(f->how,
		   "%s of weights in %s %s that get no gradient and that autograd never "
		   "saved. They are copied to the device once a step. The saving is lower if they "
		   "stay until backward and come back before the optimizer's step ends, and higher "
		   "if their pass comes before those that are trained",
		   B(f->bytes), MANY(f->blocks, "block"), a->when);
}

/* The gradient's next use is the backward pass after the evaluation. */
static uint64_t without_in_evaluations(struct advise *a, struct life_plan *p,
				       const struct advised *l)
{
	uint64_t begin = advise_next(a, l->from, PHASE_OPTIMIZER), until, bytes = 0;

	for (; begin < l->until; begin = until) {
		begin = advise_next(a, begin, PHASE_EVALUATION);
		if (begin >= l->until)
			break;
		until = advise_next(a, begin, PHASE_BACKWARD);
		until = until < l->until ? until : l->until;
		plan_without(p, begin, until, l->size);
		if (begin <= a->peak_seq && a->peak_seq < until)
			bytes = l->size;
	}
	return bytes;
}

void advise_idle_gradients(struct advise *a)
{
	struct finding *f;
	uint64_t bytes = 0;

	if (!advise_in(a, a->peak_seq, PHASE_EVALUATION))
		return;
	f = advise_add(a, "idle_gradients");
	ADVISE_EACH (a, CLASS_BIT(gradients), l)
		bytes += without_in_evaluations(a, &f->plan, &l);
	advise_put(f->how, "%s of gradients %s, in an evaluation", B(bytes), a->when);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save_on_cpu: saved tensors are moved to the host when autograd saves them, and come back while
 * their node runs.
 */

#include <sys/mman.h>

#include "../base/arithmetic.h"
#include "../recording/variables.h"
#include "advise.h"

/* Made in a forward pass and held by autograd alone at the peak. */
static bool is_saved(const struct advise *a, const struct advised *l)
{
	return l->course->saved && !l->course->unread && !stage_is_backward(l->born->stage) &&
	       l->born->stage != STAGE_OPTIMIZER && !advise_held(a, l) &&
	       /* a backward pass reads it later, or its shape alone */
	       (l->course->over == PLAN_END || advise_by_backward(a, l));
}

/* Memory ran out in a pass, and not more passes wait for backward than ever did (one, if it is the
 * first). */
static bool is_awaited(const struct advise *a)
{
	const struct spans *s = &a->timeline->model.spans;
	uint32_t pass = 0, done = 0, most = advise_most_before_backward(s, a->until);

	for (size_t i = 0; i < advise_spans_begun(a, a->until); i++) {
		done = s->items[i].phase == PHASE_BACKWARD ? pass : done;
		pass = span_is_forward(&s->items[i]) ? s->items[i].pass : pass;
	}
	return a->wanted_count && a->wanted->born->forwards <= done + (most ? most : 1);
}

/* Memory ran out before the first backward pass, and few passes might wait for it. */
static bool is_before_backward(const struct advise *a)
{
	enum { FEW = 3 };
	const struct spans *s = &a->timeline->model.spans;
	uint32_t pass = 0, kept = 0;

	for (size_t i = 0; i < advise_spans_begun(a, a->until); i++) {
		const struct span *x = &s->items[i];

		if (x->phase == PHASE_BACKWARD)
			return false;
		kept += span_is_forward(x) && x->kept ? x->pass - pass : 0;
		pass = span_is_forward(x) ? x->pass : pass;
	}
	return a->wanted_count && kept <= FEW;
}

/* Earliest event at which backward needs it; PLAN_END = never. first: before any backward pass. */
static uint64_t back_at(const struct advise *a, const struct advised *l, bool awaited, bool first)
{
	uint64_t back = advise_next(a, l->course->saved, PHASE_BACKWARD);

	if (back != PLAN_END)
		return back;
	awaited = awaited && l->born->forwards == a->wanted->born->forwards;
	return awaited || first ? a->until : PLAN_END;
}

/* Most bytes saved by one operator, whose node needs all of them at once. */
static uint64_t most_of_node(struct advise *a)
{
	uint32_t births = advise_lives(a) + 1;
	uint64_t *nodes = need_new(births * sizeof(*nodes)), most = 0;

	/* hooks receive saved weights, too */
	ADVISE_EACH (a, CLASSES_THAT(ARE_SAVED) | CLASS_BIT(parameters), l) {
		uint64_t *node = &nodes[lives_born_by(a->lives, l.course->saved)];

		*node += l.course->saved ? l.size : 0;
		most = *node > most ? *node : most;
	}
	free(nodes);
	return most;
}

/* A graph of a backward pass (for second derivatives) saves the tensors that come back from the
 * host again. */
static bool is_twice(struct advise *a)
{
	bool found = false;

	ADVISE_EACH (a, UINT16_MAX, l)
		if (l.born->stage == STAGE_BACKWARD && l.course->saved)
			found = true;
	return found;
}

/* ---- if all uses are known: tensors of a node come back while it runs ---- */

struct course {
	uint64_t forward; /* end of its last use before backward */
	uint64_t size;
	uint64_t saved; /* when a node that reads it from the graph saved it; 0 = none */
	bool back;
};

struct copies {
	struct finding *finding;
	struct course *courses;
};

static void follow_node(void *ctx, const struct node_run *run, const uint32_t *lives, size_t count)
{
	struct copies *c = ctx;

	for (size_t i = 0; i < count; i++) {
		struct course *x = &c->courses[lives[i]];

		if (!run->node && !x->back)
			x->forward = run->end;
		if (!run->node || !x->saved || run->begin < x->saved)
			continue;
		plan_with(&c->finding->plan, lives[i], run->begin, run->end, x->size);
		plan_with(&c->finding->cautious, lives[i], run->begin, run->end, x->size);
		x->back = true;
	}
}

/* Plans the return of saved tensors. Weights are saved again in each step. */
static void find_copies(struct advise *a, struct copies *c)
{
	ADVISE_EACH (a, CLASSES_THAT(ARE_SAVED) | CLASS_BIT(parameters), l)
		c->courses[l.life] = (struct course){
			.size = l.size,
			.saved = l.classes & CLASS_BIT(parameters) ? !!l.course->saved
								   : l.course->saved,
		};
	advise_nodes(a, follow_node, c);
}

/* By life: event after which the next block of its stack exists, so that a variable no longer holds
 * it; 0 = none. */
static uint64_t *births_after(struct advise *a)
{
	uint64_t *after = need_pages((advise_lives(a) + 1) * sizeof(*after));
	struct map latest = { 0 };

	ADVISE_EACH (a, CLASSES_THAT(ARE_SAVED), l) {
		uint32_t *before = map_put(&latest, l.stack, NULL);

		if (*before)
			after[*before - 1] = l.from + 1;
		*before = l.life + 1;
	}
	map_free(&latest);
	return after;
}

/* Attention pads a mask to an aligned length, and stops in backward if it gets a copy that is not.
 */
static bool has_padded_mask(struct advise *a)
{
	struct stacks *s = &a->timeline->stacks;
	struct map seen = { 0 };
	bool found = false;

	ADVISE_EACH (a, CLASSES_THAT(ARE_SAVED), l)
		if (!found && l.course->saved && map_add(&seen, l.stack))
			found = stacks_have(s, l.stack, l.from, "constant_pad_nd") &&
				stacks_have(s, l.stack, l.from, "native::scaled_dot_product");
	map_free(&seen);
	return found;
}

enum { VARIABLES = 64 };

/* Saved blocks in variables of the frames that run when memory runs out: they stay on the device
 * until their function returns. Of a list only the first tensor's address is known, so the others
 * are found by its stack. */
struct in_frames {
	struct map lives, stacks;
};

static struct in_frames find_in_frames(struct advise *a)
{
	const struct variable_at *x;
	struct variable_at found[VARIABLES];
	size_t n = !a->wanted_count ? 0
				    : variables_refused(&a->timeline->stacks, a->wanted->stack,
							a->until, 0, found, VARIABLES);
	struct in_frames in = { 0 };

	ADVISE_EACH (a, n ? CLASSES_THAT(ARE_SAVED) : 0, l) {
		struct block b;

		if (!advise_counts(a, &l))
			continue;
		advise_block(a, &l, &b);
		x = FIRST_OF(v, found, n, variable_is_in(v, &b));
		if (x)
			map_put(&in.lives, l.life, NULL);
		if (x && x->variable->head.tensors > 1)
			map_put(&in.stacks, l.stack, NULL);
	}
	return in;
}

void advise_offload(struct advise *a)
{
	const size_t births = advise_lives(a) + 1;
	bool known = uses_complete(&a->timeline->model) && !a->wanted_count;
	bool awaited = is_awaited(a), first = !awaited && is_before_backward(a);
	uint64_t largest = 0, *after;
	struct in_frames in;
	struct copies c;

	if (is_twice(a) || has_padded_mask(a))
		return;
	in = find_in_frames(a);
	c.finding = advise_add(a, "offload_activations");
	c.finding->words = first ? "offload_perhaps" : NULL;
	c.courses = need_pages(births * sizeof(*c.courses));
	after = births_after(a);
	if (known)
		find_copies(a, &c);
	ADVISE_EACH (a, CLASSES_THAT(ARE_SAVED), l) {
		uint64_t back = is_saved(a, &l) ? back_at(a, &l, awaited, first) : PLAN_END;
		uint64_t used = c.courses[l.life].forward, next = layers_after_next(a, l.from);

		if (back == PLAN_END || map_get(&in.lives, l.life))
			continue;
		advise_without(a, c.finding, &l, arithmetic_most(l.course->saved + 1, used));
		next = arithmetic_least(next, arithmetic_least(back, after[l.life] ?: back));
		if (!map_get(&in.stacks, l.stack))
			plan_without(&c.finding->cautious, l.life, arithmetic_most(next, used),
				     l.until, l.size);
		largest = l.size > largest && advise_counts(a, &l) ? l.size : largest;
	}
	c.finding->range = c.finding->about = c.finding->sure = true;
	/* A node's saved tensors, a tensor and its weight, are back while it runs. */
	if (!known)
		advise_with_in(a, &c.finding->cautious, PHASE_BACKWARD, largest + most_of_node(a));
	c.finding->size = largest;
	c.finding->others = in.lives.count;
	map_free(&in.lives);
	map_free(&in.stacks);
	munmap(c.courses, births * sizeof(*c.courses));
	munmap(after, births * sizeof(*after));
}

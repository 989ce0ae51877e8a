/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the optimizer: temporaries that its foreach implementation makes of all parameters at
 * once, and state that only its step uses.
 */

#include "../base/sorted.h"
#include "../model/optimizers.h"
#include "advise.h"

enum { STEP_COUNTER = 512, SMALLEST_8BIT = 4096, BLOCK_8BIT = 256, ROUND = 512 };

/* Temporaries of the optimizer's steps. */
struct temporaries {
	uint64_t largest, at_peak;
	const char *function; /* "_multi_tensor_adam" */
};

/* The frame of the foreach function on the stack, or NULL. */
static const struct frame *foreach_of(struct advise *a, uint32_t stack)
{
	return stacks_in_function(&a->timeline->stacks, stack, ONE_OF("_multi_tensor"));
}

/* At a refusal the step is not over, so none of its temporaries has ended. */
static bool is_temporary(const struct advise *a, const struct advised *l)
{
	return l->born->stage == STAGE_OPTIMIZER && (l->until != PLAN_END || a->wanted_count) &&
	       !(l->classes & OF_THE_MODEL);
}

/* parts: 1/parts of each remains; 0 = nothing. */
static void without_temporaries(struct advise *a, struct life_plan *p, struct temporaries *t,
				bool foreach, unsigned parts)
{
	struct map known = { 0 }; /* stack -> inside of a foreach function */
	uint32_t latest = 0;

	*t = (struct temporaries){ 0 };
	ADVISE_EACH (a, CLASS_BIT(optimizer_temporaries), l) {
		if (!is_temporary(a, &l))
			continue;
		if (map_known(&known, l.stack, foreach_of(a, l.stack) != NULL))
			latest = l.stack;
		else if (foreach)
			continue;
		t->largest = l.size > t->largest ? l.size : t->largest;
		t->at_peak += advise_counts(a, &l) ? l.size : 0;
		plan_without(p, l.life, l.from, l.until, l.size - (parts ? l.size / parts : 0));
	}
	t->function = latest ? foreach_of(a, latest)->function : NULL;
	map_free(&known);
}

/* The step counters move to the device. */
static void with_counters(struct advise *a, struct life_plan *p)
{
	const struct tensors *all = &a->timeline->model.tensors;
	uint64_t first = advise_next(a, 0, PHASE_OPTIMIZER), leaves = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].leaf && all->items[i].latest &&
		    all->items[i].device == a->timeline->device)
			leaves++;
	plan_with(p, PLAN_NONE, first, PLAN_END, leaves * STEP_COUNTER);
}

void advise_optimizers(struct advise *a)
{
	struct finding *f = advise_add(a, "fused_optimizer");
	struct temporaries t;

	without_temporaries(a, &f->plan, &t, true, 0);
	if (!t.function)
		return;
	f->bytes = t.at_peak;
	f->size = t.largest;
	f->function = t.function;
	if (strstr(t.function, "_adam"))
		with_counters(a, &f->plan);
	if (strstr(t.function, "_adam") || strstr(t.function, "_sgd"))
		return;
	f->kind = "foreach_off";
	without_temporaries(a, &f->cautious, &t, true, 0);
	f->range = true; /* temporaries of one parameter remain */
	advise_with_in(a, &f->plan, PHASE_OPTIMIZER, t.largest);
	advise_with_in(a, &f->cautious, PHASE_OPTIMIZER, 3 * t.largest);
}

static uint64_t in_8_bits(uint64_t bytes, unsigned each)
{
	uint64_t values = bytes / each;

	if (values < SMALLEST_8BIT)
		return bytes;
	return (values + ROUND - 1) / ROUND * ROUND +
	       (values / BLOCK_8BIT * sizeof(float) + ROUND - 1) / ROUND * ROUND;
}

/* Tensors that were read from a file and copied (weights into the model, numbers of steps to the
 * host) are still there: their checkpoint is held, and with it the loaded state, since
 * load_state_dict() makes no copy of what is on its device already. */
static bool holds_checkpoint(const struct advise *a)
{
	ADVISE_EACH (a, UINT16_MAX, l)
		if (l.course->loaded && advise_counts(a, &l) && !l.course->passed &&
		    !advise_leaf(a, &l))
			return true;
	return false;
}

static bool is_from_file(const struct advise *a, const struct advised *l)
{
	return model_signs(&a->timeline->model, l->stack) & STACK_LOAD;
}

/* An optimizer made, loaded or holds it, or its step used it after the last pass. What a class
 * alone calls state might be averages, sums of a metric or another model. */
static bool is_proven(const struct advise *a, const struct advised *l)
{
	const struct spans *s = &a->timeline->model.spans;
	size_t at = l->course->passed ? advise_spans_begun(a, l->course->passed - 1) : 0;

	return l->wanted || l->born->stage == STAGE_OPTIMIZER ||
	       model_signs(&a->timeline->model, l->stack) &
		       (STACK_STEP | STACK_STATE | STACK_LOAD) ||
	       advise_tags(a, l) & (unsigned)BLOCK_HELD << (GMT_HELD_STATE - 1) ||
	       (at && s->items[at - 1].phase == PHASE_OPTIMIZER);
}

/* Plans the state without all but a part of it. Unused state counts only if its stack also makes
 * state in use (an optimizer for each fold), or if all optimizers are changed. Returns the bytes
 * without other unused state. */
static uint64_t without_state(struct advise *a, struct finding *f, struct life_plan *p,
			      unsigned parts, unsigned each, bool of_all)
{
	struct map in_use = { 0 }; /* stacks */
	bool checkpoint = holds_checkpoint(a);
	uint64_t bytes = 0;

	ADVISE_EACH (a, CLASS_BIT(optimizer_state), l)
		if (l.course->over > a->peak_seq && !(checkpoint && is_from_file(a, &l)))
			map_put(&in_use, l.stack, NULL);
	ADVISE_EACH (a, CLASS_BIT(optimizer_state), l) {
		uint64_t keeps = each ? in_8_bits(l.size, each) : parts ? l.size / parts : 0;
		bool used = map_get(&in_use, l.stack) != NULL;

		if (keeps >= l.size || !is_proven(a, &l) ||
		    !(used || (of_all && !(checkpoint && is_from_file(a, &l)))))
			continue;
		plan_without(p, l.life, l.from, l.until, l.size - keeps);
		f->loaded |= is_from_file(a, &l);
		f->others |= !used;
		bytes += used && advise_counts(a, &l) ? l.size : 0;
	}
	map_free(&in_use);
	return bytes;
}

void advise_offload_state(struct advise *a)
{
	struct finding *f = advise_add(a, "offload_state");
	struct temporaries t;

	f->bytes = without_state(a, f, &f->cautious, 0, 0, false);
	if (!f->bytes)
		return;
	without_state(a, f, &f->plan, 0, 0, true);
	without_temporaries(a, &f->plan, &t, false, 0);
	f->size = t.largest;
	f->range = f->size || f->others;
}

/* Distributes whole parameters over two ranks, the largest first to the rank with less. Returns the
 * bytes that one rank has above half. */
static uint64_t unevenness(struct advise *a)
{
	char name[OPTIMIZER_NAME];
	int tensors = optimizer_tensors(optimizer_of_spans(&a->timeline->model.spans, SIZE_MAX,
							   a->timeline->model.defs, name));
	uint64_t *sizes = NULL, shares[2] = { 0 };
	size_t count = 0, room = 0;

	ADVISE_EACH (a, CLASS_BIT(optimizer_state), l)
		if (advise_counts(a, &l) && is_proven(a, &l))
			*need_item(sizes, count, room) = l.size;
	SORT(sizes, count, sorted_numbers);
	for (int i = 0, less = 0; count; i++) {
		less = tensors > 0 && i % tensors ? less : shares[0] > shares[1];
		shares[less] += sizes[--count];
	}
	free(sizes);
	return (shares[0] > shares[1] ? shares[0] - shares[1] : shares[1] - shares[0]) / 2;
}

void advise_shard_state(struct advise *a)
{
	struct temporaries t;
	struct finding *f;

	if (advise_in_shards(a))
		return;
	f = advise_add(a, "shard_state");
	f->bytes = without_state(a, f, &f->plan, 2, 0, false);
	if (!f->bytes)
		return;
	without_state(a, f, &f->cautious, 2, 0, false);
	without_temporaries(a, &f->plan, &t, false, 2);
	f->range = true;
	plan_with(&f->cautious, PLAN_NONE, 0, PLAN_END, unevenness(a));
}

/* Its first step does: state to come would be said to be in 32 bits. */
static bool asks_for_8_bits(struct advise *a)
{
	return stacks_in_function(&a->timeline->stacks, a->wanted_count ? a->wanted[0].stack : 0,
				  ONE_OF("8bit"));
}

/* Adam keeps two values for each of a trained weight. Less than the bytes of the weights and half
 * as much: they are in 8 bits, unless they have sizes of weights, of which some are not trained: an
 * average, for example. State that nothing uses any more is of weights, too. */
static bool is_in_8_bits(struct advise *a)
{
	struct map sizes = { 0 };
	uint64_t trained = 0, state = 0, alike = 0;
	uint32_t *left;

	ADVISE_EACH (a, CLASS_BIT(optimizer_state), l) {
		if (!advise_counts(a, &l))
			continue;
		state += l.size;
		++*map_put(&sizes, l.size, NULL);
	}
	ADVISE_EACH (a, CLASS_BIT(parameters), l) {
		if (!advise_counts(a, &l) || !advise_leaf(a, &l))
			continue;
		trained += l.size;
		left = map_put(&sizes, l.size, NULL);
		alike += *left ? l.size : 0;
		*left -= *left > 0;
	}
	map_free(&sizes);
	return state < trained + trained / 2 && 2 * alike < trained && !a->wanted_count &&
	       !advise_in_shards(a);
}

void advise_state_in_8_bits(struct advise *a)
{
	char name[OPTIMIZER_NAME];
	struct finding *f;
	struct temporaries t;

	optimizer_of_spans(&a->timeline->model.spans, SIZE_MAX, a->timeline->model.defs, name);
	if (!strstr(name, "Adam") || strcasestr(name, "bit") || asks_for_8_bits(a))
		return;
	f = advise_add(a, "state_in_8_bits");
	f->bytes = without_state(a, f, &f->plan, 0, 4, true);
	if (!f->bytes || is_in_8_bits(a)) {
		plan_free(&f->plan);
		return;
	}
	without_state(a, f, &f->cautious, 0, 2, false);
	without_temporaries(a, &f->plan, &t, false, 0);
	without_temporaries(a, &f->cautious, &t, false, 0);
	f->range = true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints that are read onto the device. If an optimizer that always keeps state has not made
 * it for weights of some size, the state comes from the file: it is the last blocks of that size,
 * because a checkpoint begins with its model.
 */
#include "../model/optimizers.h"
#include "study.h"

void study_loaded_born(struct study *st, const struct history *h)
{
	if (!(h->signs & STACK_LOAD) || h->stage != STAGE_OUTSIDE || h->block.memory)
		return;
	*need_item(st->loaded, st->loaded_count, st->loaded_room) = study_birth(h);
	st->loaded_steps = h->born_steps;
}

/* Number of tensors as large as a weight that the optimizer keeps for each, 0 = not known. SGD
 * keeps one only with momentum, which the recording does not show. */
static uint32_t tensors_of(const struct study *st)
{
	char name[OPTIMIZER_NAME];
	int tensors;

	optimizer_of_spans(&st->m->spans, SIZE_MAX, st->m->defs, name);
	tensors = strstr(name, "SGD") ? 0 : optimizer_tensors(name);
	return tensors > 0 ? (uint32_t)tensors : 0;
}

/* Size and device in one number, because sizes are multiples of 512. */
static uint64_t size_on_device(const struct history *h)
{
	return h->block.size | (uint64_t)h->block.device;
}

static void count_needed(struct study *st, struct map *needed)
{
	uint32_t tensors = tensors_of(st), *n;

	for (int d = 0; d < MODEL_DEVICES; d++) {
		LIVE_EACH (&st->m->devices[d].live, h)
			if (st->m->tags ? h->facts.tags & BLOCK_LEAF : h->signs & STACK_PARAM)
				*map_put(needed, size_on_device(h), NULL) += tensors;
		LIVE_EACH (&st->m->devices[d].live, h) {
			if (h->stage != STAGE_OPTIMIZER && !(h->signs & STACK_STATE))
				continue;
			n = map_get(needed, size_on_device(h));
			if (n && *n)
				--*n;
		}
	}
}

/* The number of blocks of its size that the optimizer still needs; NULL = none. */
static uint32_t *needed_like(struct map *needed, const struct history *h)
{
	uint32_t *n = map_get(needed, size_on_device(h));

	for (size_t i = 0; i < needed->room && !(n && *n); i++) {
		struct map_slot *s = &needed->slots[i];

		if (s->used && s->value && study_as_large(s->key, size_on_device(h)))
			n = &s->value;
	}
	return n && *n ? n : NULL;
}

static void settle(struct study *st)
{
	struct map needed = { 0 };

	count_needed(st, &needed);
	while (st->loaded_count) {
		struct history *h = study_alive(st, &st->loaded[--st->loaded_count]);
		bool used = !h || h->facts.tags & BLOCK_LEAF || h->facts.save_ns;
		uint32_t *n = used ? NULL : needed_like(&needed, h);

		if (!n)
			continue;
		--*n;
		h->concluded.loaded_state = 1;
	}
	map_free(&needed);
}

/* Decides when a step has begun after the load, which shows the state that the optimizer makes. */
void study_loaded_over(struct study *st)
{
	if (st->loaded_count && st->m->spans.steps > st->loaded_steps)
		settle(st);
}

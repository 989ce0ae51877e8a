/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the inputs of the failed step with those of the same stacks in earlier steps: its
 * samples might be longer, or more.
 */
#include "../base/arithmetic.h"
#include "oom.h"

/* Reported from TIMES / OF of the earlier inputs on, and from LEAST bytes on. */
enum { STEPS = 3, TIMES = 3, OF = 2, LEAST = 4096 };

/* Bytes of the inputs made since that event. Adds their stacks to the map. */
static uint64_t inputs_now(const struct oom *o, uint64_t begin, struct map *stacks)
{
	uint64_t bytes = 0;

	FOR_BLOCKS (b, &o->shot.moment)
		if (b->category == CATEGORY_inputs && b->seq >= begin) {
			*map_put(stacks, b->stack, NULL) = 1;
			bytes += b->size;
		}
	return bytes;
}

/* Bytes of inputs by these stacks in each of the latest steps that ended. Returns their number. */
static size_t inputs_before(const struct oom *o, const struct map *stacks, uint64_t sums[STEPS],
			    uint64_t begins[STEPS + 1])
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t n = oom_lives(o);
	size_t step = o->since_step, count = 0;

	begins[0] = oom_batch_begin(o, step);
	for (; count < STEPS && step > 1 && o->timeline->steps.items[step - 1].ended; count++)
		begins[count + 1] = oom_batch_begin(o, --step);
	for (uint32_t i = n, at = 0; i-- > 0 && n - i < OOM_LATEST;) {
		const struct lived x = lives_read(l, i);

		while (at < count && x.from < begins[at + 1])
			at++;
		if (at == count)
			return count;
		if (x.from < begins[at] && map_get(stacks, x.stack))
			sums[at] += x.size;
	}
	return 0; /* the search ended before the steps began */
}

void oom_find_longer(struct oom *o)
{
	uint64_t sums[STEPS] = { 0 }, begins[STEPS + 1], now, most = 0;
	const struct step *end = &o->timeline->steps.items[o->since_step];
	struct map stacks = { 0 };
	size_t count;

	if (o->since_step < 2 || o->by_call || o->evaluation)
		return;
	now = inputs_now(o, oom_batch_begin(o, o->since_step), &stacks);
	count = now ? inputs_before(o, &stacks, sums, begins) : 0;
	for (size_t i = 0; i < count; i++)
		most = sums[i] > most ? sums[i] : most;
	map_free(&stacks);
	if (count < 2 || !most || now < LEAST || now / TIMES < most / OF)
		return;
	o->longer.steps = count;
	o->longer.inputs = now;
	o->longer.before = most;
	o->longer.peak = GREATEST_OF(s, end - count, count, true, s->extent.peak)->extent.peak;
}

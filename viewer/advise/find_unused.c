/* SPDX-License-Identifier: Apache-2.0 */
/* Models and optimizers that are not trained any more, from their last use on: see
 * answers/unused.h. */
#include "../answers/unused.h"
#include "advise.h"

void advise_unused(struct advise *a)
{
	struct snapshot shot;
	struct unused u;

	snapshot_take(&shot, a->timeline, a->peak_seq);
	unused_find(&u, a->timeline, &shot);
	if (u.bytes) {
		struct finding *f = advise_add(a, "unused");

		for (size_t i = 0; i < shot.moment.count; i++) {
			const struct block *b = &shot.moment.blocks[i];
			const struct life_moment *died =
				b->life ? &lives_at(a->lives, b->life - 1)->died : NULL;

			if (u.since[i])
				plan_without(&f->plan, u.since[i] + 1,
					     died && died->position ? lives_seq(a->lives, died)
								    : PLAN_END,
					     b->size);
		}
		f->owner = u.holders.items[0].owner;
		advise_put(f->how,
			   "%s %s (%s): no gradient has arrived at these weights since step %zu, "
			   "and %s",
			   B(u.bytes), a->when, unused_words(&u, (char[200]){ 0 }, 200), u.step,
			   u.left ? "the graph of a later step, with weights that are newer, "
				    "leaves them out"
				  : "no optimizer updates this state");
	}
	unused_free(&u);
	moment_free(&shot.moment);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Models and optimizers that are not trained any more, from their last use on: see
 * answers/unused.h. */
#include "../answers/unused.h"
#include "advise.h"

static void unused_say(const struct advise *a, struct finding *f, const struct unused *u)
{
	char classes[200], bytes[HUMAN_MAX];

	f->owner = u->holders.items[0].owner;
	advise_put(f->what,
		   "Release models and optimizers that are not trained any more: delete "
		   "every reference to them, also in callbacks and closures, and call "
		   "gc.collect() if objects refer to each other%s",
		   a->open ? ", unless a later phase trains them again" : "");
	advise_put(f->how,
		   "%s %s (%s): no gradient has arrived at these weights since step %zu, and %s",
		   human_bytes(bytes, u->bytes), a->when, unused_words(u, classes, sizeof(classes)),
		   u->step,
		   u->left ? "the graph of a later step, with weights that are newer, leaves them "
			     "out"
			   : "no optimizer updates this state");
}

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

			if (!u.since[i])
				continue;
			a->shortened[b->life - 1] = true;
			plan_without(&f->plan, u.since[i] + 1,
				     died && died->position ? lives_seq(a->lives, died) : PLAN_END,
				     b->size);
		}
		unused_say(a, f, &u);
	}
	unused_free(&u);
	moment_free(&shot.moment);
}

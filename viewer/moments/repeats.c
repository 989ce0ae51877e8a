/* SPDX-License-Identifier: Apache-2.0 */
#include "repeats.h"

#include "../base/sorted.h"

#define LONG_RUN (1u << 18) /* lives; answers about fewer take less than a second */
#define KEPT	 16	    /* equal steps at a row's start that are kept in any case */
#define KEPT_OF	 (1u << 17) /* births in them, at least: an allocator's state can drift for long */

struct signature {
	uint64_t there; /* hash of all that is alive when the step begins, in any order */
	uint64_t done;	/* hash of the step's births, ends and savings, in order */
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

static struct signature *sign_steps(const struct lives *l, const struct steps *steps)
{
	struct signature *found = need_new((steps->count + 1) * sizeof(*found));
	uint64_t there = 0;
	struct lives_walk w;
	size_t step = 0;

	for (lives_walk_first(&w, l); w.change; chunks_rest(l->pool), lives_walk_next(&w)) {
		const struct life *life = lives_at(l, w.now.life);
		const struct life_request *request = lives_request(l, life);
		uint64_t word = mix(mix(life->addr, request->size), request->stack);

		while (step + 1 < steps->count &&
		       steps->items[step + 1].extent.first_seq <= w.now.seq)
			found[++step].there = there;
		if (w.change == CHANGE_BORN || w.change == CHANGE_DIED)
			there ^= word;
		found[step].done = mix(found[step].done, word ^ (uint64_t)w.change);
	}
	return found;
}

static uint32_t born_before(const struct lives *lives, const struct step *step)
{
	uint64_t first = step->extent.first_seq;

	return first ? lives_born_by(lives, first - 1) : 0;
}

/* Steps from..end are equal. The last is kept, because what follows it might differ. */
static void add_row(struct repeats *r, const struct lives *lives, const struct step *items,
		    size_t from, size_t end)
{
	uint32_t born = born_before(lives, &items[from]);
	size_t first = from + KEPT;

	while (first < end && born_before(lives, &items[first]) - born < KEPT_OF)
		first++;
	if (first + 2 * REPEATS_MARGIN >= end)
		return;
	*need_item(r->items, r->count, r->room) = (struct repeat){
		.from = items[first].extent.first_seq,
		.until = items[end].extent.first_seq,
		.known = items[end - REPEATS_MARGIN].extent.first_seq,
		.life = born_before(lives, &items[first]),
		.lives = born_before(lives, &items[from + 1]) - born,
		.known_life = born_before(lives, &items[end - REPEATS_MARGIN]),
	};
	r->steps += end - first;
}

void repeats_find(struct repeats *r, const struct lives *lives, const struct steps *steps)
{
	struct signature *s;
	size_t from = 0;

	*r = (struct repeats){ 0 };
	if (lives->rows.count < LONG_RUN)
		return;
	s = sign_steps(lives, steps);
	for (size_t i = 1; i <= steps->count; i++)
		if (i == steps->count || s[i].there != s[from].there || s[i].done != s[from].done) {
			add_row(r, lives, steps->items, from, i - 1);
			from = i;
		}
	free(s);
}

void repeats_free(struct repeats *r)
{
	free(r->items);
	*r = (struct repeats){ 0 };
}

const struct repeat *repeats_at(const struct repeats *r, uint64_t seq)
{
	size_t i = SORTED_FIRST(r->count, n, r->items[n].from <= seq);

	return i && seq < r->items[i - 1].until ? &r->items[i - 1] : NULL;
}

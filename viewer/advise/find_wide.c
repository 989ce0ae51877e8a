/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of activations in twice the precision that graphs keep: float32 copies of 16-bit
 * activations, made because the weights are float32 (adapters of a frozen model) or for sums
 * (an unfused norm). In 16 bits there would be no copy, and the original would be saved in its
 * place.
 */

#include "advise.h"

/* A saved conversion. *narrow: its original. */
static bool is_kept_copy(struct advise *a, const struct advised *l, struct advised *narrow)
{
	return l->size >= SCORES_MIN / 16 && l->course->saved && advise_tags(a, l) & BLOCK_GRAPH &&
	       !stage_is_backward(l->born->stage) && ops_is_cast(ops_find(a, l)->name) &&
	       advise_made_of(a, l, narrow) && narrow->classes & OF_ONE_PASS &&
	       advise_is_half(narrow->size, l->size);
}

/* Keeps the original alive in place of its copies, once for all of them. latest: original -> the
 * copy that lives longest so far. */
static void with_narrow(struct advise *a, struct life_plan *p, struct map *latest,
			const struct advised *copy, const struct advised *narrow)
{
	struct advised before = { .life = narrow->life, .until = narrow->until };
	bool fresh;
	uint32_t *at = map_put(latest, narrow->life, &fresh);

	if (!fresh)
		advise_life(a, *at, CLASS_BIT(activations), &before);
	if (!fresh && before.until >= copy->until)
		return;
	*at = copy->life;
	plan_with(p, before.life, before.until > narrow->until ? before.until : narrow->until,
		  copy->until, narrow->size);
}

/* The lower end: the originals stay. A fused norm keeps one of them anyway. */
void advise_wide_copies(struct advise *a)
{
	struct line_plans lines = { 0 };
	struct map latest = { 0 };
	struct advised narrow;
	struct finding *f;
	struct owner owner;

	ADVISE_EACH (a, CLASS_BIT(activations), l)
		if (is_kept_copy(a, &l, &narrow))
			lines_without(&lines, a, &l, l.from);
	f = lines_add_all(&lines, a, "wide_copies");
	f->range = true;
	if (f->bytes)
		ADVISE_EACH (a, CLASS_BIT(activations), l) {
			if (!is_kept_copy(a, &l, &narrow))
				continue;
			owner = advise_owner(a, &l);
			if (owners_same(&owner, &f->owner))
				with_narrow(a, &f->cautious, &latest, &l, &narrow);
		}
	map_free(&latest);
}

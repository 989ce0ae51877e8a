/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies in twice the width that graphs keep: 16-bit activations that a line makes float32 because
 * its weights are (adapters of a frozen model) or for its sums (a norm in parts). In 16 bits there
 * is no copy, and what it was made of is saved in its place.
 */

#include "line_plans.h"
#include "ops.h"

#define ANY                                                                            \
	(CLASS_BIT(activations) | CLASS_BIT(forward_temporaries) | CLASS_BIT(inputs) | \
	 CLASS_BIT(backward_temporaries))

enum { LOOK_BACK = 16 };

static bool is_half(uint64_t half, uint64_t whole)
{
	uint64_t twice = 2 * half;

	return (twice > whole ? twice - whole : whole - twice) <= whole / 16;
}

/* The latest tensor of half the size that was there. */
static bool find_narrow(const struct advise *a, const struct advised *copy, struct advised *found)
{
	for (uint32_t i = 1; i <= LOOK_BACK && i <= copy->life; i++)
		if (advise_life(a, copy->life - i, ANY, found) && copy->from < found->until &&
		    is_half(found->size, copy->size))
			return true;
	return false;
}

static bool is_kept_copy(struct ops *ops, const struct advised *l)
{
	const struct advise *a = ops->advise;

	return l->size >= SCORES_MIN / 16 && l->life < a->lives->rows.count && a->saved[l->life] &&
	       !stage_is_backward(l->born->stage) && ops_is_cast(ops_find(ops, l)->name);
}

/* What the copy was made of stays in its place, once for all that were made of it (latest: life ->
 * its copy that stays longest so far). */
static void with_narrow(struct advise *a, struct life_plan *p, struct map *latest,
			const struct advised *copy, const struct advised *narrow)
{
	struct advised before = { .until = narrow->until };
	bool fresh;
	uint32_t *at = map_put(latest, narrow->life, &fresh);

	if (!fresh)
		advise_life(a, *at, ANY, &before);
	if (!fresh && before.until >= copy->until)
		return;
	*at = copy->life;
	plan_with(p, before.until > narrow->until ? before.until : narrow->until, copy->until,
		  narrow->size, a->peak_seq);
}

static void say_wide(struct advise *a, struct finding *f, const struct line_plan *p)
{
	advise_put(f->what,
		   "Compute %s%s in 16 bits: give its weights the type of its input (in PEFT "
		   "autocast_adapter_dtype=False), or use a fused kernel for a norm",
		   ADVISE_LINE(f), p->lines > 1 ? " and others" : "");
	advise_put(f->how,
		   "%s in %s %s: copies in twice the width (float32 of 16 bits) that are saved for "
		   "backward. What they were made of may then be saved in their place",
		   B(p->bytes), MANY(p->blocks, "block"), a->when);
}

static bool is_at(struct advise *a, const struct advised *l, const struct owner *owner)
{
	struct owner own;
	struct block b;

	advise_block(a, l, &b);
	own = owners_find(&a->timeline->owners, &b);
	return owners_same(&own, owner);
}

/* At least what is left where the originals stay; a fused norm keeps one of them anyway. */
void advise_wide_copies(struct advise *a)
{
	struct ops ops = { .advise = a };
	struct line_plans lines = { 0 };
	struct map latest = { 0 };
	struct advised l, narrow;
	struct finding *f;

	ADVISE_EACH(a, CLASS_BIT(activations), l)
	{
		if (is_kept_copy(&ops, &l) && find_narrow(a, &l, &narrow))
			lines_without(&lines, a, &l, l.from);
	}
	f = lines_add_all(&lines, a, "wide_copies", say_wide);
	if (f) {
		f->range = true;
		ADVISE_EACH(a, CLASS_BIT(activations), l)
		{
			if (is_kept_copy(&ops, &l) && find_narrow(a, &l, &narrow) &&
			    is_at(a, &l, &f->owner))
				with_narrow(a, &f->cautious, &latest, &l, &narrow);
		}
	}
	map_free(&latest);
	ops_free(&ops);
}

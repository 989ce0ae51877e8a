/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are still there at the peak although nothing uses them any more: a fact of the whole
 * run, by the uses that are recorded. A program lets go of a model, or of results, behind the pass
 * that used them last. What is freed within the phase of the peak is no finding: an operator's or
 * an optimizer's own lists end there. What a finding before this one names, with a reason of its
 * own, is left to it.
 */
#include "advise.h"

/* Kept for the next call of its library, which may come at any time. */
static bool is_workspace(const struct advised *l)
{
	return l->classes & CLASS_BIT(workspace);
}

void advise_held_beyond_use(struct advise *a)
{
	struct line_plans lines = { 0 };
	struct finding *f;

	ADVISE_EACH (a, UINT16_MAX, l) {
		uint64_t used = advise_is_used_up(a, &l) ? advise_used_until(a, &l) : 0;
		uint64_t end = used ? advise_phase_end(a, used - 1) : PLAN_END;

		if (end <= a->peak_seq && !a->shortened[l.life] && !is_workspace(&l))
			lines_without(&lines, a, &l, end);
	}
	f = lines_add_all(&lines, a, "held");
	advise_put(f->what,
		   "Free what %s%s allocated after its last use (delete what refers to it, or move "
		   "it to the host): it is kept, but nothing uses it any more",
		   ADVISE_LINE(f), f->range ? " and other lines" : "");
	advise_put(
		f->how,
		"%s in %s %s that no kernel, copy or collective uses again before they are freed",
		B(f->bytes), MANY(f->blocks, "block"), a->when);
	f->range = false; /* all of them are known */
}

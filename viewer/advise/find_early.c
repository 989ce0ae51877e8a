/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that wait on the device for their first pass while other passes run: weights that were
 * made or moved there and are not used until that pass.
 */
#include "advise.h"

/* First event of the phase that first needs it. 0 = it does not wait at the peak, or no other pass
 * has begun since it was made. */
static uint64_t waits_until(const struct advise *a, const struct advised *l)
{
	size_t at = advise_spans_begun(a, l->course->begun);

	if (!l->course->begun || !l->course->made || l->course->made >= a->peak_seq ||
	    advise_next_pass(a, l) >= a->peak_seq)
		return 0;
	return at ? a->timeline->model.spans.items[at - 1].extent.first_seq : 0;
}

void advise_early_weights(struct advise *a)
{
	struct finding *f = advise_add(a, "early_weights");

	ADVISE_EACH (a, CLASSES_THAT(ARE_WEIGHTS), l) {
		uint64_t until = advise_counts(a, &l) ? waits_until(a, &l) : 0;

		if (until <= a->peak_seq)
			continue;
		plan_without(&f->plan, l.life, l.course->made + 1, until, l.size);
		advise_name(a, f, &l);
		f->bytes += l.size;
		f->blocks++;
	}
}

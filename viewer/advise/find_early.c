/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that wait on the device for their first pass while other passes run: weights that were
 * made or moved there, and that nothing uses from then on to the pass that needs them.
 */
#include "advise.h"

struct search {
	struct advise *advise;
	struct map before, firsts; /* life -> the first work of a pass on it; the one before that */
};

static void note_work(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	struct search *s = ctx;
	const struct model *m = &s->advise->timeline->model;
	const struct use_kind *by = uses_kind(&m->uses, work);
	bool pass = by->node || model_signs(m, by->stack) & (STACK_FORWARD | STACK_STEP);
	struct advised l;

	for (size_t i = 0; i < count; i++)
		if (advise_life(s->advise, lives[i], CLASSES_THAT(ARE_WEIGHTS), &l) &&
		    !map_get(&s->firsts, lives[i]))
			*map_put(pass ? &s->firsts : &s->before, lives[i], NULL) = work;
}

/* Where the phase begins that first needs it, 0 = it does not wait for that at the peak: other
 * passes have begun behind its making. */
static uint64_t waits_until(const struct search *s, const struct advised *l, uint64_t *since)
{
	const struct advise *a = s->advise;
	const struct model *m = &a->timeline->model;
	const uint32_t *first = map_get(&s->firsts, l->life), *made = map_get(&s->before, l->life);
	size_t at;

	if (!first || !made)
		return 0;
	*since = uses_work(&m->uses, *made)->seq + 1;
	if (*since > a->peak_seq || advise_next_pass(a, l) >= a->peak_seq)
		return 0;
	at = advise_spans_begun(a, uses_work(&m->uses, *first)->seq);
	return at ? m->spans.items[at - 1].extent.first_seq : 0;
}

void advise_early_weights(struct advise *a)
{
	struct search s = { .advise = a };
	struct finding *f;
	uint64_t since = 0;

	if (!uses_complete(&a->timeline->model))
		return;
	f = advise_add(a, "early_weights");
	advise_works(a, note_work, &s);
	ADVISE_EACH (a, CLASSES_THAT(ARE_WEIGHTS), l) {
		uint64_t until = advise_counts(a, &l) ? waits_until(&s, &l, &since) : 0;

		if (until <= a->peak_seq)
			continue;
		plan_without(&f->plan, l.life, since, until, l.size);
		advise_name(a, f, &l);
		f->bytes += l.size;
		f->blocks++;
	}
	advise_put(
		f->what,
		"Move the model of %s to the device right before its first pass, when the passes "
		"before it are over",
		ADVISE_LINE(f));
	advise_put(f->how,
		   "%s of weights in %s %s that no work uses before that pass, while others run",
		   B(f->bytes), MANY(f->blocks, "block"), a->when);
	map_free(&s.before);
	map_free(&s.firsts);
}

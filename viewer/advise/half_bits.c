/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frozen weights in half precision, and the results of their modules then. A pass that begins
 * with an embedding of such a weight goes on in its type. Elsewhere a module returns its
 * result in the type of its input, and only blocks saved inside of it are narrower: results of
 * its own work, or its operator's arguments. Weights made on the device are narrow from the
 * first pass on.
 */
#include <sys/mman.h>

#include "../base/arithmetic.h"
#include "../base/bytes.h"
#include "half_bits.h"

struct search {
	struct advise *advise;
	struct half_bits *bits;
	struct map modules; /* module and pass -> works that read such weights */
	struct map made;    /* module and pass -> results */
	struct map passes;  /* passes that begin with such an embedding */
	struct map trained; /* sizes of trained weights */
	bool autocast;	    /* results are in 16 bits already, by autocast */
};

static bool is_weight(const struct advise *a, const struct advised *l)
{
	return l->classes & CLASS_BIT(parameters) && !advise_leaf(a, l);
}

/* Key of the innermost module and pass, because a model and its frozen copy might be called from
 * one place. */
static uint64_t innermost(struct search *s, uint32_t stack, uint32_t pass)
{
	struct site_path p = sites_find(s->advise, stack);

	return p.count ? bytes_hash(p.items[p.count - 1].key, &pass, sizeof(pass)) : 0;
}

/* No result as large was made before it in its pass. */
static bool begins_pass(const struct search *s, const struct advised *l)
{
	struct advised x;

	for (uint32_t i = l->life; i-- > 0;) {
		if (!advise_life(s->advise, i, UINT16_MAX, &x))
			continue;
		if (x.born->forwards != l->born->forwards)
			break;
		if (x.born->stage == STAGE_FORWARD && x.classes & FORWARD_RESULTS &&
		    x.size >= l->size)
			return false;
	}
	return true;
}

/* A work that reads such a weight: its results. */
static void note_results(struct search *s, uint32_t work, const uint32_t *lives, size_t count)
{
	const struct use_kind *by = uses_kind(&s->advise->timeline->model.uses, work);
	struct advised l;

	for (size_t i = 0; i < count; i++) {
		if (!uses_begin(&s->advise->timeline->model, lives[i], work) ||
		    !advise_life(s->advise, lives[i], FORWARD_RESULTS, &l))
			continue;
		++*map_put(&s->modules, innermost(s, by->stack, l.born->forwards), NULL);
		if (strstr(ops_find(s->advise, &l)->name, "embedding") && begins_pass(s, &l))
			map_put(&s->passes, l.born->forwards, NULL);
	}
}

static void note_work(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	struct search *s = ctx;
	const struct use_kind *by = uses_kind(&s->advise->timeline->model.uses, work);

	for (size_t i = 0; i < count; i++) {
		if (!by->node && s->bits->of[lives[i]] >= HALF_WEIGHT)
			note_results(s, work, lives, count);
	}
}

/* A kernel now and then has an old address among its parameters. */
static bool is_of_frozen(const struct search *s, uint64_t module)
{
	enum { RESULTS = 16 };
	const uint32_t *read = map_get(&s->modules, module), *made = map_get(&s->made, module);

	return module && read && (!made || *read >= *made / RESULTS);
}

static bool is_made_of_frozen(const struct advise *a, const struct advised *l)
{
	struct advised of;

	return advise_made_of(a, l, &of) && is_weight(a, &of);
}

/* The operator that saved it last has its result right behind. */
static uint64_t saved_in(struct search *s, const struct advised *l)
{
	const struct lives *all = s->advise->lives;
	uint32_t next = lives_born_by(all, l->course->saved);

	return next < all->rows.count ? innermost(s, lives_read(all, next).stack, l->born->forwards)
				      : 0;
}

static enum half half_of(struct search *s, const struct advised *l)
{
	struct advise *a = s->advise;
	bool forward = l->born->stage == STAGE_FORWARD;
	bool narrow = map_get(&s->passes, l->born->forwards);
	struct advised of;

	/* A gradient that no weight has is of a result that was made to require one. */
	if (l->classes & CLASS_BIT(gradients))
		return narrow && !map_get(&s->trained, l->size) ? HALF_PERHAPS : HALF_NOT;
	if (advise_is_cast(a->timeline, &a->casts, l->stack, l->from))
		return is_made_of_frozen(a, l) ? HALF_GONE : HALF_NOT;
	if (narrow && forward && !ops_is_loss(ops_find(a, l)) && !s->autocast)
		return HALF_SURE;
	if (narrow || s->autocast)
		return narrow ? HALF_PERHAPS : HALF_NOT;
	if (forward && l->course->saved)
		return is_of_frozen(s, saved_in(s, l)) ? HALF_SURE : HALF_NOT;
	if (forward && is_of_frozen(s, innermost(s, l->stack, l->born->forwards)))
		return HALF_PERHAPS;
	return advise_made_of(a, l, &of) && !is_weight(a, &of) ? s->bits->of[of.life] : HALF_NOT;
}

bool half_bits_find(struct half_bits *h, struct advise *a)
{
	struct search s = { .advise = a, .bits = h };
	uint64_t bytes = 0;

	h->size = advise_lives(a) + 1;
	h->of = need_pages(h->size);
	h->first = arithmetic_least(advise_next(a, 0, PHASE_FORWARD),
				    advise_next(a, 0, PHASE_EVALUATION));
	ADVISE_EACH (a, CLASS_BIT(parameters), l) {
		if (!is_weight(a, &l)) {
			map_put(&s.trained, l.size, NULL);
			continue;
		}
		h->of[l.life] = l.course->written ? HALF_BEFORE : HALF_WEIGHT;
		bytes += advise_counts(a, &l) ? l.size : 0;
		h->largest = arithmetic_most(h->largest, l.size);
	}
	if (bytes <= a->peak / 50)
		return false;
	advise_works(a, note_work, &s);
	ADVISE_EACH (a, FORWARD_RESULTS, l) {
		s.autocast |= advise_is_cast(a->timeline, &a->casts, l.stack, l.from);
		++*map_put(&s.made, innermost(&s, l.stack, l.born->forwards), NULL);
	}
	/* Gradients of results might be classified as either. */
	ADVISE_EACH (a, FORWARD_RESULTS | CLASS_BIT(backward_temporaries) | CLASS_BIT(gradients), l)
		if (!(l.classes & OF_THE_MODEL & ~CLASS_BIT(gradients)) && !l.wanted)
			h->of[l.life] = (uint8_t)half_of(&s, &l);
	map_free(&s.modules);
	map_free(&s.made);
	map_free(&s.passes);
	map_free(&s.trained);
	return true;
}

void half_bits_free(struct half_bits *h)
{
	if (h->of)
		munmap(h->of, h->size);
}

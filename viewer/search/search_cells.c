/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each card with each setting. For each code generation the program runs on the card with the most
 * memory, because the others have the same compute capability and so the same decisions of PyTorch.
 * The answer for another card is computed from that run only if
 *  - the program did not query free memory; and
 *  - it fits with room to spare, so that neither scratch memory that depends on the number of
 *    multiprocessors nor a cache that is released on demand matters; or the larger card was out of
 *    memory, or its run was not stable.
 * Everything else is run on the card itself.
 */
#include <stdlib.h>

#include "../base/need.h"
#include "search.h"

#define MIB ((uint64_t)1 << 20)

bool search_same_generation(const struct card *a, const struct card *b)
{
	return a->major == b->major && a->minor == b->minor && a->code == b->code;
}

/* The card of its generation that is run. */
static const struct card *first_of(const struct search *s, const struct card *c)
{
	const struct card *best = c;

	for (size_t i = 0; i < s->card_count; i++)
		if (search_same_generation(c, &s->cards[i]) && s->cards[i].memory > best->memory)
			best = &s->cards[i];
	return best;
}

static uint64_t room_to_spare(const struct card *run, const struct card *c)
{
	if (run->processors == c->processors)
		return c->memory / 100 + 16 * MIB;
	return c->memory / 50 + 64 * MIB;
}

static uint64_t device_on(const struct trial *t, const struct card *c)
{
	return t->device - (t->context < t->device ? t->context : t->device) + c->context;
}

/* Blocks may grow into what is not used by others. */
static uint64_t ends_on(const struct trial *t, const struct card *c)
{
	uint64_t device = device_on(t, c);
	uint64_t used = (device > t->reserved ? device - t->reserved : 0) + t->peak;

	return stable_ends(t->units, t->rising, c->memory > used ? c->memory - used : 0);
}

uint64_t search_ends(const struct cell *c)
{
	return ends_on(c->trial, c->card);
}

/* Memory ran out and the program recovered. On another card that happens at another moment. */
static bool got_over(const struct trial *t)
{
	return t->refusals > (t->verdict == ENDING_REFUSED);
}

static bool follows(const struct trial *t, const struct card *c)
{
	bool slow = t->verdict == ENDING_FITS && t->early && t->rising;

	if (t->card == c)
		return true;
	if (t->verdict == ENDING_FAILED)
		return device_on(t, c) <= c->memory;
	if (t->asked || got_over(t))
		return false;
	if (t->verdict == ENDING_REFUSED)
		return true;
	return device_on(t, c) + room_to_spare(t->card, c) <= c->memory &&
	       !(slow && stable_matters(t->units, ends_on(t, c)));
}

static void settle(struct cell *cell, struct trial *t)
{
	cell->trial = t;
	cell->measured = t->card == cell->card;
	cell->verdict = t->verdict;
	cell->fits = t->verdict == ENDING_FITS;
	cell->failed = t->verdict == ENDING_FAILED;
	cell->device = cell->measured ? t->device : device_on(t, cell->card);
}

static int run_first(struct search *s)
{
	struct trial **list = need_new((s->cell_count + 1) * sizeof(*list));
	int rc;

	for (size_t i = 0; i < s->cell_count; i++)
		list[i] = search_trial(s, first_of(s, s->cells[i].card), &s->cells[i].setting);
	rc = search_run(s, list, s->cell_count);
	for (size_t i = 0; !rc && i < s->cell_count; i++)
		settle(&s->cells[i], list[i]);
	free(list);
	return rc;
}

static int run_others(struct search *s)
{
	struct trial **list = need_new((s->cell_count + 1) * sizeof(*list));
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < s->cell_count; i++) {
		struct cell *c = &s->cells[i];

		if (!follows(c->trial, c->card))
			list[n++] = search_trial(s, c->card, &c->setting);
	}
	rc = search_run(s, list, n);
	for (size_t i = 0; !rc && i < s->cell_count; i++) {
		struct cell *c = &s->cells[i];
		bool own = false;

		for (size_t k = 0; k < n && !own; k++)
			own = list[k]->card == c->card &&
			      vary_same(&s->plan.varied, &list[k]->setting, &c->setting);
		if (own)
			settle(c, search_trial(s, c->card, &c->setting));
	}
	free(list);
	return rc;
}

int search_cells(struct search *s)
{
	size_t settings = vary_settings(&s->plan.varied);
	int rc;

	s->cell_count = settings * s->card_count;
	s->cells = need_new(s->cell_count * sizeof(*s->cells));
	for (size_t i = 0; i < s->cell_count; i++)
		s->cells[i] = (struct cell){ .card = &s->cards[i % s->card_count],
					     .setting = vary_setting(&s->plan.varied,
								     i / s->card_count) };
	rc = run_first(s);
	return rc ? rc : run_others(s);
}

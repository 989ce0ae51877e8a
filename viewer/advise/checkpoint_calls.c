/* SPDX-License-Identifier: Apache-2.0 */
/* The begin, end and input of each call of a module. */
#include "checkpoint.h"

enum { LOOK_BACK = 64, LOOK_AHEAD = 4096, SMALL = 4096 };

struct advised checkpoint_life(const struct checkpoint_search *s, uint32_t life)
{
	struct advised l = { 0 };

	advise_life(s->advise, life, UINT16_MAX, &l);
	return l;
}

/* Most likely the input of the call: the latest earlier block of a pass that is alive when the call
 * begins. */
static struct advised input_of(struct checkpoint_search *s, uint32_t first)
{
	struct advised begin = checkpoint_life(s, first), l;

	for (uint32_t i = first; i-- > 0 && first - i <= LOOK_BACK;)
		if (advise_life(s->advise, i, CLASSES_THAT(ARE_OF_FORWARD), &l) &&
		    l.until > begin.from && !stage_is_backward(l.born->stage) && l.size >= SMALL)
			return l;
	return (struct advised){ 0 };
}

/* Made inside that site in that forward pass. */
static bool is_made_inside(struct checkpoint_search *s, uint64_t key, uint32_t pass,
			   const struct advised *l)
{
	return l->born->stage == STAGE_FORWARD && l->born->forwards == pass &&
	       sites_has(s->advise, l->stack, key);
}

/* Stack of the first block of the first call, saved or not. */
static uint32_t opening_stack(struct checkpoint_search *s, const struct checkpoint_site *site,
			      uint64_t outside)
{
	struct advised first = checkpoint_life(
		s, FIRST_OF(x, site->items, site->count, x->outside == outside)->life);
	uint32_t stack = first.stack;
	struct advised l;

	for (uint32_t i = first.life; i-- > 0 && first.life - i <= LOOK_BACK;) {
		if (!advise_life(s->advise, i, FORWARD_RESULTS, &l))
			continue;
		if (!is_made_inside(s, site->key, first.born->forwards, &l))
			break;
		stack = l.stack;
	}
	return stack;
}

/* First block of a call, saved or not, after the saved blocks of the previous call. */
static uint32_t begin_of(struct checkpoint_search *s, const struct checkpoint_site *site, size_t at)
{
	const struct checkpoint_inside *x = &site->items[at];
	uint64_t key = site->key ^ x->outside;
	uint32_t stack = map_known(&s->opens, key, opening_stack(s, site, x->outside));
	uint32_t i = at ? site->items[at - 1].life + 1 : 0;
	struct advised first = checkpoint_life(s, x->life), l;

	for (i = x->life > LOOK_BACK + i ? x->life - LOOK_BACK : i; i < x->life; i++)
		if (advise_life(s->advise, i, FORWARD_RESULTS, &l) && l.stack == stack &&
		    is_made_inside(s, site->key, first.born->forwards, &l))
			return i;
	return x->life;
}

/* The event after the last block made inside the call, saved or not. A block made elsewhere ends
 * the call. */
static uint64_t end_of(struct checkpoint_search *s, const struct checkpoint_site *site,
		       const struct checkpoint_call *c, size_t next)
{
	uint32_t last = site->items[c->last].life,
		 stop = next < site->count ? begin_of(s, site, next) : advise_lives(s->advise);
	uint32_t pass = checkpoint_life(s, last).born->forwards;
	uint64_t end = checkpoint_life(s, last).from;
	struct advised l;

	for (uint32_t i = last + 1; i < stop && i - last <= LOOK_AHEAD; i++) {
		if (advise_life(s->advise, i, UINT16_MAX, &l)) {
			if (!is_made_inside(s, site->key, pass, &l))
				break;
			end = l.from;
		}
	}
	return end + 1;
}

struct checkpoint_call checkpoint_call_at(struct checkpoint_search *s,
					  const struct checkpoint_site *site, size_t first,
					  size_t *next)
{
	struct checkpoint_call c = {
		.site = site, .first = first, .let_go = PLAN_END, .first_gone = PLAN_END
	};

	for (*next = first + 1; *next < site->count && !site->items[*next].begins;)
		++*next;
	c.last = *next - 1;
	c.begin = begin_of(s, site, first);
	c.end = end_of(s, site, &c, *next);
	c.input = input_of(s, c.begin);
	for (size_t k = first; k <= c.last; k++) {
		struct advised l = checkpoint_life(s, site->items[k].life);

		if (l.until >= c.let_go || l.until <= c.end)
			continue;
		c.let_go = l.until;
		c.first_gone = advise_by_backward(s->advise, &l) ? l.until : PLAN_END;
	}
	return c;
}

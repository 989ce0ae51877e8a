/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch can have several records. All but the first continue the record before them on their
 * thread: if one of these stays, the first one stays too.
 */
#include "thin_uses.h"

#include "../../format/record.h"
#include "../../format/uses.h"

#define BACK_BITS 16 /* of the distance to the first record of a launch */

/* Values: seq << BACK_BITS | distance. 0 = allocated, and not used yet. */
static struct {
	struct thin_table last, first; /* by place */
	struct thin_table heads;       /* thread -> the first record of its latest launch */
} uses;

static bool keep_use(struct thin_table *keep, uint64_t use)
{
	uint64_t seq = use >> BACK_BITS, back = use & ((1u << BACK_BITS) - 1);

	return !use || (table_set(keep, seq, 1) && (!back || table_set(keep, seq - back, 1)));
}

/* The value of a use; 0: too far from the first record of its launch. */
static uint64_t use_of(const struct gmt_event *e)
{
	const uint64_t *head = table_get(&uses.heads, (uint64_t)e->thread + 1);
	uint64_t back = e->flags & GMT_FLAG_MORE ? e->seq - (head ? *head : 0) : 0;

	return back >> BACK_BITS ? 0 : e->seq << BACK_BITS | back;
}

/* A graph launch has the graph as its place: the records of the graph's own places stay. */
static unsigned places_of(const struct gmt_event *e, uint64_t places[GMT_USE_PLACES])
{
	if (e->kind == GMT_USE)
		return gmt_use_places(e, places);
	places[0] = e->addr;
	return e->addr != 0;
}

bool thin_uses_look(const struct gmt_event *e)
{
	uint64_t places[GMT_USE_PLACES], *first, use;
	unsigned n = places_of(e, places);

	if (e->kind == GMT_USE && !(e->flags & GMT_FLAG_MORE) &&
	    !table_set(&uses.heads, (uint64_t)e->thread + 1, e->seq))
		return false;
	use = use_of(e);
	for (unsigned i = 0; use && i < n; i++) {
		uint64_t place = places[i] / GMT_USE_UNIT;

		if (!table_set(&uses.last, place, use))
			return false;
		first = table_get(&uses.first, place);
		if (first && !*first)
			*first = use;
	}
	return true;
}

bool thin_uses_born(uint64_t addr)
{
	return table_set(&uses.first, addr / GMT_USE_UNIT, 0);
}

/* size 0 = not known, because a call that frees does not have it. */
bool thin_uses_died(uint64_t addr, uint64_t size, bool inside, struct thin_table *keep)
{
	uint64_t begin = addr / GMT_USE_UNIT;
	uint64_t end = size ? (addr + size) / GMT_USE_UNIT : UINT64_MAX;
	uint64_t *first = inside ? table_get(&uses.first, begin) : NULL;

	if (first)
		table_remove(&uses.first, first);
	for (uint64_t i = 0; !inside && i < uses.last.room; i++) {
		const struct thin_slot *s = &uses.last.slots[i];

		if (s->key && s->key >= begin && s->key < end && !keep_use(keep, s->value))
			return false;
	}
	return true;
}

static bool keep_uses(const struct thin_table *t, struct thin_table *keep)
{
	for (uint64_t i = 0; i < t->room; i++)
		if (t->slots[i].key && !keep_use(keep, t->slots[i].value))
			return false;
	return true;
}

bool thin_uses_end_range(struct thin_table *keep)
{
	bool ok = keep_uses(&uses.last, keep) && keep_uses(&uses.first, keep);

	table_clear(&uses.last);
	table_clear(&uses.first);
	table_clear(&uses.heads);
	return ok;
}

void thin_uses_free(void)
{
	table_free(&uses.last);
	table_free(&uses.first);
	table_free(&uses.heads);
}

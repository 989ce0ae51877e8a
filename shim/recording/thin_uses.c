/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch of many places is several events; they stay or go together, with the first of them that
 * has the stack. A place is not looked up among blocks: what is kept for one that died in the range
 * is a use more than needed, never one less.
 */
#include "thin_uses.h"

#include "../../format/record.h"
#include "../../format/uses.h"
#include "thin_table.h"

static struct {
	struct thin_table first, last; /* seq of the launch, by place */
	struct thin_table launches;    /* by thread: seq of the launch, or whether it stays */
} uses;

/* Never 0. */
static uint64_t place_key(uint64_t place)
{
	return place / GMT_USE_UNIT << 1 | 1;
}

static uint64_t thread_key(const struct gmt_event *e)
{
	return (uint64_t)e->thread + 1;
}

static bool note(uint64_t key, uint64_t seq)
{
	uint64_t *first = table_put(&uses.first, key), *last = table_put(&uses.last, key);

	if (!first || !last)
		return false;
	if (!*first)
		*first = seq;
	*last = seq;
	return true;
}

/* The seq of the launch that an event is about; 0 = it began before the range. */
static uint64_t launch_of(const struct gmt_event *e)
{
	uint64_t *at;

	if (e->flags & GMT_FLAG_MORE) {
		at = table_get(&uses.launches, thread_key(e));
		return at ? *at : 0;
	}
	at = table_put(&uses.launches, thread_key(e));
	if (at)
		*at = e->seq;
	return e->seq;
}

bool thin_uses_see(const struct gmt_event *e)
{
	uint64_t places[GMT_USE_PLACES], launch;
	bool room = true;

	if (e->kind != GMT_USE)
		return note(place_key(e->addr), e->seq);
	launch = launch_of(e);
	for (unsigned i = 0, n = gmt_use_places(e, places); launch && i < n; i++)
		room = note(place_key(places[i]), launch) && room;
	return room;
}

static bool keep_all(const struct thin_table *t, struct thin_table *keep)
{
	bool room = true;

	for (uint64_t i = 0; i < t->room; i++) {
		uint64_t *at = t->slots[i].key ? table_put(keep, t->slots[i].value) : NULL;

		if (at)
			*at = 1;
		else if (t->slots[i].key)
			room = false;
	}
	return room;
}

bool thin_uses_end(struct thin_table *keep)
{
	bool room = keep_all(&uses.first, keep);

	return keep_all(&uses.last, keep) && room;
}

bool thin_uses_stays(const struct gmt_event *e, const struct thin_table *keep)
{
	enum { STAYS = 1, GOES = 2 };
	bool more = e->kind == GMT_USE && e->flags & GMT_FLAG_MORE;
	bool stays = table_get(keep, e->seq) != NULL;
	uint64_t *at;

	if (more) {
		at = table_get(&uses.launches, thread_key(e));
		return !at || *at == STAYS;
	}
	at = e->kind == GMT_USE ? table_put(&uses.launches, thread_key(e)) : NULL;
	if (at)
		*at = stays ? STAYS : GOES;
	return stays;
}

void thin_uses_clear(void)
{
	table_clear(&uses.first);
	table_clear(&uses.last);
	table_clear(&uses.launches);
}

void thin_uses_free(void)
{
	table_free(&uses.first);
	table_free(&uses.last);
	table_free(&uses.launches);
}

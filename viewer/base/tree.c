/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#define CHUNK	    1024u
#define GROUP	    128u
#define RECENT_BITS 14
#define THERE_BITS  15
#define GONE_MOST   1024u /* places of removed blocks, beyond as many as there are blocks */

struct tree_group {
	unsigned count; /* never 0 */
	uint64_t addrs[GROUP];
	uint32_t places[GROUP];
};

/* Position of an address, or where it would be inserted. */
struct spot {
	size_t group;
	unsigned i;
};

static size_t bytes_of_item(const struct tree *t)
{
	return t->each ? t->each : sizeof(struct block);
}

static struct block *block_at(const struct tree *t, uint32_t place)
{
	return (struct block *)(t->chunks[place / CHUNK] + place % CHUNK * bytes_of_item(t));
}

/* The number of n sorted addresses that are <= addr. No branch depends on the addresses. */
static size_t up_to(const uint64_t *addrs, size_t n, uint64_t addr)
{
	const uint64_t *from = addrs;

	while (n > 1) {
		size_t half = n / 2;

		from = from[half - 1] <= addr ? from + half : from;
		n -= half;
	}
	return (size_t)(from - addrs) + (n && *from <= addr);
}

/* Finds the last block at addr or below it. False: there is none. */
static bool last_up_to(const struct tree *t, uint64_t addr, struct spot *s)
{
	const struct tree_group *g;

	s->group = up_to(t->firsts, t->group_count, addr);
	if (!s->group)
		return false;
	g = t->groups[--s->group];
	s->i = (unsigned)up_to(g->addrs, g->count, addr) - 1;
	return true;
}

static uint32_t place_at(const struct tree *t, struct spot s)
{
	return t->groups[s.group]->places[s.i];
}

static uint32_t *recent_of(const struct tree *t, uint64_t addr)
{
	return &t->recent[addr * 0x9e3779b97f4a7c15u >> (64 - RECENT_BITS)];
}

static uint8_t *there_of(const struct tree *t, uint64_t addr)
{
	return &t->there[addr * 0x9e3779b97f4a7c15u >> (64 - THERE_BITS)];
}

/* 1 + the place of the block at that address, which might be gone; 0: it is not a recent one. */
static uint32_t find_recent(const struct tree *t, uint64_t addr)
{
	uint32_t place = t->recent ? *recent_of(t, addr) : 0;

	return place && block_at(t, place - 1)->addr == addr ? place : 0;
}

static uint32_t find_place(const struct tree *t, uint64_t addr)
{
	uint32_t place = find_recent(t, addr);
	struct spot s;

	if (place || !t->there || !*there_of(t, addr) || !last_up_to(t, addr, &s))
		return place;
	return t->groups[s.group]->addrs[s.i] == addr ? 1 + place_at(t, s) : 0;
}

struct block *tree_find(const struct tree *t, uint64_t addr)
{
	uint32_t place = find_place(t, addr);

	return place && !t->gone[place - 1] ? block_at(t, place - 1) : NULL;
}

static void drop_group(struct tree *t, size_t at)
{
	size_t behind = t->group_count - at - 1;

	free(t->groups[at]);
	memmove(&t->groups[at], &t->groups[at + 1], behind * sizeof(*t->groups));
	memmove(&t->firsts[at], &t->firsts[at + 1], behind * sizeof(*t->firsts));
	t->group_count--;
}

/* Frees the place of a block that is gone. */
static void drop_gone(struct tree *t, struct spot s)
{
	struct tree_group *g = t->groups[s.group];
	unsigned behind = --g->count - s.i;
	uint32_t place = g->places[s.i];

	if (*recent_of(t, g->addrs[s.i]) == place + 1)
		*recent_of(t, g->addrs[s.i]) = 0;
	*need_item(t->free, t->free_count, t->free_room) = place;
	t->gone_count--;
	memmove(&g->addrs[s.i], &g->addrs[s.i + 1], behind * sizeof(g->addrs[0]));
	memmove(&g->places[s.i], &g->places[s.i + 1], behind * sizeof(g->places[0]));
	t->firsts[s.group] = g->addrs[0];
	if (!g->count)
		drop_group(t, s.group);
}

void tree_tidy(struct tree *t)
{
	for (size_t group = t->gone_count ? t->group_count : 0; group-- > 0;)
		for (unsigned i = t->groups[group]->count; i-- > 0;)
			if (t->gone[place_at(t, (struct spot){ group, i })])
				drop_gone(t, (struct spot){ group, i });
}

/* The block at the spot. If it is gone, its place is freed and NULL returned. */
static struct block *block_of(const struct tree *t, struct spot s)
{
	uint32_t place = place_at(t, s);

	if (!t->gone[place])
		return block_at(t, place);
	drop_gone((struct tree *)t, s);
	return NULL;
}

struct block *tree_enclosing(const struct tree *t, uint64_t addr)
{
	uint32_t recent = find_recent(t, addr);
	struct block *b = recent && !t->gone[recent - 1] ? block_at(t, recent - 1) : NULL;
	struct spot s;

	while (!b && last_up_to(t, addr, &s))
		b = block_of(t, s);
	return b && addr - b->addr < b->size ? b : NULL;
}

/* The first block at addr or above it. False: there is none. */
static bool first_from(const struct tree *t, uint64_t addr, struct spot *s)
{
	*s = (struct spot){ 0 };
	if (last_up_to(t, addr, s)) {
		const struct tree_group *g = t->groups[s->group];

		s->i += g->addrs[s->i] != addr;
		if (s->i == g->count)
			*s = (struct spot){ s->group + 1, 0 };
	}
	return s->group < t->group_count;
}

struct block *tree_from(const struct tree *t, uint64_t addr)
{
	struct block *b = NULL;
	struct spot s;

	while (!b && first_from(t, addr, &s))
		b = block_of(t, s);
	return b;
}

static uint32_t take(struct tree *t)
{
	uint32_t place;

	if (t->free_count) {
		place = t->free[--t->free_count];
	} else {
		place = t->used++;
		if (place / CHUNK >= t->chunk_count) {
			*need_item(t->chunks, t->chunk_count, t->room) =
				need_new(CHUNK * bytes_of_item(t));
			t->gone = need_resize(t->gone, t->chunk_count * CHUNK * sizeof(*t->gone));
		}
	}
	t->gone[place] = true;
	t->gone_count++;
	return place;
}

/* Puts an empty block into a place. */
static struct block *begin_block(struct tree *t, uint32_t place, uint64_t addr)
{
	struct block *b = block_at(t, place);

	memset(b, 0, bytes_of_item(t));
	b->addr = addr;
	*recent_of(t, addr) = place + 1;
	if (t->gone[place]) {
		t->gone[place] = false;
		t->gone_count--;
		t->count++;
		*there_of(t, addr) += *there_of(t, addr) < UINT8_MAX;
	}
	return b;
}

/* Inserts an empty group at `at`. */
static struct tree_group *make_group(struct tree *t, size_t at)
{
	size_t behind = t->group_count - at;

	t->groups = need_grow(t->groups, &t->group_room, t->group_count, sizeof(*t->groups));
	t->firsts = need_grow(t->firsts, &t->first_room, t->group_count, sizeof(*t->firsts));
	memmove(&t->groups[at + 1], &t->groups[at], behind * sizeof(*t->groups));
	memmove(&t->firsts[at + 1], &t->firsts[at], behind * sizeof(*t->firsts));
	t->group_count++;
	return t->groups[at] = need_new(sizeof(struct tree_group));
}

/* Splits a full group: its second half becomes a new group. */
static void split(struct tree *t, size_t at)
{
	enum { HALF = GROUP / 2 };
	struct tree_group *g = t->groups[at], *next = make_group(t, at + 1);

	memcpy(next->addrs, &g->addrs[HALF], HALF * sizeof(g->addrs[0]));
	memcpy(next->places, &g->places[HALF], HALF * sizeof(g->places[0]));
	g->count = next->count = HALF;
	t->firsts[at + 1] = next->addrs[0];
}

/* The position behind `before` for a new address; splits the group if it is full. */
static struct spot spot_behind(struct tree *t, struct spot before)
{
	struct spot s = { before.group, before.i + 1 };

	if (t->groups[s.group]->count < GROUP)
		return s;
	split(t, s.group);
	if (s.i > GROUP / 2)
		s = (struct spot){ s.group + 1, s.i - GROUP / 2 };
	return s;
}

static void group_insert(struct tree *t, struct spot s, uint64_t addr)
{
	struct tree_group *g = t->groups[s.group];
	unsigned behind = g->count - s.i;

	memmove(&g->addrs[s.i + 1], &g->addrs[s.i], behind * sizeof(g->addrs[0]));
	memmove(&g->places[s.i + 1], &g->places[s.i], behind * sizeof(g->places[0]));
	g->addrs[s.i] = addr;
	g->places[s.i] = take(t);
	g->count++;
	t->firsts[s.group] = g->addrs[0];
}

/* The place at that address in the groups, or a new one. */
static uint32_t place_in_groups(struct tree *t, uint64_t addr)
{
	struct spot s = { 0, (unsigned)-1 };

	if (!t->group_count)
		make_group(t, 0);
	else if (!last_up_to(t, addr, &s))
		s = (struct spot){ 0, (unsigned)-1 };
	if (s.i == (unsigned)-1 || t->groups[s.group]->addrs[s.i] != addr) {
		s = spot_behind(t, s);
		group_insert(t, s, addr);
	}
	return place_at(t, s);
}

struct block *tree_insert(struct tree *t, uint64_t addr)
{
	uint32_t recent = find_recent(t, addr);

	if (!t->recent) {
		t->recent = need_new(sizeof(*t->recent) << RECENT_BITS);
		t->there = need_new(sizeof(*t->there) << THERE_BITS);
	}
	return begin_block(t, recent ? recent - 1 : place_in_groups(t, addr), addr);
}

void tree_remove(struct tree *t, uint64_t addr)
{
	uint32_t place = find_place(t, addr);

	if (!place || t->gone[place - 1])
		return;
	t->gone[place - 1] = true;
	t->gone_count++;
	t->count--;
	*there_of(t, addr) -= *there_of(t, addr) < UINT8_MAX;
	if (t->gone_count > t->count + GONE_MOST)
		tree_tidy(t);
}

void tree_free(struct tree *t)
{
	for (size_t i = 0; i < t->chunk_count; i++)
		free(t->chunks[i]);
	for (size_t i = 0; i < t->group_count; i++)
		free(t->groups[i]);
	free(t->chunks);
	free(t->free);
	free(t->groups);
	free(t->firsts);
	free(t->recent);
	free(t->there);
	free(t->gone);
	*t = (struct tree){ .each = t->each };
}

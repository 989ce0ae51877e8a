/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#define CHUNK	    1024u
#define GROUP	    128u
#define RECENT_BITS 12
#define THERE_BITS  15

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

static bool tree_find_spot(const struct tree *t, uint64_t addr, struct spot *s)
{
	return last_up_to(t, addr, s) && t->groups[s->group]->addrs[s->i] == addr;
}

static struct block *block_of(const struct tree *t, struct spot s)
{
	return block_at(t, t->groups[s.group]->places[s.i]);
}

static uint32_t *recent_of(const struct tree *t, uint64_t addr)
{
	return &t->recent[addr * 0x9e3779b97f4a7c15u >> (64 - RECENT_BITS)];
}

/* NULL: the block is not among the most recent ones. */
static struct block *find_recent(const struct tree *t, uint64_t addr)
{
	uint32_t place = t->recent ? *recent_of(t, addr) : 0;
	struct block *b = place ? block_at(t, place - 1) : NULL;

	return b && b->addr == addr ? b : NULL;
}

static uint8_t *there_of(const struct tree *t, uint64_t addr)
{
	return &t->there[addr * 0x9e3779b97f4a7c15u >> (64 - THERE_BITS)];
}

struct block *tree_find(const struct tree *t, uint64_t addr)
{
	struct block *b = find_recent(t, addr);
	struct spot s;

	if (b || !t->there || !*there_of(t, addr))
		return b;
	return tree_find_spot(t, addr, &s) ? block_of(t, s) : NULL;
}

struct block *tree_enclosing(const struct tree *t, uint64_t addr)
{
	struct block *b = find_recent(t, addr);
	struct spot s;

	if (!b && last_up_to(t, addr, &s))
		b = block_of(t, s);
	return b && addr - b->addr < b->size ? b : NULL;
}

struct block *tree_from(const struct tree *t, uint64_t addr)
{
	struct spot s = { 0 };

	if (last_up_to(t, addr, &s)) {
		const struct tree_group *g = t->groups[s.group];

		s.i += g->addrs[s.i] != addr;
		if (s.i == g->count)
			s = (struct spot){ s.group + 1, 0 };
	}
	return s.group < t->group_count ? block_of(t, s) : NULL;
}

static uint32_t take(struct tree *t)
{
	uint32_t place;

	if (t->free_count) {
		place = t->free[--t->free_count];
	} else {
		place = t->used++;
		if (place / CHUNK >= t->chunk_count)
			*need_item(t->chunks, t->chunk_count, t->room) =
				need_new(CHUNK * bytes_of_item(t));
	}
	return place;
}

static void clear(struct tree *t, uint32_t place, uint64_t addr)
{
	memset(block_at(t, place), 0, bytes_of_item(t));
	block_at(t, place)->addr = addr;
	*recent_of(t, addr) = place + 1;
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
	t->count++;
	*there_of(t, addr) += *there_of(t, addr) < UINT8_MAX;
}

struct block *tree_insert(struct tree *t, uint64_t addr)
{
	struct spot s = { 0, (unsigned)-1 };

	if (!t->recent) {
		t->recent = need_new(sizeof(*t->recent) << RECENT_BITS);
		t->there = need_new(sizeof(*t->there) << THERE_BITS);
	}
	if (!t->group_count)
		make_group(t, 0);
	else if (!last_up_to(t, addr, &s))
		s = (struct spot){ 0, (unsigned)-1 };
	if (s.i == (unsigned)-1 || t->groups[s.group]->addrs[s.i] != addr) {
		s = spot_behind(t, s);
		group_insert(t, s, addr);
	}
	clear(t, t->groups[s.group]->places[s.i], addr);
	return block_of(t, s);
}

static void drop_group(struct tree *t, size_t at)
{
	size_t behind = t->group_count - at - 1;

	free(t->groups[at]);
	memmove(&t->groups[at], &t->groups[at + 1], behind * sizeof(*t->groups));
	memmove(&t->firsts[at], &t->firsts[at + 1], behind * sizeof(*t->firsts));
	t->group_count--;
}

void tree_remove(struct tree *t, uint64_t addr)
{
	struct spot s;
	struct tree_group *g;
	unsigned behind;

	if (!tree_find_spot(t, addr, &s))
		return;
	g = t->groups[s.group];
	if (*recent_of(t, addr) == g->places[s.i] + 1)
		*recent_of(t, addr) = 0;
	*need_item(t->free, t->free_count, t->free_room) = g->places[s.i];
	t->count--;
	*there_of(t, addr) -= *there_of(t, addr) < UINT8_MAX;
	behind = --g->count - s.i;
	memmove(&g->addrs[s.i], &g->addrs[s.i + 1], behind * sizeof(g->addrs[0]));
	memmove(&g->places[s.i], &g->places[s.i + 1], behind * sizeof(g->places[0]));
	t->firsts[s.group] = g->addrs[0];
	if (!g->count)
		drop_group(t, s.group);
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
	*t = (struct tree){ .each = t->each };
}

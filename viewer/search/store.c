/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/bytes.h"
#include "../base/map.h"
#include "../base/need.h"
#include "gloo.h"

struct entry {
	struct bytes key, value;
	uint64_t like; /* hash of the key with all numbers made equal */
	size_t who;    /* rank that set it last */
	bool there, made, counter;
	int64_t added[WORLD_RUN];
	unsigned adders; /* one bit per rank */
	struct bytes *queue;
	size_t queued, queue_room;
};

struct store {
	struct world world;
	struct entry *entries;
	size_t count, room;
	struct map keys;  /* hash of a key -> place */
	struct map often; /* by kind of key and rank: how often it read or set one */
	struct bytes popped, address;
	int ports[WORLD_RUN]; /* 0: none */
};

struct store *store_new(const struct world *w, const int *ports)
{
	struct store *s = need_new(sizeof(*s));

	if (ports)
		memcpy(s->ports, ports, w->count * sizeof(*ports));

	s->world = *w;
	return s;
}

static void free_entry(struct entry *e)
{
	for (size_t i = 0; i < e->queued; i++)
		bytes_free(&e->queue[i]);
	free(e->queue);
	bytes_free(&e->key);
	bytes_free(&e->value);
}

void store_free(struct store *s)
{
	for (size_t i = 0; i < s->count; i++)
		free_entry(&s->entries[i]);
	free(s->entries);
	map_free(&s->keys);
	map_free(&s->often);
	bytes_free(&s->popped);
	bytes_free(&s->address);
	free(s);
}

/* ---- keys ---- */

static uint64_t hash(struct piece key, bool alike)
{
	uint64_t h = BYTES_HASH;

	for (size_t i = 0; i < key.len; i++) {
		bool number = alike && isdigit((unsigned char)key.p[i]);

		if (number && i && isdigit((unsigned char)key.p[i - 1]))
			continue;
		h = bytes_hash(h, number ? "0" : (const char *)&key.p[i], 1);
	}
	return h;
}

static bool is(const struct bytes *bytes, struct piece piece)
{
	return bytes->len == piece.len && (!piece.len || !memcmp(bytes->p, piece.p, piece.len));
}

/* Two keys with one hash occupy neighbouring hashes. */
static struct entry *entry_find(const struct store *s, struct piece key)
{
	for (uint64_t h = hash(key, false);; h++) {
		uint32_t *at = map_get(&s->keys, h);

		if (!at)
			return NULL;
		if (is(&s->entries[*at].key, key))
			return &s->entries[*at];
	}
}

static struct entry *find_or_add(struct store *s, struct piece key)
{
	struct entry *e = entry_find(s, key);
	uint64_t h = hash(key, false);
	bool fresh = false;
	uint32_t *at = NULL;

	if (e)
		return e;
	s->entries = need_grow(s->entries, &s->room, s->count, sizeof(*s->entries));
	e = &s->entries[s->count];
	*e = (struct entry){ .like = hash(key, true) };
	bytes_add(&e->key, key.p, key.len);
	while (!fresh)
		at = map_put(&s->keys, h++, &fresh);
	*at = (uint32_t)s->count++;
	return e;
}

static uint64_t of_rank(uint64_t like, size_t who)
{
	return like * WORLD_RUN + who;
}

static void count_use(struct store *s, size_t who, uint64_t like)
{
	++*map_put(&s->often, of_rank(like, who), NULL);
}

static uint32_t often(const struct store *s, size_t who, uint64_t like)
{
	uint32_t *n = map_get(&s->often, of_rank(like, who));

	return n ? *n : 0;
}

/* ---- values ---- */

static void entry_set_value(struct entry *e, struct piece value)
{
	e->value.len = 0;
	bytes_add(&e->value, value.p, value.len);
	e->there = true;
	e->made = e->counter = false;
}

void store_set(struct store *s, size_t who, struct piece key, struct piece value)
{
	struct entry *e = find_or_add(s, key);

	count_use(s, who, e->like);
	entry_set_value(e, value);
	e->who = who;
}

void store_append(struct store *s, size_t who, struct piece key, struct piece value)
{
	struct entry *e = find_or_add(s, key);

	count_use(s, who, e->like);
	if (e->made)
		e->value.len = 0;
	bytes_add(&e->value, value.p, value.len);
	e->there = true;
	e->made = e->counter = false;
	e->who = who;
}

/* A rank may add any number, so the sum wraps around. */
static int64_t sum_of(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* The sum of the ranks that run. Once each of them has added, every other rank is assumed to have
 * added as much as `who`. */
static int64_t total(const struct store *s, const struct entry *e, size_t who)
{
	uint64_t others;
	int64_t sum = 0;

	for (size_t i = 0; i < s->world.count; i++)
		sum = sum_of(sum, e->added[i]);
	if (e->adders != (1u << s->world.count) - 1)
		return sum;
	others = (uint64_t)s->world.size - s->world.count;
	return sum_of(sum, (int64_t)(others * (uint64_t)e->added[who]));
}

static void put_number(struct entry *e, int64_t n)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%" PRId64, n);

	entry_set_value(e, (struct piece){ text, (size_t)len });
}

static int64_t number_in(const struct entry *e)
{
	char text[24] = "";

	if (e->value.len)
		memcpy(text, e->value.p, e->value.len < 23 ? e->value.len : 23);
	return strtoll(text, NULL, 10);
}

int64_t store_add(struct store *s, size_t who, struct piece key, int64_t n)
{
	struct entry *e = find_or_add(s, key);
	int64_t all;

	count_use(s, who, e->like);
	if (e->there && !e->made && !e->counter) { /* what was set as text */
		put_number(e, sum_of(number_in(e), n));
		return number_in(e);
	}
	e->added[who] = sum_of(e->added[who], n);
	if (n)
		e->adders |= 1u << who;
	all = total(s, e, who);
	put_number(e, all);
	e->counter = true;
	e->who = who;
	return all;
}

struct piece store_get(struct store *s, size_t who, struct piece key)
{
	struct entry *e = entry_find(s, key);
	struct piece value;

	if (!e || !e->there)
		return (struct piece){ "", 0 };
	if (e->counter) {
		put_number(e, total(s, e, who));
		e->counter = true;
	}
	value = (struct piece){ (const char *)e->value.p, e->value.len };
	if ((e->made || e->who != who) && s->ports[who] &&
	    gloo_address(value, s->ports[who], &s->address))
		value = (struct piece){ (const char *)s->address.p, s->address.len };
	return value;
}

struct piece store_compare_set(struct store *s, size_t who, struct piece key, struct piece expected,
			       struct piece desired)
{
	struct entry *e = entry_find(s, key);
	bool there = e && e->there && !e->made;

	if (!there && expected.len)
		return expected;
	if (!there || is(&e->value, expected))
		store_set(s, who, key, desired);
	return store_get(s, who, key);
}

bool store_delete(struct store *s, struct piece key)
{
	struct entry *e = entry_find(s, key);
	bool there = e && e->there && !e->made;

	if (e) {
		e->there = e->made = e->counter = false;
		e->adders = 0;
		memset(e->added, 0, sizeof(e->added));
	}
	return there;
}

bool store_has(const struct store *s, struct piece key)
{
	const struct entry *e = entry_find(s, key);

	return e && ((e->there && !e->made) || e->queued);
}

uint64_t store_count(const struct store *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		n += s->entries[i].there && !s->entries[i].made;
	return n;
}

struct piece store_key(const struct store *s, uint64_t i)
{
	for (size_t k = 0; k < s->count; k++) {
		const struct entry *e = &s->entries[k];

		if (e->there && !e->made && !i--)
			return (struct piece){ (const char *)e->key.p, e->key.len };
	}
	return (struct piece){ "", 0 };
}

/* ---- queues ---- */

void store_push(struct store *s, size_t who, struct piece key, struct piece value)
{
	struct entry *e = find_or_add(s, key);

	count_use(s, who, e->like);
	e->queue = need_grow(e->queue, &e->queue_room, e->queued, sizeof(*e->queue));
	e->queue[e->queued] = (struct bytes){ 0 };
	bytes_add(&e->queue[e->queued++], value.p, value.len);
}

bool store_pop(struct store *s, struct piece key, struct piece *value)
{
	struct entry *e = entry_find(s, key);

	if (!e || !e->queued)
		return false;
	bytes_free(&s->popped);
	s->popped = e->queue[0];
	memmove(e->queue, e->queue + 1, --e->queued * sizeof(*e->queue));
	*value = (struct piece){ (const char *)s->popped.p, s->popped.len };
	return true;
}

uint64_t store_length(const struct store *s, struct piece key)
{
	const struct entry *e = entry_find(s, key);

	return e ? e->queued : 0;
}

/* ---- keys of ranks that do not run ---- */

void store_wait(struct store *s, size_t who, struct piece key)
{
	count_use(s, who, hash(key, true));
}

bool store_has_been(const struct store *s, size_t who, size_t waits, struct piece key)
{
	uint64_t like = hash(key, true);

	return often(s, who, like) >= often(s, waits, like);
}

/* The latest key that differs only in numbers, this rank's before that of another. */
static const struct entry *entry_like(const struct store *s, size_t who, struct piece key)
{
	const struct entry *found = NULL;
	uint64_t like = hash(key, true);

	for (size_t i = 0; i < s->count; i++) {
		const struct entry *e = &s->entries[i];

		if (e->like == like && e->there && !e->made && !e->counter &&
		    (!found || e->who == who || found->who != who))
			found = e;
	}
	return found;
}

/* Whether the value is an address of a gloo peer. This process stands in for all peers, so it need
 * not wait for them. */
static bool is_address(struct store *s, const struct entry *e)
{
	return gloo_address((struct piece){ (const char *)e->value.p, e->value.len }, 0,
			    &s->address);
}

bool store_ready(struct store *s, size_t who, struct piece key, bool may_be_set)
{
	static const char zeros[MADE_BYTES + 1] =
		"0000000000000000000000000000000000000000000000000000000000000000"
		"0000000000000000000000000000000000000000000000000000000000000000";
	struct entry *e = entry_find(s, key);
	const struct entry *other;
	struct bytes copy = { 0 };

	if (e && (e->there || e->queued))
		return true;
	other = entry_like(s, who, key);
	if (may_be_set && !(other && is_address(s, other)))
		return false;
	if (other)
		bytes_add(&copy, other->value.p, other->value.len);
	else
		bytes_add(&copy, zeros, MADE_BYTES);
	e = find_or_add(s, key);
	entry_set_value(e, (struct piece){ (const char *)copy.p, copy.len });
	e->made = true;
	bytes_free(&copy);
	return true;
}

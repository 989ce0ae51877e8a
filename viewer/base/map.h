/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from 64-bit keys to 32-bit values. Open addressing, grows; 0 is a key like any
 * other. */
#pragma once

#include "usual.h"

struct map {
	struct map_slot {
		uint64_t key;
		uint32_t value;
		bool used;
	} * slots;
	size_t count, room; /* room is a power of two or 0 */
};

/* The slot in which a search for the key begins. The map must have room. */
static inline struct map_slot *map_home(const struct map *m, uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u;
	return &m->slots[(key ^ key >> 32) & (m->room - 1)];
}

uint32_t *map_put_further(struct map *m, uint64_t key, bool *fresh);
uint32_t *map_get_further(const struct map *m, uint64_t key);

/* The place of a key's value, valid until the next map_put. A new key has the value 0. Sets *fresh
 * (unless NULL) to whether the key is new. */
static inline uint32_t *map_put(struct map *m, uint64_t key, bool *fresh)
{
	struct map_slot *s = m->room ? map_home(m, key) : NULL;

	if (!s || !s->used || s->key != key)
		return map_put_further(m, key, fresh);
	if (fresh)
		*fresh = false;
	return &s->value;
}

/* NULL: the key is not there. */
static inline uint32_t *map_get(const struct map *m, uint64_t key)
{
	struct map_slot *s = m->room ? map_home(m, key) : NULL;

	if (!s || !s->used)
		return NULL;
	return s->key == key ? &s->value : map_get_further(m, key);
}

/* Adds a key; returns whether it is new. */
bool map_add(struct map *m, uint64_t key);
bool map_remove(struct map *m, uint64_t key);
void map_free(struct map *m);

/* The number of a key. A new key gets the number `next`. */
uint32_t map_number(struct map *m, uint64_t key, size_t next);

/* The value of a key. A new key gets the value of `find`. */
#define map_known(m, key, find)                                  \
	__extension__({                                          \
		uint64_t key_ = (key);                           \
		const uint32_t *at_ = map_get((m), key_);        \
		uint32_t known_ = at_ ? *at_ : (uint32_t)(find); \
                                                                 \
		if (!at_)                                        \
			*map_put((m), key_, NULL) = known_;      \
		known_;                                          \
	})

/* Items with keys, in order of insertion. The macros below take any struct with these members. */
#define MAP_OF(type)                \
	struct {                    \
		struct map ids;     \
		type *items;        \
		size_t count, room; \
	}

/* The item of a key; a new one is zeroed. */
#define map_item(m, key)                                                                          \
	__extension__({                                                                           \
		__typeof__(m) m_ = (m);                                                           \
		uint32_t at_ = map_number(&m_->ids, (key), m_->count);                            \
                                                                                                  \
		if (at_ == m_->count)                                                             \
			memset(need_item(m_->items, m_->count, m_->room), 0, sizeof(*m_->items)); \
		&m_->items[at_];                                                                  \
	})
/* The item of a key, or NULL. */
#define map_find(m, key)                                         \
	__extension__({                                          \
		const uint32_t *at_ = map_get(&(m)->ids, (key)); \
                                                                 \
		at_ ? &(m)->items[*at_] : NULL;                  \
	})
#define map_items_free(m) (map_free(&(m)->ids), free((m)->items))

/* Hashes of longer data, as keys. They continue from another hash (or from any seed). */
uint64_t map_hash(uint64_t from, const void *bytes, size_t len);
uint64_t map_hash_text(uint64_t from, const char *text);

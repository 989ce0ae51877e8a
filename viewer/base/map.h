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

/* The value's place, made (0, and *fresh set) if it was not there. Good until the next map_put. */
uint32_t *map_put(struct map *m, uint64_t key, bool *fresh);
uint32_t *map_get(const struct map *m, uint64_t key); /* NULL if not there */
bool map_remove(struct map *m, uint64_t key);
void map_free(struct map *m);

/* The number that a key got when it first came: then `next` is returned. */
uint32_t map_number(struct map *m, uint64_t key, size_t next);

/* The value of a key: the first time what `find` gives, which is kept. */
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

/* The item of a key in v, which grows; a new one is zeroed. */
#define map_item(m, key, v, count, room)                                    \
	__extension__({                                                     \
		uint32_t at_ = map_number((m), (key), (count));             \
                                                                            \
		if (at_ == (count))                                         \
			memset(need_item(v, count, room), 0, sizeof(*(v))); \
		&(v)[at_];                                                  \
	})

/* Keys from what is longer, going on from another one (or any seed). */
uint64_t map_hash(uint64_t from, const void *bytes, size_t len);
uint64_t map_hash_text(uint64_t from, const char *text);

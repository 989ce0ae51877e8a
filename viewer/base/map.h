/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from 64-bit keys to 32-bit values. Open addressing, grows; 0 is a key like any
 * other. */
#ifndef VIEWER_MAP_H
#define VIEWER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	struct map_slot {
		uint64_t key;
		uint32_t value;
		bool used;
	} * slots;
	size_t count, room; /* room is a power of two or 0 */
};

/* The value's place, made (and *fresh set) if it was not there. Good until the next map_put. */
uint32_t *map_put(struct map *m, uint64_t key, bool *fresh);
uint32_t *map_get(const struct map *m, uint64_t key); /* NULL if not there */
bool map_remove(struct map *m, uint64_t key);
void map_free(struct map *m);

/* The number that a key got when it first came: then `next` is returned. */
uint32_t map_number(struct map *m, uint64_t key, size_t next);

/* Keys from what is longer, going on from another one (or any seed). */
uint64_t map_hash(uint64_t from, const void *bytes, size_t len);
uint64_t map_hash_text(uint64_t from, const char *text);

#endif

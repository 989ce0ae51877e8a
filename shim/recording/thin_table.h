/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of numbers that grows, and from which entries can be removed; one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct thin_slot {
	uint64_t key, value; /* key 0: empty */
};

struct thin_table {
	struct thin_slot *slots;
	uint64_t room, used; /* room is a power of two, or 0 */
};

uint64_t *table_put(struct thin_table *t, uint64_t key); /* new ones are 0; NULL: no memory */
bool table_set(struct thin_table *t, uint64_t key, uint64_t value); /* false: no memory */
uint64_t *table_get(const struct thin_table *t, uint64_t key);
void table_remove(struct thin_table *t, uint64_t *value); /* what put or get returned */
void table_clear(struct thin_table *t);
void table_free(struct thin_table *t);

/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing, at most half full; a removal closes the hole. The drain's thread. */
#include "thin_table.h"

#include "../base/intern.h"

#include <string.h>

#define LEAST 1024u

static uint64_t place(const struct thin_table *t, uint64_t key)
{
	return intern_mix(key) & (t->room - 1);
}

static struct thin_slot *find_slot(const struct thin_table *t, uint64_t key)
{
	uint64_t i = place(t, key);

	while (t->slots[i].key && t->slots[i].key != key)
		i = (i + 1) & (t->room - 1);
	return &t->slots[i];
}

static bool grow(struct thin_table *t)
{
	struct thin_table bigger = { .room = t->room ? t->room * 2 : LEAST, .used = t->used };

	bigger.slots = os_map(bigger.room * sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (uint64_t i = 0; i < t->room; i++)
		if (t->slots[i].key)
			*find_slot(&bigger, t->slots[i].key) = t->slots[i];
	table_free(t);
	*t = bigger;
	return true;
}

uint64_t *table_put(struct thin_table *t, uint64_t key)
{
	struct thin_slot *s;

	if (t->used * 2 >= t->room && !grow(t))
		return NULL;
	key = key ? key : 1;
	s = find_slot(t, key);
	if (!s->key) {
		s->key = key;
		s->value = 0;
		t->used++;
	}
	return &s->value;
}

bool table_set(struct thin_table *t, uint64_t key, uint64_t value)
{
	uint64_t *at = table_put(t, key);

	if (at)
		*at = value;
	return at;
}

uint64_t *table_get(const struct thin_table *t, uint64_t key)
{
	struct thin_slot *s;

	if (!t->room)
		return NULL;
	s = find_slot(t, key ? key : 1);
	return s->key ? &s->value : NULL;
}

void table_remove(struct thin_table *t, uint64_t *value)
{
	uint64_t hole =
		(uint64_t)((struct thin_slot *)((char *)value - offsetof(struct thin_slot, value)) -
			   t->slots);
	uint64_t mask = t->room - 1;

	for (uint64_t i = (hole + 1) & mask; t->slots[i].key; i = (i + 1) & mask) {
		uint64_t at = place(t, t->slots[i].key);

		if (((i - at) & mask) >= ((i - hole) & mask)) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole].key = 0;
	t->used--;
}

void table_clear(struct thin_table *t)
{
	if (t->used)
		memset(t->slots, 0, t->room * sizeof(*t->slots));
	t->used = 0;
}

void table_free(struct thin_table *t)
{
	os_unmap(t->slots, t->room * sizeof(*t->slots));
	*t = (struct thin_table){ 0 };
}

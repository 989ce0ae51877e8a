/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include "bytes.h"

static size_t home(const struct map *m, uint64_t key)
{
	return (size_t)(map_home(m, key) - m->slots);
}

static struct map_slot *probe(const struct map *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->room - 1);
	return &m->slots[i];
}

static void grow(struct map *m)
{
	struct map old = *m;

	m->room = old.room ? old.room * 2 : 64;
	m->slots = need_new(m->room * sizeof(*m->slots));
	for (size_t i = 0; i < old.room; i++)
		if (old.slots[i].used)
			*probe(m, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

uint32_t *map_put_further(struct map *m, uint64_t key, bool *fresh)
{
	struct map_slot *s;

	if (m->count * 4 >= m->room * 3)
		grow(m);
	s = probe(m, key);
	if (fresh)
		*fresh = !s->used;
	if (!s->used) {
		*s = (struct map_slot){ .key = key, .used = true };
		m->count++;
	}
	return &s->value;
}

bool map_add(struct map *m, uint64_t key)
{
	bool fresh;

	map_put(m, key, &fresh);
	return fresh;
}

uint32_t *map_get_further(const struct map *m, uint64_t key)
{
	struct map_slot *s = probe(m, key);

	return s->used ? &s->value : NULL;
}

/* Moves the following entries back, so that no marker of deleted slots is needed. */
bool map_remove(struct map *m, uint64_t key)
{
	struct map_slot *s = m->room ? probe(m, key) : NULL;
	size_t hole, i;

	if (!s || !s->used)
		return false;
	hole = i = s - m->slots;
	for (;;) {
		i = (i + 1) & (m->room - 1);
		if (!m->slots[i].used)
			break;
		if (((i - home(m, m->slots[i].key)) & (m->room - 1)) < ((i - hole) & (m->room - 1)))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole].used = false;
	m->count--;
	return true;
}

void map_free(struct map *m)
{
	free(m->slots);
	*m = (struct map){ 0 };
}

uint32_t map_number(struct map *m, uint64_t key, size_t next)
{
	bool fresh;
	uint32_t *at = map_put(m, key, &fresh);

	return fresh ? (*at = (uint32_t)next) : *at;
}

uint64_t map_hash(uint64_t from, const void *bytes, size_t len)
{
	uint64_t h = bytes_hash(from ^ BYTES_HASH, bytes, len);

	return h ^ h >> 29;
}

uint64_t map_hash_text(uint64_t from, const char *text)
{
	return map_hash(from, text, strlen(text));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the interning table that are not on the fast path. Any thread; never blocks.
 */
#include "intern.h"

#include <string.h>

struct intern_entry *intern_map_level(struct intern_table *t, unsigned level)
{
	size_t bytes = intern_entries(level) * sizeof(struct intern_entry);
	struct intern_entry *mine = os_map(bytes), *other = NULL;

	if (!mine)
		return NULL;
	if (__atomic_compare_exchange_n(&t->level[level], &other, mine, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return mine;
	os_unmap(mine, bytes);
	return other;
}

/* Like intern_find in one window, but skips entries that another thread is publishing. */
static uint32_t find_or_claim(struct intern_entry *window, const struct intern_key *key,
			      struct intern_entry **claimed)
{
	for (struct intern_entry *e = window; e < window + INTERN_WINDOW; e++) {
		uint64_t seen = 0;
		uint32_t id;

		if (__atomic_compare_exchange_n(&e->tag, &seen, key->hash | 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			*claimed = e;
			return 0;
		}
		id = __atomic_load_n(&e->id, __ATOMIC_ACQUIRE);
		if (seen != (key->hash | 1) || !id)
			continue;
		if (id == INTERN_DEAD && intern_revive(e)) {
			*claimed = e;
			return 0;
		}
		if (id != INTERN_DEAD && key->same(e, key->a, key->b))
			return id;
	}
	return 0;
}

uint32_t intern_find_past(struct intern_table *t, const struct intern_key *key,
			  struct intern_entry **claimed)
{
	uint32_t id = 0;

	*claimed = NULL;
	for (unsigned level = 0; level < INTERN_LEVELS && !id && !*claimed; level++) {
		struct intern_entry *entries =
			level && level == t->levels ? NULL : intern_level(t, level);

		if (!entries)
			break;
		id = find_or_claim(&entries[intern_place(key->hash, level)], key, claimed);
	}
	return id;
}

void intern_forget(struct intern_table *t)
{
	for (unsigned level = 0; level < INTERN_LEVELS; level++)
		os_unmap(t->level[level], intern_entries(level) * sizeof(struct intern_entry));
	memset(t->level, 0, sizeof(t->level));
	t->last_id = 0;
}

uint64_t intern_hash_bytes(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t h = 0x9e3779b97f4a7c15ULL ^ len, word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		h = intern_mix(h ^ word);
	}
	word = 0;
	memcpy(&word, p, len);
	return intern_mix(h ^ word);
}

void intern_each(struct intern_table *t, void (*fn)(void *ctx, const struct intern_entry *e),
		 void *ctx)
{
	for (unsigned level = 0; level < INTERN_LEVELS; level++) {
		struct intern_entry *e = __atomic_load_n(&t->level[level], __ATOMIC_ACQUIRE);

		for (size_t i = 0; e && i < intern_entries(level); i++) {
			uint32_t id = __atomic_load_n(&e[i].id, __ATOMIC_ACQUIRE);

			if (id != 0 && id != INTERN_DEAD)
				fn(ctx, &e[i]);
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grow-only hash table from keys to small ids that any number of threads use without a lock.
 * Levels of growing size are mapped when the one before has no room near the key's place. A thread
 * claims a bucket by its hash, writes the key, emits the definition of the id, and publishes the id
 * last; another that meets a claimed bucket of its own hash waits a moment, then makes a second id
 * for the same key: harmless, both are defined.
 *
 * Any thread, hook path included; never blocks, frees or moves anything.
 */
#pragma once

#include "os.h"

#define INTERN_LEVELS 3
#define INTERN_WINDOW 8u
#define INTERN_DEAD   0xffffffffu
#define INTERN_SPINS  200
/* Returned in place of a bucket: another thread is about to publish the key. */
#define INTERN_BUSY ((struct intern_entry *)1)

struct intern_entry {
	uint64_t tag; /* hash, never 0 once claimed */
	uint64_t a, b;
	uint32_t id; /* 0 = not yet published */
	uint32_t pad;
};

struct intern_table {
	struct intern_entry *level[INTERN_LEVELS];
	uint32_t last_id;
	uint32_t levels; /* at most; 0 = all. Three take 22 MiB, two 6 MiB */
};

static inline size_t intern_entries(unsigned level)
{
	return (size_t)1 << (level < 2 ? 16 + level : 19);
}

/* The first bucket of the window that a hash has in a level. */
static inline size_t intern_place(uint64_t hash, unsigned level)
{
	return (hash >> 8) & (intern_entries(level) - 1) & ~(size_t)(INTERN_WINDOW - 1);
}

static inline uint64_t intern_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	return x;
}

uint64_t intern_hash_bytes(const void *bytes, size_t len);

/* The entries of a level, mapped now if they are not yet; NULL if there is no memory. */
struct intern_entry *intern_map_level(struct intern_table *t, unsigned level);

static inline struct intern_entry *intern_level(struct intern_table *t, unsigned level)
{
	struct intern_entry *e = __atomic_load_n(&t->level[level], __ATOMIC_ACQUIRE);

	return OS_LIKELY(e != NULL) ? e : intern_map_level(t, level);
}

static inline uint32_t intern_wait(const struct intern_entry *e)
{
	uint32_t id = __atomic_load_n(&e->id, __ATOMIC_ACQUIRE);

	for (int i = 0; id == 0 && i < INTERN_SPINS; i++) {
		os_pause();
		id = __atomic_load_n(&e->id, __ATOMIC_ACQUIRE);
	}
	return id;
}

/* Claims a bucket again whose definition found no room in the rings, for another try. True for the
 * one thread that gets it. */
static inline bool intern_revive(struct intern_entry *e)
{
	uint32_t dead = INTERN_DEAD;

	return __atomic_compare_exchange_n(&e->id, &dead, 0, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/*
 * The id of the key (a, b), or 0. With 0, *claimed is a bucket that the caller must fill in by
 * intern_publish, INTERN_BUSY, or NULL if the table is full. `same` says whether a published (a, b)
 * is the key.
 */
static inline __attribute__((always_inline)) uint32_t
intern_find(struct intern_table *t, uint64_t hash, uint64_t a, uint64_t b,
	    bool (*same)(const struct intern_entry *e, uint64_t a, uint64_t b),
	    struct intern_entry **claimed)
{
	uint64_t tag = hash | 1;

	*claimed = INTERN_BUSY;
	for (unsigned level = 0; level < INTERN_LEVELS; level++) {
		struct intern_entry *entries =
			level && level == t->levels ? NULL : intern_level(t, level);
		size_t at = intern_place(hash, level);

		if (!entries)
			break;
		for (unsigned i = 0; i < INTERN_WINDOW; i++) {
			struct intern_entry *e = &entries[at + i];
			uint64_t seen = __atomic_load_n(&e->tag, __ATOMIC_RELAXED);
			uint32_t id;

			if (seen == 0 &&
			    __atomic_compare_exchange_n(&e->tag, &seen, tag, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
				*claimed = e;
				return 0;
			}
			if (seen != tag)
				continue;
			id = intern_wait(e);
			if (id == 0)
				return 0;
			if (id == INTERN_DEAD) {
				if (!intern_revive(e))
					continue;
				*claimed = e;
				return 0;
			}
			if (same(e, a, b))
				return id;
		}
	}
	*claimed = NULL;
	return 0;
}

struct intern_key {
	uint64_t hash, a, b;
	bool (*same)(const struct intern_entry *e, uint64_t a, uint64_t b);
};

/* Like intern_find, but never INTERN_BUSY: a key that another thread is about to publish gets a
 * second bucket and id. */
uint32_t intern_find_past(struct intern_table *t, const struct intern_key *key,
			  struct intern_entry **claimed);

static inline uint32_t intern_new_id(struct intern_table *t)
{
	return __atomic_add_fetch(&t->last_id, 1, __ATOMIC_RELAXED);
}

/* id = INTERN_DEAD: the key could not be defined. `e` may be INTERN_BUSY or NULL. */
static inline void intern_publish(struct intern_entry *e, uint64_t a, uint64_t b, uint32_t id)
{
	if (!e || e == INTERN_BUSY)
		return;
	e->a = a;
	e->b = b;
	__atomic_store_n(&e->id, id, __ATOMIC_RELEASE);
}

static inline bool intern_same_words(const struct intern_entry *e, uint64_t a, uint64_t b)
{
	return e->a == a && e->b == b;
}

/* Empties the table in a forked child: its contents belong to the parent. */
void intern_forget(struct intern_table *t);

/* Calls fn for each published entry. */
void intern_each(struct intern_table *t, void (*fn)(void *ctx, const struct intern_entry *e),
		 void *ctx);

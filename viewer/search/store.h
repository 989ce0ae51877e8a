/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and values of the rendezvous for a world of which only some ranks run: what those ranks set,
 * and answers in place of the others. No sockets; one thread.
 *
 * A missing key is waited for as long as a running rank may still set it. Then the store makes a
 * value: that of a key that differs only in numbers (this rank's, if it has set one), or else
 * MADE_BYTES zeros, which read as the number 0 and have the length of an NCCL id. A counter is the
 * sum of what the running ranks added. Once each of them has added, the expected additions of the
 * other ranks are included.
 */
#ifndef VIEWER_STORE_H
#define VIEWER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_RUN  8 /* most ranks that run */
#define MADE_BYTES 128

struct piece { /* bytes owned by someone else */
	const char *p;
	size_t len;
};

/* The ranks of a world that run, ascending. */
struct world {
	long size;
	long ranks[WORLD_RUN];
	size_t count; /* 0: all ranks run */
	long node;    /* ranks per node */
};

struct store;
/* ports: where each running rank finds the peers of its gloo groups, or NULL. */
struct store *store_new(const struct world *w, const int *ports);
void store_free(struct store *s);

/* Requests of the running rank with that index. */
void store_set(struct store *s, size_t who, struct piece key, struct piece value);
void store_append(struct store *s, size_t who, struct piece key, struct piece value);
int64_t store_add(struct store *s, size_t who, struct piece key, int64_t n);
/* Returns the new value, valid until the next call. */
struct piece store_compare_set(struct store *s, size_t who, struct piece key, struct piece expected,
			       struct piece desired);
bool store_delete(struct store *s, struct piece key);
/* Returns no bytes for a key that is missing. */
struct piece store_get(struct store *s, size_t who, struct piece key);
bool store_has(const struct store *s, struct piece key); /* set by a rank that runs */
uint64_t store_count(const struct store *s);
struct piece store_key(const struct store *s, uint64_t i); /* keys in order */
void store_push(struct store *s, size_t who, struct piece key, struct piece value);
bool store_pop(struct store *s, struct piece key, struct piece *value); /* valid until next */
uint64_t store_length(const struct store *s, struct piece key);

/* A rank begins to wait for a key. store_ready is called again until the key is there or made;
 * `may_be_set` (another running rank may still set it) postpones the making. */
void store_wait(struct store *s, size_t who, struct piece key);
bool store_ready(struct store *s, size_t who, struct piece key, bool may_be_set);
/* Whether that rank has read or set such a key as often as the waiting rank. Then it has passed the
 * same place, because all ranks run the same program. */
bool store_has_been(const struct store *s, size_t who, size_t waits, struct piece key);

#endif

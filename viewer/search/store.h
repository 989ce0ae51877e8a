/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and values of the rendezvous of a world of which only some ranks run: what those set, and
 * what is answered in the place of the others. No sockets; one thread.
 *
 * A key that a rank waits for and that is not there is waited for as long as a rank that runs may
 * still set it. Then it is made: with the value of a key that differs from it in numbers only (of
 * this rank, if it has set one), or else with MADE_BYTES zeros, which read as the number 0 and
 * have the length of an id of NCCL. A number that ranks add to is what those that run have added;
 * once each has, what each of the others would have added comes on top.
 */
#ifndef VIEWER_STORE_H
#define VIEWER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_RUN  8 /* ranks that run, at most */
#define MADE_BYTES 128

struct piece { /* bytes that belong to somebody else */
	const char *p;
	size_t len;
};

/* The ranks of a world that run, in ascending order. */
struct world {
	long size;
	long ranks[WORLD_RUN];
	size_t count; /* 0: no such world, all ranks run */
	long node;    /* ranks of a node */
};

struct store;
/* ports: where each rank that runs finds the peers of its groups of gloo, or NULL. */
struct store *store_new(const struct world *w, const int *ports);
void store_free(struct store *s);

/* What the rank with that index among those that run asks for. */
void store_set(struct store *s, size_t who, struct piece key, struct piece value);
void store_append(struct store *s, size_t who, struct piece key, struct piece value);
int64_t store_add(struct store *s, size_t who, struct piece key, int64_t n);
/* The value afterwards; good until the next call. */
struct piece store_compare_set(struct store *s, size_t who, struct piece key, struct piece expected,
			       struct piece desired);
bool store_delete(struct store *s, struct piece key);
/* Of a key that is not there: no bytes. */
struct piece store_get(struct store *s, size_t who, struct piece key);
bool store_has(const struct store *s, struct piece key); /* a rank that runs has set it */
uint64_t store_count(const struct store *s);
struct piece store_key(const struct store *s, uint64_t i); /* of those, in order */
void store_push(struct store *s, size_t who, struct piece key, struct piece value);
bool store_pop(struct store *s, struct piece key, struct piece *value); /* good until the next */
uint64_t store_length(const struct store *s, struct piece key);

/* A rank begins to wait for a key; asked again until it is there, or made, which `may_be_set`
 * says whether to put off: whether any other rank that runs may still set it. */
void store_wait(struct store *s, size_t who, struct piece key);
bool store_ready(struct store *s, size_t who, struct piece key, bool may_be_set);
/* Whether that rank has asked for or set such a key as often as the one that waits: then it has
 * been where that one is, as all ranks run the same program. */
bool store_has_been(const struct store *s, size_t who, size_t waits, struct piece key);

#endif

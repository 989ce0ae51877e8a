/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that repeat (find_checkpoint.c), and the calls of one (checkpoint_calls.c).
 */
#pragma once

#include "advise.h"

struct checkpoint_inside {
	uint32_t life, stack;
	uint64_t outside;
	bool begins; /* a call */
};

/* A module's class at one place, and its saved blocks in order of birth. */
struct checkpoint_site {
	uint64_t key, bytes; /* bytes at the peak */
	const char *function;
	uint64_t next; /* the method that it leads to, if that is the same each time */
	bool many;     /* it is not */
	bool calls;    /* it leads to one at all */
	size_t depth;  /* methods around it */
	struct checkpoint_inside *items;
	size_t count, room;
};

struct checkpoint_search {
	struct advise *advise;
	struct map ids;	   /* key -> index */
	struct map firsts; /* a site and what is outside of it -> the stack of its first block, */
	struct map opens;  /* the same of the first that is made there, saved or not */
	struct checkpoint_site *items;
	size_t count, room;
	uint64_t *deaths; /* of saved blocks, in order */
	size_t death_count, death_room;
	uint64_t *done;		    /* of lives: when the last node has used it, 0 = not known */
	struct map inputs;	    /* of calls: lives that stay */
	const struct span *forward; /* that the peak lies in, or NULL */
};

/* A call: its saved blocks are items[first] to items[last]. */
struct checkpoint_call {
	const struct checkpoint_site *site;
	size_t first, last;
	uint32_t begin;	      /* the first block that it made, saved or not */
	struct advised input; /* its size is 0 if none is known */
	uint64_t end, let_go; /* when it was through; when its first block went */
	uint64_t first_gone;  /* the same if backward let it go: then it is computed again */
};

/* A life, whatever its classes. */
struct advised checkpoint_life(const struct checkpoint_search *s, uint32_t life);
/* The call whose first saved block is that item; next: the first one of the call behind it. */
struct checkpoint_call checkpoint_call_at(struct checkpoint_search *s,
					  const struct checkpoint_site *site, size_t first,
					  size_t *next);

/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated modules (find_checkpoint.c) and the calls of each (checkpoint_calls.c). */
#pragma once

#include "advise.h"

struct checkpoint_inside {
	uint32_t life, stack;
	uint64_t outside;
	bool begins; /* first block of a call */
};

/* One class of modules at one call site, with its saved blocks in order of birth. */
struct checkpoint_site {
	uint64_t key, bytes; /* bytes: of its saved blocks at the peak */
	const char *function;
	uint64_t next; /* key of the method that it calls, if that is the same each time */
	bool many;     /* it calls several methods */
	bool calls;    /* it calls a method of another module */
	size_t depth;  /* number of methods around it */
	struct checkpoint_inside *items;
	size_t count, room;
};

/* The events of the work that uses what may be the input of a call. */
struct checkpoint_reads {
	uint64_t *seqs;
	size_t count, room;
};

struct checkpoint_search {
	struct advise *advise;
	struct map ids;	   /* key -> index */
	struct map firsts; /* site ^ path to it -> stack of its first saved block */
	struct map opens;  /* the same of its first block, saved or not */
	struct checkpoint_site *items;
	size_t count, room;
	uint64_t *deaths; /* ends of saved blocks, sorted */
	size_t death_count, death_room;
	uint64_t *done; /* by life: event after its last use by a node; 0 = not known */
	MAP_OF(struct checkpoint_reads) reads; /* by life */
	struct map inputs;		       /* inputs of calls, which stay alive */
	const struct span *forward;	       /* the forward pass with the peak, or NULL */
};

/* A call of a site. Its saved blocks are items[first] to items[last]. */
struct checkpoint_call {
	const struct checkpoint_site *site;
	size_t first, last;
	uint32_t begin;	      /* life: its first block, saved or not */
	struct advised input; /* size 0 = not known */
	uint64_t end, let_go; /* end of the call; release of its first saved block */
	uint64_t first_gone;  /* let_go, if backward released it: the call is computed again */
};

/* The life, whatever its classes. */
struct advised checkpoint_life(const struct checkpoint_search *s, uint32_t life);
/* The call whose first saved block is items[first]. *next: first item of the call after it. */
struct checkpoint_call checkpoint_call_at(struct checkpoint_search *s,
					  const struct checkpoint_site *site, size_t first,
					  size_t *next);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's native frames, walked anew only where they differ from an earlier walk.
 */
#ifndef GMT_FRAMES_H
#define GMT_FRAMES_H

#include "cfi.h"

#include <stdbool.h>
#include <stdint.h>

#define FRAMES_MOST	512
#define FRAMES_MEMORIES 4
#define FRAMES_SETS	2048u
#define FRAMES_WAYS	4u

/* What a step outward depends on, and where it was read when the walk came here. */
struct frame {
	uintptr_t ip; /* return address; the word below sp held it */
	uintptr_t sp, bp;
	const uintptr_t *bp_at; /* held bp; the member bp if nothing did; NULL = ask the rule */
};

/* A walk: frames and the nodes of the stack tree that they became, outermost first. */
struct walk {
	int count, kept; /* kept: so many outer frames are the earlier walk's, with their nodes */
	bool verifiable;
	uintptr_t began; /* ip of the innermost frame */
	uint32_t nodes[FRAMES_MOST];
	struct frame frames[FRAMES_MOST];
};

struct learned {
	uintptr_t ip;
	struct cfi_rule rule;
};

/* A thread's; zeroed memory is a new one. */
struct frames {
	uint64_t unloads;
	unsigned next_memory;
	struct walk memories[FRAMES_MEMORIES];
	struct frame fresh[FRAMES_MOST]; /* innermost first */
	struct learned rules[FRAMES_SETS][FRAMES_WAYS];
};

/*
 * The callers outside [own_start, own_end), or NULL: some frame is not understood, or there are
 * more than FRAMES_MOST. Nodes from `kept` on are the caller's to fill in.
 */
struct walk *frames_walk(struct frames *f, uintptr_t own_start, uintptr_t own_end);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's native frames, walked anew only where they differ from an earlier walk.
 */
#pragma once

#include "../base/binding.h"
#include "repeat.h"

#include <stdbool.h>
#include <stdint.h>

#define FRAMES_MOST 512

/*
 * A walk: frames and the nodes of the stack tree that they became, outermost first. One that was
 * known from before has its innermost node at once, and its inner part may still lie where it was
 * kept: frames_copy has the whole.
 */
struct walk {
	int count, kept; /* kept: so many outer frames are the earlier walk's, with their nodes */
	bool verifiable;
	uint32_t node;	       /* the innermost one; 0 = its frames are to be looked up */
	struct joined *joined; /* of this native stack, until the next walk; NULL = not known */
	uint32_t nodes[FRAMES_MOST];
	struct frame frames[FRAMES_MOST] OS_LINE;
};

/* The words that the last walk's frames [0, listed) hang on, outermost first. The first word is one
 * that never is as it should be: there a look outward ends. */
struct words {
	int listed;
	uint16_t until[FRAMES_MOST + 1]; /* those of the frames before frame i are before this */
	struct word words[2 * FRAMES_MOST + 1] OS_LINE;
};

/* A thread's; zeroed memory is a new one. */
struct frames {
	uint64_t unloads;
	uint64_t binding;    /* the last walk was taken in it; 0 = in none */
	uintptr_t within;    /* where it is, while it runs: frames further out are as they were */
	uintptr_t outermost; /* a return address whose rule says so; 0 = none yet */
	struct walk walk;    /* the last one */
	struct words words;
	struct frame fresh[FRAMES_MOST]; /* innermost first */
	struct steps steps;
	struct repeats repeats;
	const struct repeat *inner; /* the last walk's inner part lies there; NULL = it is whole */
	int taken;		    /* frames of the last walk, if it is to be kept as a repeat */
	unsigned owns;
	unsigned walked;	      /* walks that were not known from before; for tests */
	struct frame own[REPEAT_OWN]; /* where it began, and our library's frames */
};

/*
 * from: the frame of one of our functions that runs (__builtin_frame_address), or NULL: the walk
 * begins at its caller.
 *
 * The callers outside [own_start, own_end), or NULL: some frame is not understood, or there are
 * more than FRAMES_MOST. Nodes from `kept` on are the caller's to fill in.
 */
struct walk *frames_walk(struct frames *f, const struct binding *binding, const uintptr_t *from,
			 uintptr_t own_start, uintptr_t own_end);

/* The last walk with all its frames and nodes; for tests. */
void frames_copy(const struct frames *f, struct walk *out);

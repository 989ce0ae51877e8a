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
 * A walk: frames and their nodes in the stack tree, outermost first. A repeated walk has its
 * innermost node at once, and its inner part might still be only where it was kept: frames_copy has
 * the whole.
 */
struct walk {
	int count, kept; /* kept: number of outer frames of the earlier walk, with their nodes */
	bool verifiable;
	uint32_t node;	       /* the innermost one; 0 = to be found by the frames */
	struct joined *joined; /* of this native stack, until the next walk; NULL = not known */
	uint32_t nodes[FRAMES_MOST];
	struct frame frames[FRAMES_MOST] OS_LINE;
};

/* The words on which frames [0, listed) of the last walk depend, outermost first. The first word
 * never matches, so that a search outward ends there. */
struct words {
	int listed;
	uint16_t until[FRAMES_MOST + 1]; /* end of the words of the frames before frame i */
	struct word words[2 * FRAMES_MOST + 1] OS_LINE;
};

/* A thread's walks; zeroed memory is a new one. */
struct frames {
	uint64_t unloads;
	uint64_t binding;    /* in which the last walk was taken; 0 = in none */
	uintptr_t within;    /* its address while it runs: frames further out are unchanged */
	uintptr_t outermost; /* a return address with an outermost frame's rule; 0 = none yet */
	struct walk walk;    /* the last one */
	struct words words;
	struct frame fresh[FRAMES_MOST]; /* innermost first */
	struct steps steps;
	struct repeats repeats;
	const struct repeat *inner; /* has the last walk's inner part; NULL = the walk is whole */
	int taken;		    /* frames of the last walk, if it is to be kept as a repeat */
	unsigned owns;
	unsigned walked;	      /* walks that were not known from before; for tests */
	struct frame own[REPEAT_OWN]; /* where the last walk began, and our library's frames */
};

/*
 * from: the frame of one of our running functions (__builtin_frame_address), or NULL; the walk
 * begins at its caller.
 *
 * Returns the callers outside [own_start, own_end), or NULL if some frame is not understood, or
 * there are more than FRAMES_MOST. The caller fills in the nodes from `kept` on.
 */
struct walk *frames_walk(struct frames *f, const struct binding *binding, const uintptr_t *from,
			 uintptr_t own_start, uintptr_t own_end);

/* The last walk with all its frames and nodes; for tests. */
void frames_copy(const struct frames *f, struct walk *out);

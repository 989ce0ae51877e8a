/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inner parts of earlier walks. A training step does what the last one did, so most walks repeat an
 * earlier one, which can be found by the walk before.
 */
#pragma once

#include "stepping.h"

#define REPEATS	       1024u	      /* of a thread; the oldest is dropped */
#define REPEAT_ROOM    (320u * 1024u) /* bytes */
#define REPEAT_MOST    64u	      /* frames of one; a longer part is walked each time */
#define REPEAT_OWN     12u
#define REPEAT_LINKS   1024u
#define REPEAT_WAYS    4u
#define REPEAT_CONTENT 1024u
#define REPEAT_AHEAD   512u /* bytes of the next one that are prefetched */

/* The last Python stack of a native stack, and the node that joins both. */
struct joined {
	uint32_t python, node;
};

/* A word on the stack, and what it held. */
struct word {
	const uintptr_t *at;
	uintptr_t is;
};

extern const uintptr_t word_never; /* is 0: a list ends with a word that should be 1 there */

/* Adds the words that the step to k from the frame inside it reads. From the same state and with
 * the same words it is the same step. */
static inline struct word *list_frame(const struct frame *k, struct word *w)
{
	if (!bp_at(k)) {
		*w++ = (struct word){ &word_never, 1 };
		return w;
	}
	*w++ = (struct word){ (const uintptr_t *)(k->sp - 8), k->ip };
	if (bp_counts(k) && bp_at(k) != &steps_not_saved)
		*w++ = (struct word){ bp_at(k), k->bp };
	return w;
}

/* After two walks, of which the first is `before`, the one that began at this stack pointer (bits
 * of it) was `next`. */
struct repeat_link {
	uint16_t before, sp, next;
};

/*
 * Its frames, outermost first: the innermost one of the walk's outer part, `count` more, then our
 * own library's, of which the last is where walks begin. The words on which they depend, innermost
 * first, are before them, and the stack nodes of frames[1] to frames[count] after them.
 */
struct repeat {
	struct frame here; /* the last of frames: where walks begin */
	uint32_t base;	   /* stack node of frames[0] */
	uint32_t node;	   /* of frames[count] */
	uint16_t outer, count, all;
	uint16_t listed; /* words; 0 = some frame's place was itself loaded from memory */
	struct joined joined;
	struct frame join;		       /* frames[0] */
	struct repeat_link links[REPEAT_WAYS]; /* the last ones that were right */
	struct word words[];
};

/* A thread's repeats, numbered from 1; zeroed memory is a new one. */
struct repeats {
	uint16_t last, before; /* the last two walks; 0 = not known */
	uint16_t oldest,
		next;  /* places in offsets[]: those from oldest on, before next, are taken */
	uint32_t used; /* bytes of the room before the place for the next one */
	uint32_t offsets[REPEATS]; /* in the room, + 1; 0 = none */
	struct repeat_link links[REPEAT_LINKS][REPEAT_WAYS];
	uint16_t by_content[REPEAT_CONTENT];
	uint64_t room[REPEAT_ROOM / 8] __attribute__((aligned(64)));
};

struct walk;

/* The repeat that a walk from *here takes again; NULL = none is known. The caller verifies the
 * frames further out. */
struct repeat *repeat_find(struct repeats *r, struct steps *steps, const struct frame *here);
/* After repeat_find: prefetches the repeat that probably comes next. */
void repeat_expect(const struct repeats *r);

static inline struct frame *repeat_frames(const struct repeat *p)
{
	return (struct frame *)&p->words[p->listed];
}

static inline uint32_t *repeat_nodes(const struct repeat *p)
{
	return (uint32_t *)&repeat_frames(p)[p->all];
}

size_t repeat_bytes(const struct repeat *p);

/* Keeps the inner part of the walk w, whose nodes are known. own: the state where it began, or if
 * that is in our library our `owns` frames, innermost first. */
void repeat_keep(struct repeats *r, struct steps *steps, const struct walk *w,
		 const struct frame *own, unsigned owns);

void repeat_forget(struct repeats *r);

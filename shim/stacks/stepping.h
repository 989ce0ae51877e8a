/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of a walk: from a frame's state to its caller's, by the rule for its ip and the words on
 * the stack that the rule names. Application threads, any lock held; loads only, from the memory an
 * unwinder would read.
 */
#pragma once

#include "cfi.h"

#include "../base/os.h"

#include <stdbool.h>
#include <stdint.h>

#define STEPS_SETS 2048u
#define STEPS_WAYS 4u

#define NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/*
 * The state on which a step outward depends, and where it was read. A frame's bp counts if a step
 * outward from it reads it before it is taken from the stack again. Otherwise it is any number that
 * the program computes with, and kept frames can have an old one.
 */
struct frame {
	uintptr_t ip; /* return address; the word below sp held it */
	uintptr_t sp, bp;
	uintptr_t bp_from; /* address of the word with bp (bp_at), + BP_COUNTS in kept frames */
};

#define BP_COUNTS ((uintptr_t)1)

/* &steps_not_saved: bp stayed in its register; NULL: only a step by the rule finds bp. */
static inline const uintptr_t *bp_at(const struct frame *k)
{
	return (const uintptr_t *)(k->bp_from & ~BP_COUNTS);
}

static inline bool bp_counts(const struct frame *k)
{
	return k->bp_from & BP_COUNTS;
}

static inline void set_counts(struct frame *k, bool counts)
{
	k->bp_from = (k->bp_from & ~BP_COUNTS) | (counts ? BP_COUNTS : 0);
}

struct learned {
	uintptr_t ip;
	struct cfi_rule rule;
};

/* A thread's rules; zeroed memory is empty. */
struct steps {
	struct learned rules[STEPS_SETS][STEPS_WAYS] OS_LINE;
};

extern const uintptr_t steps_not_saved;

enum outcome { WENT, REACHED_END, LOST };

struct cfi_rule steps_learn(struct learned *set, uintptr_t ip);

static inline NOT_SANITIZED uintptr_t load_word(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

/* Whether bp counts in the frame with rule r; outer: whether it counts in the one outside it. */
static inline bool rule_counts(struct cfi_rule r, bool outer)
{
	return r.how == CFI_BP || r.how == CFI_BP_LOAD || (r.how == CFI_SP && !r.saved && outer);
}

static inline struct cfi_rule rule_for(struct steps *s, uintptr_t ip)
{
	struct learned *set = s->rules[(ip * 0x9e3779b97f4a7c15ULL) >> 53];

	_Static_assert(STEPS_SETS == 1u << (64 - 53), "the shift makes the number of a set");
	for (unsigned i = 0; i < STEPS_WAYS; i++)
		if (OS_LIKELY(set[i].ip == ip))
			return set[i].rule;
	return steps_learn(set, ip);
}

/* Whether `end` can be on the stack: with wrong frame information a register holds anything. */
static inline bool near(uintptr_t sp, uintptr_t end)
{
	return end > sp && end - sp < (64u << 20) && !(end & 7);
}

/* Replaces *s by its caller. */
static inline NOT_SANITIZED enum outcome step(struct steps *steps, struct frame *s)
{
	struct cfi_rule r = rule_for(steps, s->ip);
	uintptr_t end = (r.how == CFI_SP ? s->sp : s->bp) + (uintptr_t)(intptr_t)r.end;
	const uintptr_t *at;

	if (OS_UNLIKELY(r.how == CFI_OUTERMOST))
		return REACHED_END;
	if (OS_UNLIKELY(r.how == CFI_UNKNOWN))
		return LOST;
	at = (const uintptr_t *)((r.how == CFI_BP_LOAD ? s->bp : end) + (uintptr_t)(intptr_t)r.bp);
	if (OS_UNLIKELY(r.how == CFI_BP_LOAD)) {
		if (!near(s->sp, end) || !near(s->sp, (uintptr_t)at))
			return LOST;
		end = load_word(end);
	}
	if (OS_UNLIKELY(!near(s->sp, end)))
		return LOST;
	if (r.saved)
		s->bp = *at;
	s->bp_from = (uintptr_t)(r.how == CFI_BP_LOAD ? NULL : r.saved ? at : &steps_not_saved);
	s->sp = end;
	s->ip = load_word(end - 8);
	return s->ip ? WENT : REACHED_END;
}

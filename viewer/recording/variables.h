/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors in the variables of Python frames, recorded when an allocation fails, and when a line
 * first requests much memory.
 */
#pragma once

#include "owners.h"

#define VARIABLE_SHAPE 128
#define VARIABLE_FORM  200
#define VARIABLE_WORDS 300

const char *variables_type(const struct defs_variable *v); /* "float32"; "?" if not known */
/* "[8, 4096]". Returns buf. */
const char *variables_shape(const struct defs_variable *v, char buf[VARIABLE_SHAPE]);
/* "[8, 4096] float32"; of a list "20, first [8, 4096] float32". Returns buf. */
const char *variables_form(const struct defs_variable *v, char buf[VARIABLE_FORM]);

struct variable_at {
	const struct defs_variable *variable;
	struct owner owner; /* the frame's line */
	bool own;	    /* the frame is the script's or the model's own code */
	uint64_t seq;	    /* the event at which it was recorded */
};

static inline bool variable_is_in(const struct variable_at *x, const struct block *b)
{
	return x->variable->head.addr - b->addr < b->size;
}

/* The tensors of a stack's frames at the event, innermost first; lists only of own code. A tensor
 * in several frames counts for the innermost of own code. Returns their number, at most `most`. */
size_t variables_at(struct stacks *s, uint32_t stack, uint64_t seq, struct variable_at *out,
		    size_t most);
/* The same for a failed request: only those recorded for it, at event `since` or later. */
size_t variables_refused(struct stacks *s, uint32_t stack, uint64_t seq, uint64_t since,
			 struct variable_at *out, size_t most);

/* The first size of the first tensor in the model's latest call that was recorded up to the event:
 * usually the samples of a batch. 0 = unknown. */
uint64_t variables_first_size(const struct defs *d, uint64_t seq);

/* "x [8, 4096], y [4096]": tensors of a line's frame that its statement reads, in its order, with
 * their shapes at the event, or as first recorded later; they were recorded at event *noted. "" if
 * none is known. Returns buf. */
const char *variables_read(struct stacks *s, uint32_t stack, uint64_t seq, const struct owner *line,
			   const char *statement, char buf[VARIABLE_WORDS], uint64_t *noted);

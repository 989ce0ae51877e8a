/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors in the variables of Python frames, as they were recorded: at each refusal, and when a
 * line first asked for much memory.
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
	bool own;	    /* it is the script's or the model's own code */
};

/* Those of a stack's frames at the event, innermost first; lists only of own code. What several
 * frames have is of the innermost one of own code. Returns how many, at most `most`. */
size_t variables_at(struct stacks *s, uint32_t stack, uint64_t seq, struct variable_at *out,
		    size_t most);
/* Of a refusal: what was recorded at it, not before the event `since`. */
size_t variables_refused(struct stacks *s, uint32_t stack, uint64_t seq, uint64_t since,
			 struct variable_at *out, size_t most);

/* The first size of the first tensor that the model was called with, in its latest call that was
 * recorded up to the event: as a rule, samples of a batch. 0: not known. */
uint64_t variables_first_size(const struct defs *d, uint64_t seq);

/* "x [8, 4096], y [4096]": tensors of a line's frame that its statement reads, in its order,
 * with their shapes at the event, or when it first asked for much memory. "" if none is known.
 * Returns buf. */
const char *variables_read(struct stacks *s, uint32_t stack, uint64_t seq, const struct owner *line,
			   const char *statement, char buf[VARIABLE_WORDS]);

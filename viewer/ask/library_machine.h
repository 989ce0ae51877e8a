/* SPDX-License-Identifier: Apache-2.0 */
/* A question in its thread: where it ends if there is no memory left, and what it says. */
#pragma once

#include "../base/usual.h"

#include <setjmp.h>

#include "gpumemtrace.h"

struct asked {
	jmp_buf out_of_memory;
	struct gpumemtrace_answer *answer;
	bool lost; /* memory ran out */
};

/* From here on this thread's sentences belong to that question; NULL: to none. */
void asked_begin(struct asked *a, struct gpumemtrace_answer *answer);
/* Ends it; returns its code, UNREADABLE with a sentence if memory ran out. */
int asked_end(struct asked *a, int code);

/* Runs the statement of a question: false if memory ran out in it. What it had allocated stays. */
#define asked_try(a) (!setjmp((a)->out_of_memory))

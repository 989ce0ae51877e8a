/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack walks of shim/stacks/frames.c beside libunwind's of the same moment, and functions with
 * every kind of frame that call each other at random.
 */
#pragma once

#include "../../shim/stacks/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>

#define NOINLINE __attribute__((noinline, noclone))

struct walks {
	struct frames *frames;
	struct binding binding;
	uint64_t random;
	unsigned walks, asked, kept, wrong;
	bool alone; /* libunwind is not there to judge */
	struct walk last;
	jmp_buf back;
};

extern __thread struct walks my;

int find_libunwind(void **state); /* for set-up */
void begin(void);
uint32_t chance(uint32_t of);
void walk_both_ways(void);
void any(int depth);
void expect_right(bool asked_too);

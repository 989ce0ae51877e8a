/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for a step from a function to its caller: where the caller's registers are, by the call
 * frame information that compilers write beside the code (.eh_frame).
 */
#pragma once

#include <stdint.h>

enum cfi_how {
	CFI_UNKNOWN = 1, /* no information, or more than is understood here */
	CFI_SP,		 /* the frame ends at the stack pointer + end */
	CFI_BP,		 /* at rbp + end */
	CFI_BP_LOAD,	 /* at what is stored at rbp + end (a realigned stack) */
	CFI_OUTERMOST,	 /* there is no caller */
};

/* The return address is the last word of the frame. An all-zero rule is none. */
struct cfi_rule {
	int32_t end;
	int16_t bp; /* where the caller's rbp is: before the end (CFI_BP_LOAD: relative to rbp); if
		     * !saved, rbp is still the caller's */
	uint8_t how;
	uint8_t saved;
};

/* A mapped object and its .eh_frame_hdr. */
struct cfi_table {
	uintptr_t start, end; /* the object */
	uintptr_t header;     /* 0 = it has none */
};

/* The rule for the function at pc. Plain loads within the object; any thread. */
struct cfi_rule cfi_rule(const struct cfi_table *t, uintptr_t pc);

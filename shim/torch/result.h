/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ functions that return an object with a destructor. The caller gives an address for it: on
 * x86-64 as an argument before all others, on aarch64 in a register of its own (x8; AAPCS64, 6.9).
 * A hook of such a function is written in C with that address as its first argument; besides it
 * there are at most seven, each of one word. Any thread; nothing is kept.
 */
#pragma once

#include <stdint.h>

typedef void *result_fn(void *address, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			uint64_t f, uint64_t g);

/* RESULT_FUNCTION(symbol, function): defines and exports the C++ function `symbol`, which runs
 * function(address, arguments...). */
#if defined(__aarch64__)
#define RESULT_FUNCTION(symbol, function) RESULT_ENTRY(symbol, function)
#define RESULT_ENTRY(symbol, function)                                                             \
	extern const char symbol[];                                                                \
	__asm__(".text\n.globl " #symbol "\n.type " #symbol ", %function\n" #symbol ":\n"          \
		".cfi_startproc\n"                                                                 \
		"mov x7, x6\nmov x6, x5\nmov x5, x4\nmov x4, x3\nmov x3, x2\nmov x2, x1\nmov x1, " \
		"x0\n"                                                                             \
		"mov x0, x8\n"                                                                     \
		"b " #function "\n"                                                                \
		".cfi_endproc\n.size " #symbol ", . - " #symbol "\n")
#else
#define RESULT_FUNCTION(symbol, function) \
	extern __attribute__((visibility("default"), alias(#function))) __typeof__(function) symbol
#endif

/* Runs the C++ function `real`; returns what it returns, the address. */
#if defined(__aarch64__)
void *result_call(result_fn *real, void *address, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		  uint64_t e, uint64_t f, uint64_t g);
#else
static inline void *result_call(result_fn *real, void *address, uint64_t a, uint64_t b, uint64_t c,
				uint64_t d, uint64_t e, uint64_t f, uint64_t g)
{
	return real(address, a, b, c, d, e, f, g);
}
#endif

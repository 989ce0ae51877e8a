/* SPDX-License-Identifier: Apache-2.0
 *
 * One tiny function for each STUB, DENY and WORK row of the tables. No CUDA header may be included
 * here, because the stubs are declared without their real arguments. A WORK row's function reads
 * each argument as a word; the row has their number.
 */
#include <stdio.h>
#include <stdlib.h>
#include "../libraries/lib.h"

#define WORK(name, words) STUB(name)

enum {
#define STUB(name, ...)	      ROW_##name,
#define DENY(name, code, ...) ROW_##name,
#define IMPL(name, ...)
#define TWIN(name, other, ...)
#include "exports.def"
#undef STUB
#undef DENY
	ROWS
};

static const char *const names[ROWS + 1] = {
#define STUB(name, ...)	      #name,
#define DENY(name, code, ...) #name,
#include "exports.def"
#undef STUB
#undef DENY
	NULL
};

static unsigned int calls[ROWS + 1];

int sim_stub(int row, int result)
{
	__atomic_fetch_add(&calls[row], 1, __ATOMIC_RELAXED);
	return result;
}

#define WORDS 32

static int sim_work(int row, const uintptr_t words[WORDS], int n)
{
	lib_work(names[row], words, n);
	return sim_stub(row, 0);
}

#define TYPES                                                                                      \
	uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, \
		uintptr_t h, uintptr_t i, uintptr_t j, uintptr_t k, uintptr_t l, uintptr_t m,      \
		uintptr_t n, uintptr_t o, uintptr_t p, uintptr_t q, uintptr_t r, uintptr_t s,      \
		uintptr_t t, uintptr_t u, uintptr_t v, uintptr_t w, uintptr_t x, uintptr_t y,      \
		uintptr_t z, uintptr_t a1, uintptr_t b1, uintptr_t c1, uintptr_t d1, uintptr_t e1, \
		uintptr_t f1
#undef WORK
#define WORK(name, n_words)                                                            \
	SIM_API int name(TYPES);                                                       \
	SIM_API int name(TYPES)                                                        \
	{                                                                              \
		const uintptr_t words[WORDS] = { a, b, c, d, e,	 f,  g,	 h,  i,	 j, k, \
						 l, m, n, o, p,	 q,  r,	 s,  t,	 u, v, \
						 w, x, y, z, a1, b1, c1, d1, e1, f1 }; \
                                                                                       \
		return sim_work(ROW_##name, words, n_words);                           \
	}
#define STUB(name, ...) DENY(name, 0)
#define DENY(name, code, ...)                      \
	SIM_API int name(void);                    \
	SIM_API int name(void)                     \
	{                                          \
		return sim_stub(ROW_##name, code); \
	}
#include "exports.def"

/* Second names: a jump, which passes any arguments on. */
#if defined(__x86_64__)
#define JUMP "jmp "
#define TO   "@PLT"
#elif defined(__aarch64__)
#define JUMP "b "
#define TO   ""
#else
#error "no jump for this machine"
#endif
#undef STUB
#undef DENY
#undef TWIN
#undef WORK
#define WORK(name, words)
#define STUB(name, ...)
#define DENY(name, code, ...)
#define TWIN(name, other, ...)                                                    \
	__asm__(".text\n\t.globl " #name "\n\t.type " #name ", @function\n" #name \
		":\n\t" JUMP #other TO "\n\t.size " #name ", . - " #name "\n");
#include "exports.def"

/* Lists the stubs that the program called, for those who extend the device. */
__attribute__((destructor)) static void list_calls(void)
{
	if (!getenv("SIMGPU_STUBS"))
		return;
	for (int i = 0; i < ROWS; i++)
		if (calls[i])
			fprintf(stderr, "simgpu: %8u %s\n", calls[i], names[i]);
}

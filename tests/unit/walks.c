/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks beside libunwind's, and random programs. Any thread.
 */
#include "walks.h"

#include <alloca.h>
#include <dlfcn.h>
#include <sys/mman.h>

static int (*libunwind)(void **, int);

__thread struct walks my;

uint32_t chance(uint32_t of)
{
	my.random = my.random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(my.random >> 33) % of;
}

/* The innermost frame, this one, is called from two places in it; all others must be equal. */
NOINLINE void walk_both_ways(void)
{
	void *theirs[FRAMES_MOST];
	struct walk *w = frames_walk(my.frames, &my.binding, NULL, 0, 0);
	int n = my.alone ? 0 : libunwind(theirs, FRAMES_MOST);

	my.walks++;
	if (!w) {
		my.asked++;
		return;
	}
	frames_copy(my.frames, &my.last); /* w may not have its inner part yet */
	w = &my.last;
	my.kept += (unsigned)w->kept;
	if (my.alone)
		return;
	my.wrong += w->count != n;
	for (int i = 1; i < n && w->count == n; i++)
		if (w->frames[n - 1 - i].ip != (uintptr_t)theirs[i]) {
			my.wrong++;
			break;
		}
}

void begin(void)
{
	if (!my.frames)
		my.frames = mmap(NULL, sizeof(*my.frames), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(my.frames, MAP_FAILED);
	my.walks = my.asked = my.kept = my.wrong = 0;
	my.random = 7;
}

/* ---- functions of every kind of frame, calling each other at random ---- */

static NOINLINE void with_nothing(int depth)
{
	any(depth);
	__asm__ volatile("");
}

/* The same slots hold the same return addresses again, with other frames further out. */
static NOINLINE void twice(int depth)
{
	any(depth);
	any(depth);
	any(depth - 1);
}

static NOINLINE void with_any_size(int depth)
{
	volatile char *p = alloca(16 + chance(500));

	p[0] = 1;
	any(depth);
	p[1] = 2;
}

static NOINLINE void with_a_table(int depth)
{
	volatile uint64_t table[200];

	/* what looks like frames, where others will be */
	for (int i = 0; i < 200; i++)
		table[i] = (uint64_t)__builtin_return_address(0);
	any(depth);
	table[0]++;
}

/* Arguments on the stack and a realigned frame: its end is found through memory. */
static NOINLINE uint64_t realigned(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
				   uint64_t f, uint64_t depth, uint64_t h)
{
	volatile uint64_t aligned[8] __attribute__((aligned(64)));
	volatile char *p = alloca(8 + depth);

	aligned[0] = a + b + c + d + e + f + h;
	p[0] = 1;
	any((int)depth);
	return aligned[0] + depth + h;
}

static NOINLINE void that_keeps_registers(int depth)
{
	uint64_t a = chance(9), b = chance(9), c = chance(9), d = chance(9), e = chance(9);

	any(depth);
	__asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e));
}

/* As PyTorch's bindings are: each has something on its stack by which it is known. */
static NOINLINE void a_binding(int depth)
{
	volatile uint64_t handler = 1;

	my.binding.at = (uintptr_t)&handler;
	my.binding.number++;
	walk_both_ways();
	any(depth);
	my.binding.at = 0;
	any(depth - 1);
	handler++;
}

void any(int depth)
{
	if (chance(3) == 0)
		walk_both_ways();
	if (depth <= 0)
		return walk_both_ways();
	switch (chance(7)) {
	case 0:
		return with_nothing(depth - 1);
	case 1:
		return chance(3) ? with_nothing(depth - 1) : twice(depth - 1);
	case 2:
		return with_any_size(depth - 1);
	case 3:
		return with_a_table(depth - 1);
	case 4:
		realigned(1, 2, 3, 4, 5, 6, (uint64_t)depth - 1, 8);
		return;
	case 5:
		return a_binding(depth - 1);
	default:
		return that_keeps_registers(depth - 1);
	}
}

void expect_right(bool asked_too)
{
	assert_int_equal(my.wrong, 0);
	assert_true(my.walks > 0);
	if (!asked_too)
		assert_int_equal(my.asked, 0);
}

int find_libunwind(void **state)
{
	void *handle = dlopen("libunwind.so.8", RTLD_LOCAL | RTLD_NOW);

	(void)state;
	libunwind = handle ? (int (*)(void **, int))dlsym(handle, "unw_backtrace") : NULL;
	return libunwind ? 0 : -1;
}

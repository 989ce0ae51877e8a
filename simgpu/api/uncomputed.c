/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that a program reads back although they were not computed. Each such copy to the host is
 * counted, and simgpuValueNotComputed is called. That function does nothing, but a profiler can
 * hook it. SIMGPU_VALUES=1 prints the counts at exit. Any thread.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "cudart.h"

#define REPEATED CONTENTS_KNOWN /* in place of the state: the program makes no progress */

typedef int notice(const void *address, size_t bytes, int state);

static void *noticed;
static uint64_t reads, small, guesses;

notice simgpuValueNotComputed;

SIM_API int simgpuValueNotComputed(const void *address, size_t bytes, int state)
{
	(void)address, (void)bytes, (void)state;
	return 0;
}

/* This library would find its own function first, so the first one in the program is looked up. */
static notice *find_notice(void)
{
	void *f = __atomic_load_n(&noticed, __ATOMIC_ACQUIRE), *program;

	if (!f) {
		program = dlopen(NULL, RTLD_LAZY);
		f = program ? dlsym(program, "simgpuValueNotComputed") : NULL;
		__atomic_store_n(&noticed, f, __ATOMIC_RELEASE);
	}
	return f ? (notice *)f : simgpuValueNotComputed;
}

void value_read(const void *dst, const void *src, size_t bytes)
{
	int state = contents_least((uintptr_t)src, bytes);

	progress_data(dst, bytes);
	if (state == CONTENTS_KNOWN)
		return;
	__atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&small, bytes == 1 || bytes == 8, __ATOMIC_RELAXED);
	__atomic_fetch_add(&guesses, state == CONTENTS_GUESS, __ATOMIC_RELAXED);
	find_notice()(src, bytes, progress_none(src) ? REPEATED : state);
}

__attribute__((destructor)) static void say_counts(void)
{
	if (!reads || !getenv("SIMGPU_VALUES"))
		return;
	fprintf(stderr,
		"simgpu: %" PRIu64 " copies to the host had values that were not computed (%" PRIu64
		" of them 8-byte numbers or flags, on which sizes and decisions depend; %" PRIu64
		" guessed)\n",
		reads, small, guesses);
}

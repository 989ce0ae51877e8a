/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel is given: each address among its arguments is forgotten, since it may be written.
 * Any thread; must not read beyond its stack.
 */
#include <string.h>
#include "core.h"

#define ARGS_MOST  64
#define WORDS_MOST 128	 /* of each argument are looked at */
#define WIPED	   16384 /* bytes: more than any function here takes */

static __thread uintptr_t stack_top;

/* Other functions' variables lie between the arguments, which sanitizers would not let us read. */
__attribute__((no_sanitize("address"))) static void scan(const uintptr_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sim_is_device_ptr((void *)words[i]))
			sim_forget((void *)words[i]);
}

void contents_scan(const void *data, size_t bytes)
{
	size_t skip = -(uintptr_t)data % sizeof(uintptr_t); /* pointers are aligned */

	if (contents_any() && bytes > skip)
		scan((const uintptr_t *)((uintptr_t)data + skip),
		     (bytes - skip) / sizeof(uintptr_t));
}

static uintptr_t find_stack_top(void)
{
	pthread_attr_t attr;
	void *base = NULL;
	size_t size = 0;

	if (!pthread_getattr_np(pthread_self(), &attr)) {
		pthread_attr_getstack(&attr, &base, &size);
		pthread_attr_destroy(&attr);
	}
	return (uintptr_t)base + size;
}

size_t contents_reach(const void *p)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), at = (uintptr_t)p;

	if (!stack_top)
		stack_top = find_stack_top();
	return at >= here && at < stack_top ? stack_top - at : 0;
}

/*
 * The runtime is not told how many arguments a kernel takes, nor their sizes. The compiler's launch
 * stubs keep both the array and the arguments on the stack, so everything between here and the top
 * of the stack may be read: the walk ends at the first pointer that leads elsewhere. What lies
 * behind an argument is looked at too; if that is an address, too much is forgotten, which is the
 * smaller harm.
 */
__attribute__((no_sanitize("address"))) void contents_launch(void **args)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), a = (uintptr_t)args;

	if (!contents_any() || !contents_reach(args))
		return;
	for (int i = 0; i < ARGS_MOST && a + (i + 1) * sizeof(void *) <= stack_top; i++) {
		uintptr_t p = (uintptr_t)args[i];
		size_t most = WORDS_MOST * sizeof(void *);

		if (p < here || p >= stack_top)
			return;
		contents_scan((const void *)p, stack_top - p < most ? stack_top - p : most);
	}
}

/* The addresses that a computed kernel's functions leave behind on the stack would be taken for
 * arguments of a later one, whose frames come to lie there. */
__attribute__((noinline)) void contents_wipe(void)
{
	char frames[WIPED];

	memset(frames, 0, sizeof(frames));
	__asm__ volatile("" : : "r"(frames) : "memory");
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of kernels that are not computed. Such a kernel may write to each address among its
 * arguments, so the contents there are forgotten. Any thread; must not read beyond its stack.
 */
#include <string.h>
#include "contents.h"

#define ARGS_MOST  64
#define WORDS_MOST 128	 /* words of each argument that are scanned */
#define WIPED	   16384 /* bytes, more than any function here uses */

static __thread uintptr_t stack_top;
static __thread uintptr_t kept_from, kept_to;

/* Called for each address; false stops the scan. */
typedef bool each(uintptr_t address, void *data);

/* Variables of other functions lie between the arguments, so sanitizers would report these
 * reads. */
__attribute__((no_sanitize("address"))) static bool scan(const void *from, size_t bytes, each *f,
							 void *data)
{
	size_t skip = -(uintptr_t)from % sizeof(uintptr_t); /* pointers are aligned */
	const uintptr_t *words = (const uintptr_t *)((uintptr_t)from + skip);

	for (size_t i = 0; bytes > skip && i < (bytes - skip) / sizeof(*words); i++)
		if (sim_is_device_ptr((void *)words[i]) && !f(words[i], data))
			return false;
	return true;
}

static bool may_write(uintptr_t address, void *data)
{
	(void)data;
	counts_may_write(address);
	return true;
}

void contents_scan(const void *data, size_t bytes)
{
	if (contents_any())
		scan(data, bytes, may_write, NULL);
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

void contents_kept(const void *from, size_t bytes)
{
	kept_from = (uintptr_t)from;
	kept_to = kept_from + bytes;
}

size_t contents_reach(const void *p)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), at = (uintptr_t)p;

	if (at >= kept_from && at < kept_to)
		return kept_to - at;
	if (!stack_top)
		stack_top = find_stack_top();
	return at >= here && at < stack_top ? stack_top - at : 0;
}

/*
 * The runtime gets neither the number of a kernel's arguments nor their sizes. The compiler's
 * launch stubs keep the array and the arguments on the stack, so everything between here and the
 * top of the stack can be read. The walk ends at the first pointer that points elsewhere. The words
 * after an argument are scanned too. If one of them is an address, too much is forgotten, which
 * does less harm than too little.
 */
__attribute__((no_sanitize("address"))) static void each_address(void **args, each *f, void *data)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), a = (uintptr_t)args;

	if (!contents_reach(args))
		return;
	for (int i = 0; i < ARGS_MOST && a + (i + 1) * sizeof(void *) <= stack_top; i++) {
		uintptr_t p = (uintptr_t)args[i];
		size_t most = WORDS_MOST * sizeof(void *);

		if (p < here || p >= stack_top ||
		    !scan((const void *)p, stack_top - p < most ? stack_top - p : most, f, data))
			return;
	}
}

void contents_launch(void **args)
{
	if (contents_any())
		each_address(args, may_write, NULL);
}

struct found {
	uintptr_t *out;
	size_t n, most;
};

static bool argument_at(uintptr_t address, void *data)
{
	struct found *f = data;

	for (size_t i = 0; i < f->n; i++)
		if (f->out[i] == address)
			return true;
	f->out[f->n++] = address;
	return f->n < f->most;
}

size_t arguments_addresses(void **args, uintptr_t *out, size_t most)
{
	struct found f = { .out = out, .most = most };

	each_address(args, argument_at, &f);
	return f.n;
}

/* Clears the stack below. Addresses that a computed kernel's functors leave there would look like
 * arguments of a later kernel, whose frames occupy the same place. */
__attribute__((noinline)) void contents_wipe(void)
{
	char frames[WIPED];

	memset(frames, 0, sizeof(frames));
	__asm__ volatile("" : : "r"(frames) : "memory");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind is loaded RTLD_LOCAL, never linked: it exports _Unwind_* and backtrace, and in a
 * preloaded library's DT_NEEDED they would replace the program's own.
 *
 * It is used if our own walk (frames.c) fails. Application threads, any lock held. unw_backtrace
 * keeps a cache of unwind rules for each thread, and needs no lock once it is warm; it never calls
 * malloc.
 */
#include "native.h"

#include "../base/config.h"
#include "../base/file.h"
#include "../base/forkgate.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#define UNW_CACHE_PER_THREAD 2

/* The names of libunwind's own functions contain the machine's. */
#if defined(__x86_64__)
#define OF_UNWIND(name) "_ULx86_64_" name
#else
#define OF_UNWIND(name) "_ULaarch64_" name
#endif

static int (*backtrace_fn)(void **, int);
static const char *trouble = "native stacks are switched off";
static uintptr_t own_start, own_end;

static int note_own_range(struct dl_phdr_info *info, size_t size, void *ctx)
{
	uintptr_t here = (uintptr_t)ctx, start = UINTPTR_MAX, end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + p->p_vaddr < start)
			start = info->dlpi_addr + p->p_vaddr;
		if (info->dlpi_addr + p->p_vaddr + p->p_memsz > end)
			end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	if (here < start || here >= end)
		return 0;
	own_start = start;
	own_end = end;
	return 1;
}

static void set_up_cache(void *unwind)
{
	int (*policy)(void *, int) =
		(int (*)(void *, int))dlsym(unwind, OF_UNWIND("set_caching_policy"));
	void *space = dlsym(unwind, OF_UNWIND("local_addr_space"));

	struct file_low low;

	file_hold_low(&low); /* it opens a pipe, which it keeps */
	if (policy && space)
		policy(*(void **)space, UNW_CACHE_PER_THREAD);
	file_let_low(&low);
}

/* A package has its own libunwind beside this library; else the system's is used. */
static void *open_unwind(void)
{
	char path[PATH_MAX];
	Dl_info own;
	const char *slash;
	void *unwind = NULL;

	if (dladdr((void *)&backtrace_fn, &own) && own.dli_fname &&
	    (slash = strrchr(own.dli_fname, '/')) &&
	    slash - own.dli_fname < (ptrdiff_t)(sizeof(path) - sizeof("/libunwind.so.8"))) {
		size_t n = (size_t)(slash - own.dli_fname);

		memcpy(path, own.dli_fname, n);
		memcpy(path + n, "/libunwind.so.8", sizeof("/libunwind.so.8"));
		unwind = dlopen(path, RTLD_LOCAL | RTLD_NOW);
	}
	return unwind ? unwind : dlopen("libunwind.so.8", RTLD_LOCAL | RTLD_NOW);
}

void native_setup(void)
{
	void *unwind;

	dl_iterate_phdr(note_own_range, (void *)&backtrace_fn);
	if (!(gmt_config.stacks & GMT_STACKS_NATIVE))
		return;
	unwind = open_unwind();
	if (!unwind) {
		trouble = "libunwind.so.8 is not installed";
		return;
	}
	backtrace_fn = (int (*)(void **, int))dlsym(unwind, "unw_backtrace");
	trouble = backtrace_fn ? NULL : "libunwind.so.8 has no unw_backtrace";
	if (backtrace_fn)
		set_up_cache(unwind);
}

const char *native_trouble(void)
{
	return trouble;
}

#ifdef GMT_CHECK_FRAMES
static void compare(const struct frames *f, const struct walk *w)
{
	static __thread struct walk whole;

	if (w)
		frames_copy(f, &whole);
	native_compare(w ? &whole : NULL);
}
#endif

struct walk *native_by_frames(struct frames *f, const struct binding *binding, const void *from)
{
	struct walk *w = backtrace_fn ? frames_walk(f, binding, from, own_start, own_end) : NULL;

#ifdef GMT_CHECK_FRAMES
	compare(f, w);
#endif
	return w;
}

int native_by_libunwind(uintptr_t *out, int most, int *skip)
{
	sigset_t mask;
	int n, own = 0;

	if (!backtrace_fn)
		return *skip = 0;
	forkgate_enter(&mask);
	n = backtrace_fn((void **)out, most);
	forkgate_leave(&mask);
	while (own < n && out[own] >= own_start && out[own] < own_end)
		own++;
	*skip = own;
	return n > own ? n - own : 0;
}

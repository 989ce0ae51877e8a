/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded in front of the library, another tool of its kind: stands between a program and
 * CUDA's functions by name and writes to stderr what was asked and whose function was given:
 * "ask 'NAME' VERSION FLAGS OBJECT SYMBOL" by cuGetProcAddress, "find 'NAME' OBJECT SYMBOL" by
 * dlsym.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void *find(void *handle, const char *name);
typedef int ask(const char *name, void **fn, int version, uint64_t flags);
typedef int ask_v2(const char *name, void **fn, int version, uint64_t flags, int *status);

static ask *next;
static ask_v2 *next_v2;

/* The object that a function is of; *symbol is its name there. */
static const char *object_of(void *fn, const char **symbol)
{
	Dl_info info = { 0 };
	const char *slash;

	*symbol = "-";
	if (!fn || !dladdr(fn, &info) || !info.dli_fname)
		return "-";
	if (info.dli_sname)
		*symbol = info.dli_sname;
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static int tell(int rc, const char *name, void **fn, int version, uint64_t flags)
{
	const char *symbol, *object = object_of(!rc && fn ? *fn : NULL, &symbol);

	fprintf(stderr, "ask '%s' %d %d %s %s\n", name, version, (int)flags, object, symbol);
	return rc;
}

static int observe(const char *name, void **fn, int version, uint64_t flags);
static int observe_v2(const char *name, void **fn, int version, uint64_t flags, int *status);

/* The function that gives out functions is given out too: we stay in between. */
static int stay(int rc, const char *name, void **fn, int version, uint64_t flags)
{
	tell(rc, name, fn, version, flags);
	if (rc || strcmp(name, "cuGetProcAddress"))
		return rc;
	if (version >= 12000) {
		next_v2 = (ask_v2 *)*fn;
		*fn = (void *)observe_v2;
	} else {
		next = (ask *)*fn;
		*fn = (void *)observe;
	}
	return rc;
}

static int observe(const char *name, void **fn, int version, uint64_t flags)
{
	return stay(next(name, fn, version, flags), name, fn, version, flags);
}

static int observe_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	return stay(next_v2(name, fn, version, flags, status), name, fn, version, flags);
}

static find *behind(void)
{
	static find *f;
	find *first = (find *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

	if (!first)
		first = (find *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!f)
		f = (find *)first(RTLD_NEXT, "dlsym");
	return f;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	void *p = behind()(handle, name);
	const char *symbol, *object;

	if (name && !strncmp(name, "cu", 2)) {
		object = object_of(p, &symbol);
		fprintf(stderr, "find '%s' %s %s\n", name, object, symbol);
	}
	if (p && !strcmp(name, "cuGetProcAddress")) {
		next = (ask *)p;
		return (void *)observe;
	}
	if (p && !strcmp(name, "cuGetProcAddress_v2")) {
		next_v2 = (ask_v2 *)p;
		return (void *)observe_v2;
	}
	return p;
}

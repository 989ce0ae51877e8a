/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables behind redirect.h, from hooks.def. The driver names a function by base name, CUDA
 * version and default stream; a hook is given only if its row is the one that the driver chose too.
 * No name is ever made by adding a suffix. Application threads, any lock held.
 */
#include "redirect.h"

#include "hook.h"

#include <string.h>

struct entry {
	const char *base;
	int version;
	int per_thread;
	int function; /* enum driver_function; -1 = known, not hooked */
	void *hook;
};

struct symbol {
	const char *name;
	void *hook;
	int function;
	bool driver;
};

static const struct entry entries[] = {
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) \
	{ #base, version, per_thread, DRIVER_##symbol, (void *)symbol },
#define KNOWN(base, version, per_thread) { #base, version, per_thread, -1, NULL },
#include "../hooks.def"
};

static const struct symbol symbols[] = {
#define RUNTIME(name, proto, args, effect) { #name, (void *)name, RUNTIME_##name, false },
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) \
	{ #symbol, (void *)symbol, DRIVER_##symbol, true },
#include "../hooks.def"
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* As the driver does: of the forms that are not newer than asked for the newest; the form for the
 * per-thread default stream if it is wanted and exists. */
static const struct entry *choose(const char *name, int version, bool per_thread)
{
	const struct entry *best = NULL;

	for (size_t i = 0; i < COUNT(entries); i++) {
		const struct entry *e = &entries[i];

		if (e->version > version || e->per_thread > per_thread || strcmp(e->base, name))
			continue;
		if (!best || e->per_thread > best->per_thread ||
		    (e->per_thread == best->per_thread && e->version > best->version))
			best = e;
	}
	return best;
}

/* Asked for by a program of a CUDA newer than our table: it may mean other parameters. */
static bool is_too_new(const struct entry *e, int version, const void *real)
{
	if (version <= CUDA_ABI_NEWEST || resolve_driver((enum driver_function)e->function) == real)
		return false;
	gmt_meta("hook.too_new", e->base, strlen(e->base));
	return true;
}

void *redirect_entry(const char *name, int version, uint64_t flags, void *real)
{
	const struct entry *e = choose(name, version, (flags & CUDA_PER_THREAD_STREAM) != 0);

	if (!e || e->function < 0 || !gmt_recording() || resolve_is_ours(real) ||
	    is_too_new(e, version, real) ||
	    !resolve_same_driver((enum driver_function)e->function, real))
		return real;
	return e->hook;
}

static const struct symbol *find(const char *name)
{
	if (name[0] != 'c' || name[1] != 'u')
		return NULL;
	for (size_t i = 0; i < COUNT(symbols); i++)
		if (!strcmp(symbols[i].name, name))
			return &symbols[i];
	return NULL;
}

int redirect_knows(const char *symbol)
{
	return find(symbol) != NULL;
}

/* CUDA's libraries look up their own functions too: they get them. */
void *redirect_symbol(const char *symbol, void *real, const void *caller)
{
	const struct symbol *s = find(symbol);

	if (!s || resolve_same_object(real, caller))
		return real;
	if (s->driver ? resolve_same_driver((enum driver_function)s->function, real)
		      : resolve_same_runtime((enum runtime_function)s->function, real))
		return s->hook;
	return real;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables behind redirect.h, from hooks.def. The driver decides which form of a function is
 * meant by a name, a CUDA version and flags, and older drivers decide differently than newer ones.
 * So nothing is decided here: the function that the driver returned is compared with those that it
 * exports under the symbols of our rows, and only its own hook replaces it. Application threads,
 * any lock held.
 */
#include "redirect.h"

#include "../base/config.h"
#include "../capture.h"
#include "call.h"

#include <string.h>

struct entry {
	const char *base;
	int function; /* enum driver_function */
	void *hook;
	bool is_use; /* only needed if uses are recorded */
};

struct symbol {
	const char *name;
	void *hook;
	int function;
	bool driver;
	bool is_use;
};

/* Whether each effect (hook_body.h) is about uses of memory. */
#define ALLOC(...)	  false
#define FREE(...)	  false
#define AFTER(...)	  false
#define LOAD(...)	  false
#define LOAD_FILE(...)	  false
#define BEFORE(...)	  false
#define OWN		  false
#define CONTEXT(...)	  false
#define LAUNCH(...)	  true
#define LAUNCH_GRAPH(...) true
#define COPY(...)	  true
#define COPY_2D(...)	  true
#define COPY_3D(...)	  true
#define COPY_BATCH(...)	  true
#define SET(...)	  true
#define PREFETCH(...)	  true
#define HANDLE(...)	  true
#define HANDLE_OF(...)	  true
#define CAPTURES(...)	  true
#define GRAPH(...)	  true
#define GRAPH_KERNEL(...) true

static const struct entry entries[] = {
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) \
	{ #base, DRIVER_##symbol, (void *)symbol, effect },
#include "../hooks.def"
};

static const struct symbol symbols[] = {
#define RUNTIME(name, proto, args, effect) { #name, (void *)name, RUNTIME_##name, false, false },
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) \
	{ #symbol, (void *)symbol, DRIVER_##symbol, true, effect },
#include "../hooks.def"
};

/* Names with a hook that look-ups do not get: a library's handle gives that library's own
 * function. */
static const char *const passed[] = {
#define CUDNN(name, proto)					     #name,
#define NCCL(name, proto, args, sent, received, count, type, stream) #name,
#include "../hooks.def"
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Notes that a program of a CUDA newer than our table got an unknown form of a hooked function. */
static void note_unknown(const char *base, int version)
{
	if (version > CUDA_ABI_NEWEST)
		gmt_meta("hook.too_new", base, strlen(base));
}

void *redirect_entry(const char *name, int version, void *real)
{
	const char *base = NULL;

	if (!gmt_recording() || resolve_is_ours(real))
		return real;
	for (size_t i = 0; i < COUNT(entries); i++) {
		const struct entry *e = &entries[i];

		if (strcmp(e->base, name) || (e->is_use && !gmt_config.uses))
			continue;
		if (resolve_same_driver((enum driver_function)e->function, real))
			return e->hook;
		base = e->base;
	}
	if (base)
		note_unknown(base, version);
	return real;
}

static const struct symbol *find_symbol(const char *name)
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
	for (size_t i = 0; i < COUNT(passed); i++)
		if (!strcmp(passed[i], symbol))
			return 1;
	return find_symbol(symbol) != NULL;
}

/* CUDA's libraries also look up their own functions, and get the real ones. */
void *redirect_symbol(const char *symbol, void *real, const void *caller)
{
	const struct symbol *s = find_symbol(symbol);

	if (!s || (s->is_use && !gmt_config.uses) || resolve_same_object(real, caller))
		return real;
	if (s->driver ? resolve_same_driver((enum driver_function)s->function, real)
		      : resolve_same_runtime((enum runtime_function)s->function, real))
		return s->hook;
	return real;
}

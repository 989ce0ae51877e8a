/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real functions behind the hooks: whom would the caller have reached without us? Found by
 * reading the loaded objects' tables, never by the loader, whose lock another thread may hold.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum runtime_function {
#define RUNTIME(name, proto, args, effect) RUNTIME_##name,
#define USES_RUNTIME(name, proto)	   RUNTIME_##name,
#include "../hooks.def"
	RUNTIME_FUNCTIONS,
};

enum driver_function {
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) DRIVER_##symbol,
#define USES_DRIVER(symbol, proto)				       DRIVER_##symbol,
#include "../hooks.def"
	DRIVER_FUNCTIONS,
};

enum cudnn_function {
#define CUDNN(name, proto) CUDNN_##name,
#include "../hooks.def"
	CUDNN_FUNCTIONS,
};

/* Libraries of which a process may hold several releases: each caller has its own. */
enum linked { LINKED_RUNTIME, LINKED_CUDNN, LINKED };

struct world; /* one copy of such a library and those who call it */

/* What is known of the object that calls a hook. */
struct caller {
	struct world *world[LINKED];
	bool framework; /* PyTorch's caching allocator */
	bool cudnn;	/* a part of cuDNN itself: its parts call each other by the same names */
};

struct caller resolve_caller(uintptr_t address);

/* NULL = there is none. */
void *resolve_runtime(const struct caller *c, enum runtime_function f);
void *resolve_cudnn(const struct caller *c, enum cudnn_function f);
void *resolve_driver(enum driver_function f);

/* The same for a function whose lack is no trouble: a miss is not looked for again at once. */
void *resolve_driver_maybe(enum driver_function f);

/* Another way led a program to `real`: may our hook be given instead? That is so if the hook would
 * call the same. */
bool resolve_same_runtime(enum runtime_function f, const void *real);
bool resolve_same_driver(enum driver_function f, const void *real);

/* The first object behind us that has `name`. */
void *resolve_next(const char *name);

/* An object was unloaded: what was found is found anew. */
void resolve_unloaded(void);

bool resolve_is_ours(const void *address);
bool resolve_same_object(const void *a, const void *b);

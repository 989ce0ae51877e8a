/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real functions behind the hooks: those that the caller would have reached without us. Found
 * by reading the loaded objects' tables; the loader, whose lock another thread might hold, is not
 * asked (but for one case of cuDNN).
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

/* Libraries that a process can load in several releases: each caller has its own. */
enum linked { LINKED_RUNTIME, LINKED_CUDNN, LINKED };

struct world; /* one loaded copy of such a library, and its functions */

/* Facts about the object that calls a hook. */
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

/* The same for a function that can be missing: after a miss it is not searched for 100 ms. */
void *resolve_driver_maybe(enum driver_function f);

/* Whether a program that found `real` in another way may get our hook instead: only if the hook
 * would call that same function. */
bool resolve_same_runtime(enum runtime_function f, const void *real);
bool resolve_same_driver(enum driver_function f, const void *real);

/* The function or object `name` of the first object after us that has it; NULL = none. */
void *resolve_next(const char *name);

/* Call it after an object was unloaded: functions are looked up again. */
void resolve_unloaded(void);

bool resolve_is_ours(const void *address);
bool resolve_same_object(const void *a, const void *b);

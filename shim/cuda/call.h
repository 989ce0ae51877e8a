/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One running hook of a CUDA call: its caller, its nesting depth, and the typed real functions.
 * Application threads, any lock held.
 */
#pragma once

#include "cuda_abi.h"
#include "resolve.h"

#define HOOK_API __attribute__((visibility("default")))

#define RUNTIME(name, proto, args, effect)			       HOOK_API int name proto;
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) HOOK_API int symbol proto;
#define CUDNN(name, proto)					       HOOK_API int name proto;
#define USES_RUNTIME(name, proto)				       extern int name proto;
#define USES_DRIVER(symbol, proto)				       extern int symbol proto;
#include "../hooks.def"

/* One running hook. */
struct call {
	const struct caller *caller;
	const char *name; /* a literal */
	int depth;	  /* 0 = records; < 0 = nothing is recorded */
	bool driver;
	uint32_t *name_id;
};

/* Real functions with their types, NULL if there are none. */
#define REAL_RUNTIME(caller, name) ((typeof(&(name)))resolve_runtime(caller, RUNTIME_##name))
#define REAL_CUDNN(caller, name)   ((typeof(&(name)))resolve_cudnn(caller, CUDNN_##name))
#define REAL_DRIVER(symbol)	   ((typeof(&(symbol)))resolve_driver(DRIVER_##symbol))
#define MAYBE_DRIVER(symbol)	   ((typeof(&(symbol)))resolve_driver_maybe(DRIVER_##symbol))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a function of a row of hooks.def: caller, real function, an event before or after it.
 * Included by the files that turn rows into hooks.
 */
#pragma once

#include "contexts.h"
#include "cuda_device.h"
#include "hook.h"
#include "kernel_layouts.h"
#include "use_launches.h"

/* Effects: the kind of hook, its code before the real call, its code after it. */
#define NOTHING (void)0
#define ALLOC(mem, address, size, stream)                                                     \
	ROW, NOTHING,                                                                         \
		event = call_allocated(rc, GMT_MEM_##mem, rc ? 0 : (uint64_t)(address), size, \
				       (uint64_t)(stream))
#define FREE(mem, address, stream)                                                                \
	ROW, call_freeing(&call, &event, GMT_MEM_##mem, (uint64_t)(address), (uint64_t)(stream)), \
		call_result(&event, rc)
#define AFTER(what, address, size, first, second, device)                                   \
	ROW, NOTHING,                                                                       \
		event = call_did(rc, GMT_##what, rc ? 0 : (uint64_t)(address), size, first, \
				 second, rc ? 0 : (device))
#define BEFORE(what, address, size, first)                                            \
	ROW, call_doing(&call, &event, GMT_##what, (uint64_t)(address), size, first), \
		call_result(&event, rc)
#define LOAD(handle, code) ROW, NOTHING, event = call_loaded(rc, rc ? NULL : (handle), code)
#define LOAD_FILE(handle, path) \
	ROW, NOTHING, event = call_loaded_file(rc, rc ? NULL : (handle), path)
#define CONTEXT(context, device)                                                               \
	ROW, NOTHING,                                                                          \
		event = call_did(rc || !contexts_note((uint64_t) * (context)), GMT_CTX_CREATE, \
				 rc ? 0 : (uint64_t) * (context), 0, 0, 0, rc ? 0 : (device))
#define OWN BY_HAND, NOTHING, NOTHING

/* Effects of calls that use memory. No call is nested in them, so they have a body of their own. */
#define LAUNCH(f, x, y, stream, params, extra) \
	USE, NOTHING, launch_kernel(&user, f, x, y, (uint64_t)(stream), params, extra)
#define LAUNCH_GRAPH(graph, stream) \
	USE, NOTHING, launch_graph(&user, (uint64_t)(graph), (uint64_t)(stream))
#define COPY(to, from, bytes, stream)                                                \
	USE, NOTHING,                                                                \
		launch_transfer(&user, GMT_TRANSFER_SOURCE, (uint64_t)(from), bytes, \
				(uint64_t)(stream)),                                 \
		launch_transfer(&user, GMT_TRANSFER_TARGET, (uint64_t)(to), bytes,   \
				(uint64_t)(stream))
#define COPY_2D(c, stream) USE, NOTHING, launch_copy2d(&user, c, (uint64_t)(stream))
#define COPY_3D(c, stream) USE, NOTHING, launch_copy3d(&user, c, (uint64_t)(stream))
#define COPY_BATCH(to, from, bytes, count, stream) \
	USE, NOTHING, launch_copies(&user, to, from, bytes, count, (uint64_t)(stream))
#define SET(address, bytes, stream) \
	USE, NOTHING, launch_transfer(&user, GMT_TRANSFER_SET, address, bytes, (uint64_t)(stream))
#define PREFETCH(address, bytes, stream) \
	USE, NOTHING,                    \
		launch_transfer(&user, GMT_TRANSFER_PREFETCH, address, bytes, (uint64_t)(stream))
#define HANDLE(handle, is_kernel, code, name) \
	USE, NOTHING, kernel_saw_named(handle, is_kernel, code, name)
#define HANDLE_OF(function, kernel) USE, NOTHING, kernel_saw_function_of(function, kernel)
#define CAPTURES(what)		    USE, NOTHING, launch_capture_##what()
#define GRAPH(exec, graph)	    USE, NOTHING, graph_made(exec, graph)
#define GRAPH_KERNEL(exec, params)  USE, NOTHING, graph_kernel_changed(exec, params)

/* The locals of every hook that records an event: `call`, `event`, `real` and `rc`. */
#define CALL(function, is_driver, find)                                                      \
	static uint32_t name_id[2];                                                          \
	const struct caller caller = resolve_caller((uintptr_t)__builtin_return_address(0)); \
	struct call call = { &caller, #function, 0, is_driver, name_id };                    \
	struct gmt_event event = { .device = -1 };                                           \
	typeof(&function) real = find;                                                       \
	int rc = CUDA_NOT_INITIALIZED

#define RUNTIME_CALL(function) CALL(function, false, REAL_RUNTIME(&caller, function))
#define DRIVER_CALL(function)  CALL(function, true, REAL_DRIVER(function))

#define BODY_USE(start, name, proto, args, before, ...)                                           \
	int name proto                                                                            \
	{                                                                                         \
		static uint32_t name_id[2];                                                       \
		const struct user user                                                            \
			__attribute__((unused)) = { #name, name_id, __builtin_frame_address(0) }; \
		typeof(&name) real = REAL_DRIVER(name);                                           \
		int rc = real ? real args : CUDA_NOT_INITIALIZED;                                 \
                                                                                                  \
		if (!rc && launch_wanted())                                                       \
			__VA_ARGS__;                                                              \
		return rc;                                                                        \
	}
#define BODY_BY_HAND(start, name, proto, args, before, after)
#define BODY_ROW(start, name, proto, args, before, after) \
	int name proto                                    \
	{                                                 \
		start(name);                              \
                                                          \
		if (!real)                                \
			return rc;                        \
		call_begin(&call);                        \
		before;                                   \
		rc = real args;                           \
		after;                                    \
		call_end(&call, &event);                  \
		return rc;                                \
	}
#define BODY(start, name, proto, args, how, before, ...) \
	BODY_##how(start, name, proto, args, before, __VA_ARGS__)

/* ---- helpers with which rows compute sizes and devices ---- */

static inline int location_device(const struct cuda_location *l)
{
	return l->type == CUDA_LOCATION_DEVICE ? l->id : -1;
}

static inline size_t at_least_1(size_t n)
{
	return n ? n : 1;
}

/* Bytes from the first byte of the first row to the last byte of the last. */
static inline uint64_t span_2d(size_t pitch, size_t width, size_t height)
{
	return height ? pitch * (height - 1) + width : 0;
}

/* Each level of a mipmap has half the width, height and depth of the one before. */
static inline uint64_t extent_cells(struct cuda_extent e, unsigned levels)
{
	uint64_t cells = 0;

	for (unsigned i = 0; i < levels && i < 32; i++)
		cells += at_least_1(e.width >> i) * at_least_1(e.height >> i) *
			 at_least_1(e.depth >> i);
	return cells;
}

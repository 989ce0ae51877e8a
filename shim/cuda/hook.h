/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all CUDA hooks: the caller, the nesting depth, and the event that results. Application
 * threads, any lock held.
 */
#pragma once

#include "../../format/record.h"
#include "../capture.h"
#include "call.h"

#define DEVICE_CURRENT (-2)

/* The STRING of a constant text. `kept` caches it with its generation, because ids of a forked
 * child start anew. The definition is stored before the id can be seen. */
uint32_t call_string(uint32_t kept[2], const char *text, size_t length);

/* Call them before and after the real call. The event is filled in between; call_end records it. */
void call_begin(struct call *c);
void call_end(struct call *c, struct gmt_event *e); /* e = NULL or of kind 0: no event */

/* All CUDA calls that this thread makes inside that frame count as the framework allocator's; 0 =
 * no longer. An exception does not reset it. Returns the previous frame. */
uintptr_t call_for_framework(uintptr_t frame);

/* For an event that gets its place in the order before the real call: call_before holds it,
 * call_result stores it with the call's result. call_freeing and call_doing fill it in as well. */
void call_before(struct call *c, struct gmt_event *e);
void call_freeing(struct call *c, struct gmt_event *e, enum gmt_mem mem, uint64_t addr,
		  uint64_t stream);
void call_doing(struct call *c, struct gmt_event *e, enum gmt_kind kind, uint64_t addr,
		uint64_t size, uint64_t arg0);
void call_result(struct gmt_event *e, int rc);

/* Events for call_end: of an allocation's success or failure, of any other call's success. */
struct gmt_event call_allocated(int rc, enum gmt_mem mem, uint64_t addr, uint64_t size,
				uint64_t stream);
struct gmt_event call_loaded(int rc, const void *handle, const void *code);
struct gmt_event call_loaded_file(int rc, const void *handle, const char *path);
struct gmt_event call_did(int rc, enum gmt_kind kind, uint64_t addr, uint64_t size, uint64_t arg0,
			  uint64_t arg1, int device);

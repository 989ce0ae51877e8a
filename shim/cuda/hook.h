/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all CUDA hooks share: who calls, how deep, and the event that comes of it. Application
 * threads, any lock held.
 */
#pragma once

#include "../../format/record.h"
#include "../capture.h"
#include "call.h"

#define DEVICE_CURRENT (-2)

/* The STRING of a text that does not change, kept with the generation that it belongs to: ids of a
 * forked child start anew. Whoever sees an id has its definition behind it. */
uint32_t call_string(uint32_t kept[2], const char *text, size_t length);

/* Around the real call. An event is filled between the two, recorded by the end. */
void call_begin(struct call *c);
void call_end(struct call *c, struct gmt_event *e); /* e = NULL or of kind 0: no event */

/* Calls that this thread makes inside of that frame are those of the framework's allocator, whoever
 * makes them; 0 = no longer. An exception leaves it as it is. Returns what it was. */
uintptr_t call_for_framework(uintptr_t frame);

/* An event that has its place before the real call, and is stored by call_result, which is told
 * what came of the call. */
void call_before(struct call *c, struct gmt_event *e);
void call_freeing(struct call *c, struct gmt_event *e, enum gmt_mem mem, uint64_t addr,
		  uint64_t stream);
void call_doing(struct call *c, struct gmt_event *e, enum gmt_kind kind, uint64_t addr,
		uint64_t size, uint64_t arg0);
void call_result(struct gmt_event *e, int rc);

/* What call_end is given: of an allocation's success or failure, of anything else's success. */
struct gmt_event call_allocated(int rc, enum gmt_mem mem, uint64_t addr, uint64_t size,
				uint64_t stream);
struct gmt_event call_loaded(int rc, const void *handle, const void *code);
struct gmt_event call_loaded_file(int rc, const void *handle, const char *path);
struct gmt_event call_did(int rc, enum gmt_kind kind, uint64_t addr, uint64_t size, uint64_t arg0,
			  uint64_t arg1, int device);

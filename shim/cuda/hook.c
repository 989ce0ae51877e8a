/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of every CUDA hook: nesting, names, flags, the call of gmt_capture. CUDA is queried
 * while the hook counts as running, so that queries are not recorded. Application threads, any lock
 * held.
 */
#include "hook.h"
#include "../base/config.h"
#include "contexts.h"
#include "cuda_device.h"
#include "kernel_images.h"
#include "kernel_layouts.h"
#include "known.h"
#include "meminfo.h"
#include "../../format/record.h"
#include "../recording/notes.h"
#include "../rings/thread_room.h"

#include <string.h>

/*
 * A call inside a call of the other layer is CUDA's own, and the outer one is recorded. Inside a
 * call of its own layer it comes from a signal handler, or from a wrapper that makes the same call
 * again: then it has the same address, compared when that of the outer call is known.
 */
static __thread struct {
	bool driver, has_aside; /* the thread's room holds an event */
	uint64_t freeing;
} outer __attribute__((tls_model("initial-exec")));

/* `c` lies in the hook's frame, so all that runs inside the hook lies below it. */
void call_begin(struct call *c)
{
	c->depth = gmt_recording() ? gmt_enter_at((uintptr_t)c) : -1;
	if (c->depth > 0)
		gmt_saw_nested();
	if (c->depth == 0) {
		outer.driver = c->driver;
		outer.freeing = 0;
	}
}

static bool is_of_its_own(const struct call *c)
{
	return c->depth > 0 && c->depth < (int)GMT_DEPTH_OWN && c->driver == outer.driver;
}

uint32_t call_string(uint32_t kept[2], const char *text, size_t length)
{
	uint32_t generation = gmt_generation();
	uint32_t id = __atomic_load_n(&kept[0], __ATOMIC_ACQUIRE);

	if (OS_LIKELY(id && __atomic_load_n(&kept[1], __ATOMIC_ACQUIRE) == generation))
		return id;
	id = gmt_string(text, length);
	__atomic_store_n(&kept[0], id, __ATOMIC_RELEASE);
	__atomic_store_n(&kept[1], generation, __ATOMIC_RELEASE);
	return id;
}

static bool is_growth(const struct gmt_event *e)
{
	return e->kind == GMT_CODE_LOAD || e->kind == GMT_PHYS_CREATE ||
	       (e->kind == GMT_MEM_ALLOC && e->arg0 != GMT_MEM_HOST &&
		e->arg0 != GMT_MEM_REGISTERED);
}

static __thread uintptr_t framework_frame __attribute__((tls_model("initial-exec")));

uintptr_t call_for_framework(uintptr_t frame)
{
	uintptr_t before = framework_frame;

	framework_frame = frame;
	return before;
}

static void complete(const struct call *c, struct gmt_event *e)
{
	e->name = call_string(c->name_id, c->name, strlen(c->name));
	if (c->caller->framework || (uintptr_t)__builtin_frame_address(0) < framework_frame)
		e->flags |= GMT_FLAG_FRAMEWORK;
	if (e->device == DEVICE_CURRENT)
		e->device = device_current(c);
	if (e->kind == GMT_MEM_ALLOC)
		contexts_say();
	if (gmt_kind_fields(e->kind) & F_STREAM && e->arg0 == GMT_MEM_ASYNC &&
	    device_capturing(e->stream))
		e->flags |= GMT_FLAG_CAPTURING;
}

static void record_after(const struct call *c, struct gmt_event *e)
{
	bool nested = gmt_had_nested(), fails = e->kind == GMT_MEM_FAIL, ask, asked;

	complete(c, e);
	if (nested)
		e->flags |= GMT_FLAG_NESTED;
	ask = e->device >= 0 && !(e->flags & GMT_FLAG_CAPTURING);
	asked = ask && fails &&
		meminfo_sample(true); /* before the failure: the free memory that it found */
	gmt_capture(e);
	if (fails)
		notes_refused();
	if (e->device >= 0)
		device_describe(c, e->device);
	if (asked || (ask && is_growth(e) && meminfo_sample(false)))
		device_tell_contexts(c, e->device);
}

/* Keeps a nested call's event until the outer call ends; an earlier one is recorded now. */
static void put_aside(const struct call *c, const struct gmt_event *e)
{
	struct thread_room *room = thread_room();
	struct gmt_event kept = *e;

	complete(c, &kept);
	if (!room || outer.has_aside)
		gmt_capture(room ? &room->aside : &kept);
	outer.has_aside = room;
	if (room)
		room->aside = kept;
}

static void take_aside(const struct gmt_event *e)
{
	const struct thread_room *room = thread_room_used();
	struct gmt_event kept = room ? room->aside : (struct gmt_event){ 0 };

	outer.has_aside = false;
	if (kept.kind && (!e || !e->kind || e->addr != kept.addr))
		gmt_capture(&kept);
}

void call_end(struct call *c, struct gmt_event *e)
{
	if (gmt_config.uses && e && e->kind)
		known_learn(e);
	if (c->depth < 0)
		return;
	if (c->depth == 0 && e && e->kind)
		record_after(c, e);
	else if (e && e->kind && is_of_its_own(c))
		put_aside(c, e);
	if (c->depth == 0 && outer.has_aside)
		take_aside(e);
	gmt_leave();
}

void call_before(struct call *c, struct gmt_event *e)
{
	bool ours = c->depth == 0 || (is_of_its_own(c) && e->addr != outer.freeing);

	if (!e->kind || !ours) {
		e->kind = 0;
		return;
	}
	if (c->depth == 0)
		outer.freeing = e->addr;
	complete(c, e);
	gmt_hold(e);
	if (!e->seq)
		e->kind = 0; /* nothing is recorded any more */
}

void call_result(struct gmt_event *e, int rc)
{
	if (e->kind == GMT_CODE_UNLOAD) { /* after the call, when no thread uses the old handle */
		kernel_forget_all();
		image_unloaded((const void *)e->addr);
	}
	if (e->kind)
		gmt_settle(e, rc);
	e->kind = 0; /* call_end has no event to record */
}

void call_freeing(struct call *c, struct gmt_event *e, enum gmt_mem mem, uint64_t addr,
		  uint64_t stream)
{
	*e = (struct gmt_event){
		.kind = addr ? GMT_MEM_FREE : 0,
		.addr = addr,
		.arg0 = mem,
		.stream = stream,
		.device = -1,
	};
	call_before(c, e);
}

void call_doing(struct call *c, struct gmt_event *e, enum gmt_kind kind, uint64_t addr,
		uint64_t size, uint64_t arg0)
{
	*e = (struct gmt_event){
		.kind = kind,
		.addr = addr,
		.size = size,
		.arg0 = arg0,
		.device = gmt_kind_fields(kind) & F_DEVICE ? DEVICE_CURRENT : -1,
	};
	call_before(c, e);
}

struct gmt_event call_did(int rc, enum gmt_kind kind, uint64_t addr, uint64_t size, uint64_t arg0,
			  uint64_t arg1, int device)
{
	return (struct gmt_event){
		.kind = rc ? 0 : kind,
		.addr = addr,
		.size = size,
		.arg0 = arg0,
		.arg1 = arg1,
		.device = device,
	};
}

struct gmt_event call_loaded(int rc, const void *handle, const void *code)
{
	if (!rc && gmt_config.uses)
		image_loaded(handle, code);
	return call_did(rc, GMT_CODE_LOAD, (uint64_t)handle, 0, 0, 0, DEVICE_CURRENT);
}

struct gmt_event call_loaded_file(int rc, const void *handle, const char *path)
{
	if (!rc && gmt_config.uses)
		image_loaded_file(handle, path);
	return call_loaded(rc, handle, NULL);
}

struct gmt_event call_allocated(int rc, enum gmt_mem mem, uint64_t addr, uint64_t size,
				uint64_t stream)
{
	bool host = mem == GMT_MEM_HOST || mem == GMT_MEM_REGISTERED;
	struct gmt_event e = {
		.kind = rc ? GMT_MEM_FAIL : GMT_MEM_ALLOC,
		.addr = addr,
		.size = size,
		.arg0 = mem,
		.arg1 = rc ? (uint64_t)rc : 0,
		.stream = stream,
		.device = host ? -1 : DEVICE_CURRENT,
	};

	if (!rc && !addr)
		e.kind = 0; /* 0 bytes */
	return e;
}

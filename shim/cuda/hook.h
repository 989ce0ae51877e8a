/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all CUDA hooks share: who calls, how deep, and the event that comes of it. Application
 * threads, any lock held.
 */
#ifndef GMT_HOOK_H
#define GMT_HOOK_H

#include "../capture.h"
#include "cuda_abi.h"
#include "resolve.h"

#define HOOK_API __attribute__((visibility("default")))

#define RUNTIME(name, proto, args, effect)			       HOOK_API int name proto;
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) HOOK_API int symbol proto;
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

#define DEVICE_CURRENT (-2)

/* Real functions with their types, NULL if there are none. */
#define REAL_RUNTIME(caller, name) ((typeof(&(name)))resolve_runtime(caller, RUNTIME_##name))
#define REAL_DRIVER(symbol)	   ((typeof(&(symbol)))resolve_driver(DRIVER_##symbol))
#define MAYBE_DRIVER(symbol)	   ((typeof(&(symbol)))resolve_driver_maybe(DRIVER_##symbol))

/* Around the real call. An event is filled between the two, recorded by the end. */
void call_begin(struct call *c);
void call_end(struct call *c, struct gmt_event *e); /* e = NULL or of kind 0: no event */

/* An event before the real call. */
void call_before(struct call *c, struct gmt_event *e);
void call_freeing(struct call *c, enum gmt_mem mem, uint64_t addr, uint64_t stream);
void call_doing(struct call *c, enum gmt_kind kind, uint64_t addr, uint64_t size, uint64_t arg0);

/* What call_end is given: of an allocation's success or failure, of anything else's success. */
struct gmt_event call_allocated(int rc, enum gmt_mem mem, uint64_t addr, uint64_t size,
				uint64_t stream);
struct gmt_event call_did(int rc, enum gmt_kind kind, uint64_t addr, uint64_t size, uint64_t arg0,
			  uint64_t arg1, int device);

uint64_t driver_range_size(uint64_t address); /* of the allocation around it; 0 = not known */

/* ---- cuda_device.c ---- */
int device_current(const struct call *c); /* -1 = not known */
int device_of_driver(void);
bool device_capturing(uint64_t stream);
void device_describe(const struct call *c, int device); /* its facts, once */

/* ---- meminfo.c ---- */
/* Free and total bytes of the device; not more often than every 10 ms unless `now`. */
void meminfo_sample(bool now);

#endif

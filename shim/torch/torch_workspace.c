/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requested size of a cuDNN plan's workspace. PyTorch allocates it by a virtual call, which no
 * hook sees. But it asks the plan how much it needs, puts the address into the pack of the plan's
 * arguments, and executes the plan. These three calls are observed here: cuDNN is never asked
 * anything that the program did not ask. Application threads, any lock held.
 */
#include "../base/intern.h"
#include "../cuda/call.h"
#include "torch.h"

/* From cudnnBackendAttributeName_t and cudnnBackendAttributeType_t, the same since cuDNN 8. */
enum {
	OF_PLANS = 400, /* from here to OF_PLANS_LAST */
	PLAN_WORKSPACE = 402,
	OF_PLANS_LAST = 499,
	PACK_WORKSPACE = 1003,
	TYPE_INT64 = 3,
	TYPE_POINTER = 6,
	NOT_INITIALIZED = 1, /* cudnnStatus_t in cuDNN 8; later an error without a name */
};

#define PLANS  8192u /* a power of two */
#define WINDOW 8u
#define BUSY   1u

/* The need of a plan. If there are more plans than places, a later one replaces an earlier one,
 * whose need is then not known. */
static struct plan {
	uint64_t descriptor; /* 0 = free, BUSY = being written */
	uint64_t bytes;
} plans[PLANS];

/* The thread's latest pack. */
static __thread struct {
	const void *descriptor;
	uint64_t workspace;
} packed __attribute__((tls_model("initial-exec")));

/* A place near that of `descriptor` which holds `what`. */
static struct plan *find_plan(uint64_t descriptor, uint64_t what)
{
	uint64_t at = intern_mix(descriptor);

	for (uint32_t i = 0; i < WINDOW; i++) {
		struct plan *p = &plans[(at + i) & (PLANS - 1)];

		if (__atomic_load_n(&p->descriptor, __ATOMIC_SEQ_CST) == what)
			return p;
	}
	return NULL;
}

static bool change(struct plan *p, uint64_t from, uint64_t to)
{
	return from != BUSY && __atomic_compare_exchange_n(&p->descriptor, &from, to, false,
							   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* A descriptor that becomes a plan is new: an earlier one at its address is forgotten. */
static void forget(uint64_t descriptor)
{
	struct plan *p = find_plan(descriptor, descriptor);

	if (p)
		change(p, descriptor, 0);
}

static void keep_workspace(uint64_t descriptor, uint64_t bytes)
{
	struct plan *p = find_plan(descriptor, descriptor);

	p = p ? p : find_plan(descriptor, 0);
	p = p ? p : &plans[(intern_mix(descriptor) + (bytes >> 8) % WINDOW) & (PLANS - 1)];
	if (!change(p, __atomic_load_n(&p->descriptor, __ATOMIC_SEQ_CST), BUSY))
		return;
	__atomic_store_n(&p->bytes, bytes, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->descriptor, descriptor, __ATOMIC_SEQ_CST);
}

/* Bytes that the plan needs; 0 = none, or not known. */
static uint64_t needed(uint64_t descriptor)
{
	struct plan *p = find_plan(descriptor, descriptor);
	uint64_t bytes = p ? __atomic_load_n(&p->bytes, __ATOMIC_SEQ_CST) : 0;

	return p && __atomic_load_n(&p->descriptor, __ATOMIC_SEQ_CST) == descriptor ? bytes : 0;
}

static void was_set(const void *descriptor, int name, int type, int64_t count, const void *values)
{
	if (name >= OF_PLANS && name <= OF_PLANS_LAST) {
		forget((uintptr_t)descriptor);
	} else if (name == PACK_WORKSPACE && type == TYPE_POINTER && count == 1) {
		packed.descriptor = descriptor;
		packed.workspace = *(const uint64_t *)values;
	}
}

static void was_asked(const void *descriptor, int name, int type, int64_t room, const void *values)
{
	if (name == PLAN_WORKSPACE && type == TYPE_INT64 && room >= 1 && values &&
	    *(const int64_t *)values > 0)
		keep_workspace((uintptr_t)descriptor, *(const uint64_t *)values);
}

/* A search for the fastest plan executes several with one pack. */
static void executes(const void *plan, const void *pack)
{
	if (pack == packed.descriptor && torch_tags())
		torch_size_needed(packed.workspace, needed((uintptr_t)plan));
}

/* The beginning of each hook: `caller` and `real`. */
#define BEGIN(function)                                                                      \
	const struct caller caller = resolve_caller((uintptr_t)__builtin_return_address(0)); \
	typeof(&function) real = REAL_CUDNN(&caller, function);                              \
	if (!real)                                                                           \
	return NOT_INITIALIZED

int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count,
			     const void *values)
{
	int rc;
	BEGIN(cudnnBackendSetAttribute);

	rc = real(descriptor, name, type, count, values);
	if (!rc && !caller.cudnn)
		was_set(descriptor, name, type, count, values);
	return rc;
}

int cudnnBackendGetAttribute(const void *descriptor, int name, int type, int64_t room,
			     int64_t *count, void *values)
{
	int rc;
	BEGIN(cudnnBackendGetAttribute);

	rc = real(descriptor, name, type, room, count, values);
	if (!rc && !caller.cudnn)
		was_asked(descriptor, name, type, room, values);
	return rc;
}

int cudnnBackendExecute(void *handle, const void *plan, const void *pack)
{
	BEGIN(cudnnBackendExecute);

	if (!caller.cudnn)
		executes(plan, pack);
	return real(handle, plan, pack);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caching allocator's own reports: every block handed out and freed, and every failed request.
 * Called with the lock of the allocator's device held: never the GIL, the loader's lock, or a wait.
 * The framework's profiler, for which the reports are, still gets them.
 */
#include "../../format/record.h"
#include "../cuda/hook.h"
#include "../cuda/meminfo.h"
#include "../cuda/reuse.h"
#include "../recording/notes.h"
#include "torch.h"

struct device {
	int8_t type, index;
};

/* c10::cuda::CUDAStream as it is returned in two registers. */
struct stream {
	uint64_t device, id;
};

enum { CUDA = 1 };

uint64_t torch_stream(int8_t device, int8_t *is_on)
{
	static void *cache;
	struct stream (*get)(int8_t) = (struct stream(*)(int8_t))torch_real(
		&cache, "_ZN3c104cuda20getCurrentCUDAStreamEa");
	struct stream s = { 0 };

	if (get)
		s = get(device);
	if (is_on)
		*is_on = (int8_t)(s.device >> 8); /* struct device: the low byte is its type */
	return s.id;
}

/* The stream is the thread's current one. A free does not query it, because it can come when the
 * thread-local variables are gone. */
static void memory(void *ptr, int64_t bytes, uint64_t allocated, uint64_t reserved, struct device d,
		   const void *hook)
{
	struct gmt_event e = {
		.kind = bytes < 0 ? GMT_BLOCK_FREE : GMT_BLOCK_ALLOC,
		.addr = (uint64_t)(uintptr_t)ptr,
		.size = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes,
		.arg0 = allocated,
		.arg1 = reserved,
		.device = d.index,
	};

	if (d.type != CUDA || !gmt_recording())
		return;
	if (bytes > 0) {
		e.stream = torch_stream(d.index, NULL);
		torch_size_block(&e);
		reuse_alloc();
	}
	torch_node_now(&e);
	gmt_capture_from(&e, hook);
	if (bytes < 0)
		reuse_free(&e, hook);
}

static void refusal(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device d)
{
	struct gmt_event e = {
		.kind = GMT_BLOCK_OOM,
		.size = (uint64_t)bytes,
		.arg0 = allocated,
		.arg1 = reserved,
		.device = d.index,
	};

	if (d.type != CUDA || !gmt_recording())
		return;
	notes_refused();
	meminfo_sample(true); /* a limit of the program's own fails without a CUDA call */
	torch_size_refused();
	e.stream = torch_stream(d.index, NULL);
	torch_node_now(&e);
	gmt_capture(&e);
}

typedef void memory_fn(void *, int64_t, uint64_t, uint64_t, struct device);
typedef void refusal_fn(int64_t, uint64_t, uint64_t, struct device);

/* The totals became unsigned in 2.0, and with that the functions' names changed. */
#define MEMORY_REPORT(symbol)                                                           \
	void symbol(void *, int64_t, uint64_t, uint64_t, struct device);                \
	void symbol(void *ptr, int64_t bytes, uint64_t allocated, uint64_t reserved,    \
		    struct device d)                                                    \
	{                                                                               \
		static void *cache;                                                     \
		memory_fn *real = (memory_fn *)torch_real(&cache, #symbol);             \
                                                                                        \
		memory(ptr, bytes, allocated, reserved, d, __builtin_frame_address(0)); \
		if (real)                                                               \
			real(ptr, bytes, allocated, reserved, d);                       \
	}

#define REFUSAL_REPORT(symbol)                                                             \
	void symbol(int64_t, uint64_t, uint64_t, struct device);                           \
	void symbol(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device d) \
	{                                                                                  \
		static void *cache;                                                        \
		refusal_fn *real = (refusal_fn *)torch_real(&cache, #symbol);              \
                                                                                           \
		refusal(bytes, allocated, reserved, d);                                    \
		if (real)                                                                  \
			real(bytes, allocated, reserved, d);                               \
	}

#pragma GCC visibility push(default)
MEMORY_REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
MEMORY_REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
REFUSAL_REPORT(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)
REFUSAL_REPORT(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE)
#pragma GCC visibility pop

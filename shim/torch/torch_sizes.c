/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size that a tensor requested, if its block is larger: the allocator reports blocks, and a
 * cached one that is used whole can be up to 1 MiB larger. Hooks the functions that make a tensor
 * or resize its storage. Application threads; the framework's functions run as ever.
 */
#include "result.h"
#include "../../format/record.h"
#include "torch.h"

#define EMPTY \
	_ZN2at6detail13empty_genericEN3c108ArrayRefIlEEPNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeESt8optionalINS1_12MemoryFormatEE
#define EMPTY_OLD \
	_ZN2at6detail13empty_genericEN3c108ArrayRefIlEEPNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeENS1_8optionalINS1_12MemoryFormatEEE
#define STRIDED \
	_ZN2at6detail21empty_strided_genericEN3c108ArrayRefIlEES3_PNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeE
#define RESIZE _ZN2at6native17resize_bytes_cudaEPN3c1011StorageImplEm

#define ROUND 512u	   /* every request is rounded to it */
#define SMALL (1ull << 20) /* up to here a block is always cut from a larger one */

/* The tensor that is being made. An exception does not reset `frame`: calls outside do not
 * count. */
static __thread struct {
	uintptr_t frame;
	uint64_t addr, size; /* of its block; 0 = none */
} asking __attribute__((tls_model("initial-exec")));

/* The thread's latest block, if no tensor requested it. */
static __thread struct {
	uint64_t addr, size, asked;
	int32_t device;
	bool refused; /* a request failed before the block, which might be another in its place */
} plain __attribute__((tls_model("initial-exec")));

void torch_size_block(struct gmt_event *e)
{
	plain.addr = 0;
	if ((uintptr_t)__builtin_frame_address(0) < asking.frame) {
		asking.addr = e->addr;
		asking.size = e->size;
	} else if (e->size > SMALL) {
		e->flags |= GMT_FLAG_NO_TENSOR;
		plain.addr = plain.refused ? 0 : e->addr;
		plain.size = e->size;
		plain.asked = 0;
		plain.device = e->device;
	}
	plain.refused = false;
}

void torch_size_refused(void)
{
	plain.refused = true;
}

void torch_size_needed(uint64_t addr, uint64_t bytes)
{
	struct torch_memory m = { addr, bytes, plain.device };

	if (!addr || addr != plain.addr || bytes <= plain.asked || bytes > plain.size)
		return;
	plain.asked = bytes;
	torch_tag(GMT_TAG_ASKED, &m, NULL);
}

static void asked(const struct torch_memory *m)
{
	if (m->addr == asking.addr && m->size + ROUND <= asking.size)
		torch_tag(GMT_TAG_ASKED, m, NULL);
}

/* A macro, because the frame is the hook's own. */
#define BEGIN()          \
	asking.addr = 0; \
	asking.frame = (uintptr_t)__builtin_frame_address(0)

static void *made(void *address)
{
	struct torch_memory m;

	asking.frame = 0;
	if (asking.addr && torch_tags() && torch_memory_of(*(const void *const *)address, &m))
		asked(&m);
	return address;
}

/* ArrayRef sizes, Allocator *, DispatchKeySet, ScalarType, std::optional<MemoryFormat> */
#define EMPTY_HOOK(function, symbol)                                                             \
	static __attribute__((used)) void *function(void *address, uint64_t sizes, uint64_t n,   \
						    uint64_t allocator, uint64_t keys,           \
						    uint64_t type, uint64_t format)              \
	{                                                                                        \
		static void *cache;                                                              \
		result_fn *real = (result_fn *)torch_real(&cache, NAME(symbol));                 \
                                                                                                 \
		BEGIN();                                                                         \
		return made(                                                                     \
			result_call(real, address, sizes, n, allocator, keys, type, format, 0)); \
	}                                                                                        \
	RESULT_FUNCTION(symbol, function)

EMPTY_HOOK(empty, EMPTY);
EMPTY_HOOK(empty_old, EMPTY_OLD);

/* ArrayRef sizes, ArrayRef strides, Allocator *, DispatchKeySet, ScalarType */
static __attribute__((used)) void *strided(void *address, uint64_t sizes, uint64_t n,
					   uint64_t strides, uint64_t strides_n, uint64_t allocator,
					   uint64_t keys, uint64_t type)
{
	static void *cache;
	result_fn *real = (result_fn *)torch_real(&cache, NAME(STRIDED));

	BEGIN();
	return made(
		result_call(real, address, sizes, n, strides, strides_n, allocator, keys, type));
}
RESULT_FUNCTION(STRIDED, strided);

__attribute__((visibility("default"))) void RESIZE(void *storage, size_t bytes);

void RESIZE(void *storage, size_t bytes)
{
	static void *cache;
	void (*real)(void *, size_t) = (void (*)(void *, size_t))torch_real(&cache, NAME(RESIZE));
	struct torch_memory m;

	BEGIN();
	real(storage, bytes);
	asking.frame = 0;
	if (asking.addr && torch_tags() && torch_storage_memory(storage, &m))
		asked(&m);
}

bool torch_sizes(void)
{
	static void *cache, *cache_old;

	return torch_real(&cache, NAME(EMPTY)) || torch_real(&cache_old, NAME(EMPTY_OLD));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated CUDA device: declarations that runtime, driver and math libraries share.
 *
 * libsimgpu.so is preloaded and exports the public names of the CUDA libraries. Memory is reserved
 * address space with a capacity; kernels do nothing. Every function here may be called from any
 * thread. Nothing here aborts or exits.
 *
 * Results are plain ints whose numbers are both cudaError_t and CUresult: 0 success, 1 invalid
 * value, 2 out of memory, 3 not initialized, 400 invalid handle, 801 not supported.
 *
 * Function tables: each library has a committed table (api_NAME.def here, lib_NAME.def for the math
 * libraries) of exported names, and exports.def includes them all. The rows of simgpu_rows.def are
 * made from the libraries' headers. A driver's row also has the CUDA version from which
 * cuGetProcAddress finds that form. Rows:
 *	STUB(name)		exported, does nothing, returns 0 (stubs.c makes it)
 *	WORK(name, words)	exported, returns 0; takes the time of a kernel that uses the memory
 *				at its `words` arguments, arguments of real type not counted
 *	DENY(name, code)	exported, does nothing, returns code (an error of that library)
 *	IMPL(name)		written by hand in a .c file, marked SIM_API
 *	TWIN(name, other)	exported second name of another function
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_API __attribute__((visibility("default")))
#define UNUSED	__attribute__((unused))

#define SIM_MAX_DEVICES 16
#define SIM_PAGE	((size_t)2 << 20) /* physical granularity */
#define SIM_SMALL	4096		  /* bytes that count as small */

static inline size_t sim_whole_pages(size_t bytes)
{
	return (bytes + SIM_PAGE - 1) & ~(SIM_PAGE - 1);
}

enum sim_result {
	SIM_OK = 0,
	SIM_INVALID = 1,
	SIM_NOMEM = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_NO_DEVICE = 100,
	SIM_BAD_DEVICE = 101,
	SIM_BAD_HANDLE = 400,
	SIM_NOT_FOUND = 500,
	SIM_NOT_READY = 600,
	SIM_UNSUPPORTED = 801,
};

/* How fast a card is, by its data sheet: GB/s and TFLOP/s. */
struct sim_speed {
	double memory;
	double f64, f32, tf32, f16, f8; /* 0: not in hardware */
	double host, card;		/* links, one way */
};

/* A card as the table cards.def describes it. */
struct sim_card {
	const char *name;  /* as in SIMGPU_CARD */
	const char *model; /* as the real card calls itself */
	int major, minor;  /* compute capability */
	int code_version;  /* cudaFuncAttributes.ptxVersion and binaryVersion: 80, 86, 90... */
	int sms, threads_per_sm; /* multiprocessors, resident threads on each */
	int blocks_per_sm;
	size_t shared_per_sm, shared_optin; /* bytes; optin: most for one block */
	size_t l2;
	size_t memory;	/* as cudaMemGetInfo's total */
	size_t context; /* used by a context before the first allocation */
	size_t context_least, context_most;
	bool context_whole; /* includes the memory of the first kernel */
	int clock_khz, memory_clock_khz, bus_width;
	struct sim_speed speed;
	size_t taken; /* bytes of assumed other programs (SIMGPU_TAKEN) */
	bool small;   /* smaller than any real card: libraries take little, streams nothing */
};

/* ---- device.c, identity.c, cuda_version.c: the card, its devices and CUDA's version ---- */
const struct sim_card *sim_card(void); /* never NULL; the default card if the name is unknown */
int sim_device_count(void);
int sim_device(void);		 /* the calling thread's current device, from 0 */
int sim_set_device(int ordinal); /* a result */
int sim_cuda_major(void);	 /* of the program: 12 or 13, which differ in their ABI */
bool sim_cuda_is(int major);	 /* the program opens that runtime: is it the simulated one? */
int sim_cuda_version(void);	 /* 12040, 13000, ... */

/* ---- memory.c: device memory. All on the current device unless stated. ---- */
int sim_alloc(void **ptr, size_t bytes); /* 512-byte aligned, as on a real device; a result */
int sim_free(void *ptr);		 /* NULL is fine */
void sim_mem_info(int device, size_t *free_bytes, size_t *total);
bool sim_is_device_ptr(const void *ptr);
int sim_ptr_device(const void *ptr); /* ordinal of the owning device, -1 for host memory */

/* Host or device addresses. Device bytes that are not kept read as zero (contents.c). */
int sim_copy(void *dst, const void *src, size_t bytes);
int sim_fill(void *dst, int byte, size_t bytes);
int sim_fill_pattern(void *dst, uint32_t value, unsigned int width, size_t bytes); /* 1, 2 or 4 */
/* An uncomputed kernel got this address: the contents there become unknown and read as zero. */
void sim_forget(const void *ptr);

/* ---- handles: zeroed memory with a kind, so that a wrong handle is noticed ---- */
void *sim_handle(uint32_t kind, size_t bytes);	     /* NULL: out of memory */
void *sim_handle_check(void *handle, uint32_t kind); /* the handle, or NULL if it is not one */
void sim_handle_free(void *handle);		     /* NULL is fine */
#define SIM_KIND(a, b, c, d) ((uint32_t)(a) | (b) << 8 | (c) << 16 | (uint32_t)(d) << 24)

/* ---- errors: the runtime's last error of this thread ---- */
int sim_error(int result); /* remembers it unless it is 0; returns it */

/* ---- streams ---- */
bool sim_capturing(const void *stream); /* this stream is recording a graph */

/* ---- stubs.c ---- */
int sim_stub(int row, int result); /* counts the call; SIMGPU_STUBS=1 lists them at exit */

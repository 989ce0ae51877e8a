/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated CUDA device, seen from inside: what runtime, driver and the math libraries share.
 *
 * libsimgpu.so is preloaded and exports the public names of the CUDA libraries. Memory is reserved
 * address space with a capacity; kernels do nothing. Every function here may be called from any
 * thread. Nothing here aborts or exits.
 *
 * Results are plain ints whose numbers are both cudaError_t and CUresult: 0 success, 1 invalid
 * value, 2 out of memory, 3 not initialized, 400 invalid handle, 801 not supported.
 *
 * Function tables: each library has a committed table (api_NAME.def here, lib_NAME.def for the math
 * libraries) of all its exported names, all listed in exports.def (where the header of a library
 *says the rest, its rows are made when the device is built):
 *	STUB(name)		exported, does nothing, returns 0 (stubs.c makes it)
 *	WORK(name, words)	exported, returns 0; takes the time of a kernel that uses the memory
 *at its arguments, whose number is `words` without those of real type DENY(name, code)	exported,
 *does nothing, returns code (an error of that library) IMPL(name)		written by hand in
 *a .c file, marked SIM_API TWIN(name, other)	exported second name of another function A driver's
 *row also has the CUDA version from which cuGetProcAddress finds that form.
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
	const char *name;  /* of SIMGPU_CARD */
	const char *model; /* as the real card calls itself */
	int major, minor;  /* compute capability */
	int code_version;  /* cudaFuncAttributes.ptxVersion and binaryVersion: 80, 86, 90... */
	int sms, threads_per_sm; /* multiprocessors, resident threads on each */
	int blocks_per_sm;
	size_t shared_per_sm, shared_optin; /* bytes; optin = most one block may ask for */
	size_t l2;
	size_t memory;	/* as cudaMemGetInfo's total */
	size_t context; /* used by a context before the first allocation */
	size_t context_least, context_most;
	bool context_whole; /* what the first kernel takes is in it */
	int clock_khz, memory_clock_khz, bus_width;
	struct sim_speed speed;
	size_t taken; /* of memory, by programs that are not there (SIMGPU_TAKEN) */
	bool small;   /* than any real one: libraries and streams take little */
};

/* ---- device.c, identity.c, cuda_version.c: who we are ---- */
const struct sim_card *sim_card(void); /* never NULL; the default card where the name is unknown */
int sim_device_count(void);
int sim_device(void);		 /* the calling thread's current device, from 0 */
int sim_set_device(int ordinal); /* a result */
int sim_cuda_major(void);	 /* 12 or 13: of the program that runs (its ABI shapes differ) */
bool sim_cuda_is(int major); /* a program opens that runtime: is it the one that is simulated? */
int sim_cuda_version(void);  /* 12040, 13000, ... */

/* ---- memory.c: device memory. All on the current device unless said. ---- */
int sim_alloc(void **ptr, size_t bytes); /* 256-byte aligned (512 as the real one); a result */
int sim_free(void *ptr);		 /* NULL is fine */
void sim_mem_info(int device, size_t *free_bytes, size_t *total);
bool sim_is_device_ptr(const void *ptr);
int sim_ptr_device(const void *ptr); /* ordinal of the owning device, -1 for host memory */

/* Any mixture of host and device addresses. What is not kept reads as zero (contents.c). */
int sim_copy(void *dst, const void *src, size_t bytes);
int sim_fill(void *dst, int byte, size_t bytes);
int sim_fill_pattern(void *dst, uint32_t value, unsigned int width, size_t bytes); /* 1, 2 or 4 */
/* A kernel was given this address: what lies there reads as zero from now. */
void sim_forget(const void *ptr);

/* ---- handles: zeroed memory with a kind, so that a wrong handle is noticed ---- */
void *sim_handle(uint32_t kind, size_t bytes); /* bytes >= what the caller stores; NULL if none */
void *sim_handle_check(void *handle, uint32_t kind); /* the handle, or NULL if it is not one */
void sim_handle_free(void *handle);		     /* NULL is fine */
#define SIM_KIND(a, b, c, d) ((uint32_t)(a) | (b) << 8 | (c) << 16 | (uint32_t)(d) << 24)

/* ---- errors: the runtime's last error of this thread ---- */
int sim_error(int result); /* remembers it where it is not 0, and returns it */

/* ---- streams ---- */
bool sim_capturing(const void *stream); /* this stream is recording a graph */

/* ---- stubs.c ---- */
int sim_stub(int row, int result); /* counts the call; SIMGPU_STUBS=1 lists them at exit */

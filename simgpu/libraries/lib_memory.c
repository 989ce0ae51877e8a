/* SPDX-License-Identifier: Apache-2.0
 *
 * The libraries' own device memory, and their common queries about the card. Any thread.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include "lib.h"

/* The driver's functions, and CUmemAllocationProp and CUmemAccessDesc as its ABI has them. */
static struct {
	int (*alloc)(uintptr_t *, size_t);
	int (*free)(uintptr_t);
	int (*reserve)(uintptr_t *, size_t, size_t, uintptr_t, unsigned long long);
	int (*unreserve)(uintptr_t, size_t);
	int (*create)(unsigned long long *, size_t, const void *, unsigned long long);
	int (*release)(unsigned long long);
	int (*map)(uintptr_t, size_t, size_t, unsigned long long, unsigned long long);
	int (*unmap)(uintptr_t, size_t);
	int (*access)(uintptr_t, size_t, const void *, size_t);
	int (*retain)(unsigned long long *, void *);
} driver;
static bool have_driver;

struct location {
	int type, id;
};

struct allocation {
	int type, handle_types;
	struct location where;
	void *attributes;
	unsigned char flags[8];
};

struct access {
	struct location where;
	int rights;
};

#define DEVICE_MEMORY 1
#define READ_WRITE    3

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Looked up by name, as the libraries find the driver, not called directly within this library
 * (lookup.c). */
static void find_driver(void)
{
	static const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{ "cuMemAlloc_v2", &driver.alloc },
		{ "cuMemFree_v2", &driver.free },
		{ "cuMemAddressReserve", &driver.reserve },
		{ "cuMemAddressFree", &driver.unreserve },
		{ "cuMemCreate", &driver.create },
		{ "cuMemRelease", &driver.release },
		{ "cuMemMap", &driver.map },
		{ "cuMemUnmap", &driver.unmap },
		{ "cuMemSetAccess", &driver.access },
		{ "cuMemRetainAllocationHandle", &driver.retain },
	};
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY), *function;
	void *(*lookup)(void *, const char *) = dlsym;

	have_driver = handle != NULL;
	function = handle ? dlsym(handle, "simgpu_lookup") : NULL;
	if (function)
		memcpy(&lookup, &function, sizeof(lookup));
	for (size_t i = 0; handle && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		function = lookup(handle, wanted[i].name);
		memcpy(wanted[i].slot, &function, sizeof(function));
		have_driver = have_driver && function;
	}
}

void *lib_alloc(size_t bytes)
{
	uintptr_t addr = 0;
	void *ptr = NULL;

	pthread_once(&once, find_driver);
	if (have_driver)
		return driver.alloc(&addr, bytes) ? NULL : (void *)addr;
	return sim_alloc(&ptr, bytes) ? NULL : ptr;
}

void lib_free(void *ptr)
{
	if (!ptr)
		return;
	if (have_driver)
		driver.free((uintptr_t)ptr);
	else
		sim_free(ptr);
}

void *lib_map(size_t bytes)
{
	struct location here = { DEVICE_MEMORY, sim_device() };
	struct allocation what = { 1, 1, here, NULL, { 0 } };
	struct access who = { here, READ_WRITE };
	unsigned long long handle = 0;
	uintptr_t addr = 0;

	bytes = sim_whole_pages(bytes);
	pthread_once(&once, find_driver);
	if (!have_driver)
		return lib_alloc(bytes);
	if (driver.create(&handle, bytes, &what, 0))
		return NULL;
	if (driver.reserve(&addr, bytes, 0, 0, 0)) {
		driver.release(handle);
		return NULL;
	}
	driver.map(addr, bytes, 0, handle, 0);
	driver.access(addr, bytes, &who, 1);
	return (void *)addr;
}

void lib_unmap(void *ptr, size_t bytes)
{
	unsigned long long handle = 0;

	if (!ptr)
		return;
	if (!have_driver) {
		lib_free(ptr);
		return;
	}
	bytes = sim_whole_pages(bytes);
	if (!driver.retain(&handle, ptr))
		driver.release(handle);
	driver.unmap((uintptr_t)ptr, bytes);
	if (handle)
		driver.release(handle);
	driver.unreserve((uintptr_t)ptr, bytes);
}

int lib_create(void **out, uint32_t kind, size_t bytes, int no_place, int no_room)
{
	if (!out)
		return no_place;
	*out = sim_handle(kind, bytes);
	return *out ? 0 : no_room;
}

int lib_capability(void)
{
	return sim_card()->major * 10 + sim_card()->minor;
}

/* By the numbers of cudaDataType_t. */
size_t lib_type_bytes(int cuda_type)
{
	static const unsigned char bytes[] = {
		[0] = 4,  [1] = 8,  [2] = 2,  [3] = 1,	[4] = 8,   [5] = 16, [6] = 4,
		[7] = 2,  [8] = 1,  [9] = 2,  [10] = 4, [11] = 8,  [12] = 4, [13] = 8,
		[14] = 2, [15] = 4, [16] = 1, [17] = 2, [18] = 1,  [19] = 2, [20] = 2,
		[21] = 4, [22] = 2, [23] = 4, [24] = 8, [25] = 16, [26] = 8, [27] = 16,
		[28] = 1, [29] = 1, [30] = 1, [31] = 1, [32] = 1,  [33] = 1,
	};

	if (cuda_type < 0 || cuda_type >= (int)sizeof(bytes) || !bytes[cuda_type])
		return 4;
	return bytes[cuda_type];
}

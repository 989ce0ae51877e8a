/* SPDX-License-Identifier: Apache-2.0
 *
 * cuGetProcAddress and its relatives. They find the exported symbol in the table api_driver.def by
 * a function's base name, the CUDA version whose ABI the caller wants and its choice of default
 * stream. The runtime's versions call the driver's through dlsym, as in the real runtime, so that a
 * tool between them sees the call.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "../core/notices.h"
#include "cudart.h"

enum { FOUND = 0, NO_SYMBOL = 1, NO_VERSION = 2 };

#define IMPL(name, version)	   extern int name##_entry(void) __asm__(#name);
#define STUB(name, version)	   IMPL(name, version)
#define DENY(name, code, version)  IMPL(name, version)
#define TWIN(name, other, version) IMPL(name, version)
#include "api_driver.def"
#undef IMPL

static const struct entry {
	const char *name;
	int version;
	void *address;
} entries[] = {
#define IMPL(name, version) { #name, version, (void *)name##_entry },
#include "api_driver.def"
};

#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

/* Whether a symbol is a form of that function: "_v2" and the like may follow, then "_ptsz" or
 * "_ptds", the form for the per-thread default stream. */
static bool is_form_of(const char *symbol, const char *name, bool *per_thread)
{
	size_t n = strlen(name);

	if (strncmp(symbol, name, n) != 0)
		return false;
	symbol += n;
	if (!strncmp(symbol, "_v", 2))
		symbol += 2 + strspn(symbol + 2, "0123456789");
	*per_thread = !strcmp(symbol, "_ptsz") || !strcmp(symbol, "_ptds");
	return !*symbol || *per_thread;
}

/* The newest ABI that is not newer than requested; the per-thread form if wanted and there. */
static void *lookup(const char *name, int version, bool per_thread, int *status)
{
	const struct entry *best = NULL;
	bool known = false, best_thread = false, thread;

	for (const struct entry *e = entries; e < entries + ENTRIES; e++) {
		if (!is_form_of(e->name, name, &thread))
			continue;
		known = true;
		if (e->version > version || (thread && !per_thread))
			continue;
		if (best && (thread < best_thread ||
			     (thread == best_thread && e->version <= best->version)))
			continue;
		best = e;
		best_thread = thread;
	}
	*status = best ? FOUND : known ? NO_VERSION : NO_SYMBOL;
	return best ? best->address : NULL;
}

SIM_API CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version, cuuint64_t flags,
				     CUdriverProcAddressQueryResult *status)
{
	int found;

	if (!symbol || !fn)
		return CUDA_ERROR_INVALID_VALUE;
	*fn = lookup(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
		     &found);
	if (status)
		*status = (CUdriverProcAddressQueryResult)found;
	return *fn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SIM_API CUresult cuGetProcAddress(const char *symbol, void **fn, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}

/* The table that NVIDIA's own runtime asks for first, whether linked into a program or loaded. */
static const unsigned char runtimes[16] = { 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
					    0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9 };

/* Private tables are not imitated: that runtime finds no device, and a notice names the caller. */
SIM_API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	static bool said;
	Dl_info asker;

	if (id && !memcmp(id, runtimes, sizeof(runtimes)))
		note_once(&said, "runtime",
			  dladdr(__builtin_return_address(0), &asker) && asker.dli_fname
				  ? asker.dli_fname
				  : "the program");
	*table = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- the runtime's side ---- */

static int ask(const char *symbol, void **fn, int version, unsigned long long flags, int *status)
{
	int found = FOUND;
	int result = sim_init();

	if (result)
		return result;
	if (!symbol || !fn)
		return SIM_INVALID;
	result = driver_ask(symbol, fn, version, flags, &found);
	if (status)
		*status = found;
	return result == CUDA_ERROR_NOT_FOUND ? SIM_OK : result;
}

SIM_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **fn,
						     unsigned int version, unsigned long long flags,
						     enum cudaDriverEntryPointQueryResult *status)
{
	return RT(ask(symbol, fn, (int)version, flags, (int *)status));
}

SIM_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
					    enum cudaDriverEntryPointQueryResult *status)
{
	return RT(ask(symbol, fn, sim_cuda_version(), flags, (int *)status));
}

SIM_API cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *id)
{
	(void)id;
	*table = NULL;
	return RT(SIM_INVALID);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks of the functions that return the driver's functions. The real one is called first, with the
 * same arguments (also with the empty name that the runtime begins with), and its result and status
 * are passed on. A function that it found is then replaced. Application threads, any lock held.
 */
#include "hook_body.h"
#include "redirect.h"

static int exchange(int rc, const char *name, void **fn, int version)
{
	if (!rc && name && fn && *fn)
		*fn = redirect_entry(name, version, *fn);
	return rc;
}

int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	typeof(&cuGetProcAddress_v2) real = REAL_DRIVER(cuGetProcAddress_v2);

	if (!real)
		return CUDA_NOT_INITIALIZED;
	return exchange(real(name, fn, version, flags, status), name, fn, version);
}

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
	typeof(&cuGetProcAddress) real = REAL_DRIVER(cuGetProcAddress);

	if (!real)
		return CUDA_NOT_INITIALIZED;
	return exchange(real(name, fn, version, flags), name, fn, version);
}

/* The version with which the runtime asks the driver: its own. */
static int runtime_version(const struct caller *caller)
{
	typeof(&cudaRuntimeGetVersion) ask = REAL_RUNTIME(caller, cudaRuntimeGetVersion);
	int version = 0;

	return ask && !ask(&version) ? version : 0;
}

#define WITHOUT_VERSION(function)                                                         \
	int function(const char *name, void **fn, unsigned long long flags, void *status) \
	{                                                                                 \
		const struct caller caller =                                              \
			resolve_caller((uintptr_t)__builtin_return_address(0));           \
		typeof(&function) real = REAL_RUNTIME(&caller, function);                 \
		int rc;                                                                   \
                                                                                          \
		if (!real)                                                                \
			return CUDA_NOT_INITIALIZED;                                      \
		rc = real(name, fn, flags, status);                                       \
		return exchange(rc, name, fn, runtime_version(&caller));                  \
	}

#define BY_VERSION(function)                                                                     \
	int function(const char *name, void **fn, unsigned version, unsigned long long flags,    \
		     void *status)                                                               \
	{                                                                                        \
		const struct caller caller =                                                     \
			resolve_caller((uintptr_t)__builtin_return_address(0));                  \
		typeof(&function) real = REAL_RUNTIME(&caller, function);                        \
                                                                                                 \
		if (!real)                                                                       \
			return CUDA_NOT_INITIALIZED;                                             \
		return exchange(real(name, fn, version, flags, status), name, fn, (int)version); \
	}

WITHOUT_VERSION(cudaGetDriverEntryPoint)
WITHOUT_VERSION(cudaGetDriverEntryPoint_ptsz)
BY_VERSION(cudaGetDriverEntryPointByVersion)
BY_VERSION(cudaGetDriverEntryPointByVersion_ptsz)

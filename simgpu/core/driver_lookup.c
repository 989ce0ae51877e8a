/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions as NVIDIA's runtime and libraries find them: cuGetProcAddress_v2 by name
 * in libcuda.so.1, all others through it. So a tool between them and the driver sees their
 * launches, copies and fills. Any thread.
 */
#include <dlfcn.h>
#include "devices.h"

typedef int ask(const char *symbol, void **fn, int version, uint64_t flags, int *status);

const int simgpu_marker SIM_API = 1;

static ask *found;

static void find_driver_ask(void)
{
	void *(*look)(void *, const char *) = NULL;
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

	/* Ours only, if a real driver is installed as well. */
	if (lib && dlsym(lib, "simgpu_marker") == (void *)&simgpu_marker)
		*(void **)&look = dlsym(lib, "simgpu_lookup"); /* lookup.c */
	if (look)
		*(void **)&found = look(lib, "cuGetProcAddress_v2");
	if (!found)
		*(void **)&found = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
}

int driver_ask(const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_driver_ask);
	return !found ? ERR_NOT_FOUND : found(symbol, fn, version, flags, status);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA version that the program was built for: SIMGPU_CUDA, or that of the loaded runtime. Any
 * thread.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include "sim.h"

#define DEFAULT 13000
#define OLDER	12040

static int find_runtime(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *at = strstr(info->dlpi_name, "libcudart.so.");
	void *handle;
	int (*version)(int *);

	(void)size;
	if (!at)
		return 0;
	*(int *)data = atoi(at + strlen("libcudart.so.")) * 1000;
	handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
	version = handle ? (int (*)(int *))dlsym(handle, "cudaRuntimeGetVersion") : NULL;
	if (version && version != (int (*)(int *))dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion")) {
		int n = 0;

		if (!version(&n) && n / 1000 == *(int *)data / 1000)
			*(int *)data = n;
	}
	return 1;
}

static int version;

/* 0 if neither the setting nor a loaded runtime gives a version. */
static int find_version(void)
{
	int found = 0;
	const char *want = getenv("SIMGPU_CUDA");

	if (want && atoi(want) >= 11)
		found = atoi(want) * 1000 +
			(strchr(want, '.') ? atoi(strchr(want, '.') + 1) * 10 : 0);
	if (!found)
		dl_iterate_phdr(find_runtime, &found);
	return found >= 11000 ? found : 0;
}

int sim_cuda_version(void)
{
	if (!version)
		version = find_version();
	if (!version)
		version = DEFAULT;
	return version;
}

/* A program that opens the runtime itself sets the version if nothing else has. */
bool sim_cuda_is(int major)
{
	int found = version ? version : find_version();

	if (!found && major >= 11)
		version = major == 12 ? OLDER : major * 1000;
	return major == sim_cuda_major();
}

int sim_cuda_major(void)
{
	return sim_cuda_version() / 1000;
}

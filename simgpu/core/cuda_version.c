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

int sim_cuda_version(void)
{
	static int version;
	int found = 0;
	const char *want;

	if (version)
		return version;
	want = getenv("SIMGPU_CUDA");
	if (want && atoi(want) >= 11)
		found = atoi(want) * 1000 +
			(strchr(want, '.') ? atoi(strchr(want, '.') + 1) * 10 : 0);
	if (!found)
		dl_iterate_phdr(find_runtime, &found);
	version = found >= 11000 ? found : 13000;
	return version;
}

int sim_cuda_major(void)
{
	return sim_cuda_version() / 1000;
}

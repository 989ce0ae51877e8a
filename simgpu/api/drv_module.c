/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's modules, libraries, kernels and launches. Only the layout of kernels' parameters is
 * read from the code: any image loads, and any name in it is a kernel. The handle of a kernel of
 * the runtime is the address by which the program registered it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../core/clock.h"
#include "../core/usage.h"
#include "../kernels/kernels.h"
#include "cudart.h"

#define MODULE_KIND   SIM_KIND('M', 'O', 'D', '1')
#define FUNCTION_KIND SIM_KIND('F', 'U', 'N', '1')

struct module {
	struct image *image;
};

struct function {
	struct module *module;
	char *name;
};

bool function_check(void *function)
{
	return sim_handle_check(function, FUNCTION_KIND) != NULL;
}

static int load(void **out, const void *image)
{
	struct module *m;

	if (!out || !image)
		return SIM_INVALID;
	m = sim_handle(MODULE_KIND, sizeof(struct module));
	if (m)
		m->image = image_load(image);
	*out = m;
	if (m)
		usage_module();
	return m ? SIM_OK : SIM_NOMEM;
}

static int load_file(void **out, const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1, result = CUDA_ERROR_FILE_NOT_FOUND;
	void *image = MAP_FAILED;
	struct stat file;

	if (fd >= 0 && !fstat(fd, &file) && file.st_size > 0)
		image = mmap(NULL, file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image != MAP_FAILED) {
		result = load(out, image);
		munmap(image, file.st_size);
	}
	if (fd >= 0)
		close(fd);
	return result;
}

static int get_function(void **out, void *module, const char *name)
{
	struct function *f;

	if (!out || !name)
		return SIM_INVALID;
	if (!sim_handle_check(module, MODULE_KIND))
		return SIM_BAD_HANDLE;
	f = sim_handle(FUNCTION_KIND, sizeof(*f));
	if (f)
		f->name = strdup(name);
	if (!f || !f->name)
		return SIM_NOMEM;
	f->module = module;
	kernel_register(f, f->name, f->module->image);
	*out = f;
	return SIM_OK;
}

static int unload(void *module)
{
	if (!sim_handle_check(module, MODULE_KIND))
		return SIM_BAD_HANDLE;
	sim_handle_free(module);
	return SIM_OK;
}

/* ---- modules ---- */

DRV_CALL(cuModuleLoad, load_file((void **)module, path), CUmodule *module, const char *path)
DRV_CALL(cuModuleLoadData, load((void **)module, image), CUmodule *module, const void *image)

DRV_PLAIN(cuModuleUnload, unload(module), CUmodule module)
DRV_CALL(cuModuleGetFunction, get_function((void **)function, module, name), CUfunction *function,
	 CUmodule module, const char *name)

DRV_ANSWER(cuModuleGetLoadingMode, *mode = CU_MODULE_LAZY_LOADING, CUmoduleLoadingMode *mode)
DRV_ANSWER(cuModuleGetFunctionCount, *count = 1, unsigned int *count, UNUSED CUmodule module)

static int get_global(CUdeviceptr *ptr, size_t *bytes)
{
	uintptr_t addr;
	int result = memory_alloc(sim_device(), &addr, 4096);

	if (result)
		return result;
	if (ptr)
		*ptr = addr;
	if (bytes)
		*bytes = 4096;
	return SIM_OK;
}

SIM_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *bytes, CUmodule module,
				      const char *name)
{
	(void)name;
	DRV_ENTER();
	return sim_handle_check(module, MODULE_KIND) ? DRV(get_global(ptr, bytes))
						     : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- linking: the result is a dummy image that loads ---- */

DRV_PLAIN(cuLinkCreate_v2, load((void **)state, state), UNUSED unsigned int n,
	  UNUSED CUjit_option *options, UNUSED void **values, CUlinkState *state)

SIM_API CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *bytes)
{
	*cubin = state;
	*bytes = sizeof(struct module);
	return CUDA_SUCCESS;
}

DRV_PLAIN(cuLinkDestroy, unload(state), CUlinkState state)

/* ---- libraries and their kernels ---- */

DRV_PLAIN(cuLibraryLoadData, load((void **)library, code), CUlibrary *library, const void *code,
	  UNUSED CUjit_option *jit, UNUSED void **jit_values, UNUSED unsigned int n_jit,
	  UNUSED CUlibraryOption *options, UNUSED void **values, UNUSED unsigned int n)

DRV_PLAIN(cuLibraryLoadFromFile, load_file((void **)library, path), CUlibrary *library,
	  const char *path, UNUSED CUjit_option *jit, UNUSED void **jit_values,
	  UNUSED unsigned int n_jit, UNUSED CUlibraryOption *options, UNUSED void **values,
	  UNUSED unsigned int n)

DRV_PLAIN(cuLibraryUnload, unload(library), CUlibrary library)
DRV_PLAIN(cuLibraryGetKernel, get_function((void **)kernel, library, name), CUkernel *kernel,
	  CUlibrary library, const char *name)

DRV_ANSWER(cuLibraryGetModule, *module = (CUmodule)library, CUmodule *module, CUlibrary library)
DRV_CALL(cuLibraryGetGlobal, get_global(ptr, bytes), CUdeviceptr *ptr, size_t *bytes,
	 UNUSED CUlibrary library, UNUSED const char *name)

DRV_ANSWER(cuKernelGetFunction, *function = (CUfunction)kernel, CUfunction *function,
	   CUkernel kernel)

SIM_API CUresult cuFuncGetName(const char **name, CUfunction function)
{
	struct kernel *k = kernel_find(function);

	*name = k ? k->name : "kernel";
	return CUDA_SUCCESS;
}

static int parameter_of(const void *function, size_t index, size_t *offset, size_t *size)
{
	struct kernel *k = kernel_find(function);
	const struct parameter *p;
	int n = k ? kernel_parameters(k, &p) : -1;

	if (n < 0)
		return k ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_HANDLE;
	if (index >= (size_t)n || !offset)
		return SIM_INVALID;
	*offset = p[index].offset;
	if (size)
		*size = p[index].size;
	return SIM_OK;
}

/* Whether this driver is too old for cuFuncGetParamInfo. Kernels of the runtime, which are in no
 * module here, always get an answer. */
static bool is_too_new(const void *function)
{
	return sim_cuda_version() < 12040 && function_check((void *)function);
}

DRV_PLAIN(cuFuncGetParamInfo,
	  is_too_new(function) ? CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER
			       : parameter_of(function, index, offset, size),
	  CUfunction function, size_t index, size_t *offset, size_t *size)

SIM_API CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	struct function *f = sim_handle_check(function, FUNCTION_KIND);

	*module = f ? (CUmodule)f->module : NULL;
	return f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static int attribute_of(int *value, int attribute)
{
	static const int values[] = {
		[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
		[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32,
		[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 48 << 10,
		[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1,
		[CU_FUNC_ATTRIBUTE_MAX - 1] = 0,
	};

	if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return SIM_INVALID;
	*value = values[attribute];
	if (attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION ||
	    attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION)
		*value = sim_card()->code_version;
	return SIM_OK;
}

SIM_API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	return function ? DRV(attribute_of(value, attribute)) : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	(void)function;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	    (size_t)value > sim_card()->shared_optin)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

DRV_ANSWER(cuFuncIsLoaded, *state = CU_FUNCTION_LOADING_STATE_LOADED, CUfunctionLoadingState *state,
	   UNUSED CUfunction function)

/* ---- occupancy ---- */

DRV_PLAIN(cuOccupancyMaxActiveBlocksPerMultiprocessor, occupancy(blocks, threads, shared),
	  int *blocks, UNUSED CUfunction function, int threads, size_t shared)

SIM_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
						  CUoccupancyB2DSize sizes, size_t shared,
						  int limit)
{
	(void)function, (void)sizes, (void)shared;
	*block = limit > 0 && limit < 1024 ? limit : 1024;
	*grid = 2 * sim_card()->sms;
	return CUDA_SUCCESS;
}

DRV_PLAIN(cuOccupancyAvailableDynamicSMemPerBlock,
	  cudaOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads),
	  size_t *bytes, CUfunction function, int blocks, int threads)

DRV_ANSWER(cuOccupancyMaxActiveClusters, *clusters = sim_card()->sms / 2, int *clusters,
	   UNUSED CUfunction function, UNUSED const CUlaunchConfig *config)
DRV_ANSWER(cuOccupancyMaxPotentialClusterSize, *size = 8, int *size, UNUSED CUfunction function,
	   UNUSED const CUlaunchConfig *config)

/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's modules, libraries, kernels and launches. Code is not looked at, but for the sizes
 * of a kernel's parameters: any image loads, any name in it is a kernel.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../core/clock.h"
#include "../kernels/kernels.h"
#include "cudart.h"

#define MODULE_KIND    SIM_KIND('M', 'O', 'D', '1')
#define FUNCTION_KIND  SIM_KIND('F', 'U', 'N', '1')
#define NAME_MOST      256
#define PARAMETERS     64
#define ELEMENT	       4.0 /* bytes, on average */
#define PARAMETER_INFO 0x17
#define SIZE_MOST      0x0d000000 /* larger 4-byte arguments are taken for floats */

/* The parameters of a module's first kernel, if the image says them: a compiler that makes one
 * kernel after the other (Triton) loads each by itself. */
struct parameters {
	char name[NAME_MOST];
	unsigned int n, sizes[PARAMETERS];
};

struct module {
	struct parameters parameters;
};

struct function {
	struct module *module;
	char name[NAME_MOST];
	struct parameters parameters;
};

/* Attributes of a kernel: a form (4: so many bytes follow), a number, and a size or a value. */
static void read_parameters(struct parameters *p, const unsigned char *at, size_t bytes)
{
	const unsigned char *end = at + bytes;

	while (at + 4 <= end) {
		size_t size = at[0] == 4 ? at[2] | at[3] << 8 : 0;
		uint32_t word[3];

		if (at[0] == 4 && at[1] == PARAMETER_INFO && size == sizeof(word) &&
		    at + 4 + size <= end) {
			memcpy(word, at + 4, size);
			if (word[1] % 65536 < PARAMETERS) {
				p->sizes[word[1] % 65536] = word[2] >> 18;
				p->n += 1;
			}
		}
		at += 4 + size;
	}
}

/* An image is an ELF file, or something else that is not looked at. `most`: its bytes, if known. */
static void read_image(struct parameters *p, const unsigned char *image, size_t most)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
	const Elf64_Shdr *sections;
	const char *names;

	if (most < sizeof(*head) || strncmp((const char *)image, ELFMAG, SELFMAG) != 0 ||
	    head->e_shentsize != sizeof(*sections) || head->e_shoff > most ||
	    head->e_shnum > (most - head->e_shoff) / sizeof(*sections) ||
	    head->e_shstrndx >= head->e_shnum)
		return;
	sections = (const Elf64_Shdr *)(image + head->e_shoff);
	for (int i = 0; i < head->e_shnum; i++)
		if (sections[i].sh_type != SHT_NOBITS &&
		    (sections[i].sh_offset > most ||
		     sections[i].sh_size > most - sections[i].sh_offset))
			return;
	names = (const char *)image + sections[head->e_shstrndx].sh_offset;
	for (int i = 0; !p->n && i < head->e_shnum; i++) {
		const char *name = names + sections[i].sh_name;

		if (strncmp(name, ".nv.info.", 9) != 0)
			continue;
		snprintf(p->name, sizeof(p->name), "%s", name + 9);
		read_parameters(p, image + sections[i].sh_offset, sections[i].sh_size);
	}
}

static int load_image(void **out, const void *image, size_t most)
{
	struct module *m;

	if (!out || !image)
		return SIM_INVALID;
	m = sim_handle(MODULE_KIND, sizeof(struct module));
	if (m)
		read_image(&m->parameters, image, most);
	*out = m;
	return m ? SIM_OK : SIM_NOMEM;
}

static int load(void **out, const void *image)
{
	return load_image(out, image, SIZE_MAX);
}

static int load_file(void **out, const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1, result = CUDA_ERROR_FILE_NOT_FOUND;
	void *image = MAP_FAILED;
	struct stat file;

	if (fd >= 0 && !fstat(fd, &file) && file.st_size > 0)
		image = mmap(NULL, file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image != MAP_FAILED) {
		result = load_image(out, image, file.st_size);
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
	if (!f)
		return SIM_NOMEM;
	f->module = module;
	snprintf(f->name, sizeof(f->name), "%s", name);
	if (!strcmp(f->module->parameters.name, name))
		f->parameters = f->module->parameters;
	kernel_register(f, f->name);
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

/* ---- linking: the result is a few bytes that load ---- */

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
	struct function *f = sim_handle_check(function, FUNCTION_KIND);

	*name = f ? f->name : "kernel";
	return CUDA_SUCCESS;
}

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

/* ---- launches ---- */

/* A compiled kernel takes as long as its tensors have bytes, however it is cut into blocks: else a
 * tuner would find that fewer threads are always faster. Its whole numbers are sizes, whose product
 * is the number of elements; a tensor ends with its allocation at the latest. 0: not known. */
static uint64_t time_of_arguments(void *function, void **params)
{
	const struct function *f = sim_handle_check(function, FUNCTION_KIND);
	double elements = 0, bytes = 0;

	if (!f || !params)
		return 0;
	for (unsigned int i = 0; i < f->parameters.n; i++)
		if (f->parameters.sizes[i] == 4) {
			int32_t number = *(const int32_t *)params[i];

			if (number > 1 && number < SIZE_MOST)
				elements = (elements > 0 ? elements : 1) * number;
		}
	for (unsigned int i = 0; i < f->parameters.n; i++)
		if (f->parameters.sizes[i] == 8) {
			uintptr_t address = *(const uintptr_t *)params[i];
			double room = (double)memory_room(address, elements > 0);

			bytes += elements > 0 && elements * ELEMENT < room ? elements * ELEMENT
									   : room;
		}
	return bytes > 0 ? time_of_bytes(bytes) : 0;
}

SIM_API CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy,
				unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
				unsigned int shared, CUstream stream, void **params, void **extra)
{
	DRV_ENTER();
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	/* Packed arguments: pairs of a key and a value, the buffer and its size. */
	if (extra && extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER &&
	    extra[2] == CU_LAUNCH_PARAM_BUFFER_SIZE)
		contents_scan(extra[1], *(size_t *)extra[3]);
	return DRV(launch_known(function, (unsigned int[]){ gx, gy, gz }, bx * by * bz, params,
				shared, stream, time_of_arguments(function, params)));
}

SIM_API CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params,
				  void **extra)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
			      c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream, params,
			      extra);
}

SIM_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
					   unsigned int gz, unsigned int bx, unsigned int by,
					   unsigned int bz, unsigned int shared, CUstream stream,
					   void **params)
{
	return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

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

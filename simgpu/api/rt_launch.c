/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's kernels, modules and device variables, as compiled programs use them.
 */
#include <stdlib.h>
#include <string.h>
#include "../core/clock.h"
#include "../kernels/kernels.h"
#include "driver.h"

#define CONFIGURATIONS 16

/* ---- modules: programs register them in their constructors ---- */

void **__cudaRegisterFatBinary(void *binary);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int threads, void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
		       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
			      size_t size, int constant, int global);

SIM_API void **__cudaRegisterFatBinary(void *binary)
{
	return (void **)image_register(binary);
}

SIM_API void __cudaUnregisterFatBinary(void **handle)
{
	image_gone((struct image *)handle);
}

SIM_API char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

SIM_API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
				    int threads, void *tid, void *bid, void *block, void *grid,
				    int *warp)
{
	(void)device, (void)threads, (void)tid, (void)bid;
	(void)block, (void)grid, (void)warp;
	kernel_register(host, name, (struct image *)handle);
}

/* ---- device variables: allocated when their address is first needed ---- */

struct variable {
	const void *host;
	size_t size;
	uintptr_t addr[SIM_MAX_DEVICES];
	struct variable *next;
};

static struct variable *variables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

SIM_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
			       size_t size, int constant, int global)
{
	struct variable *v = calloc(1, sizeof(*v));

	(void)handle, (void)device, (void)name, (void)ext, (void)constant, (void)global;
	if (!v)
		return;
	v->host = host;
	v->size = size;
	pthread_mutex_lock(&lock);
	v->next = variables;
	variables = v;
	pthread_mutex_unlock(&lock);
}

SIM_API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
				      int ext, size_t size, int constant, int global)
{
	(void)device, (void)handle, (void)name, (void)ext, (void)constant, (void)global;
	*host = calloc(1, size);
}

static int find_variable(const void *symbol, uintptr_t *addr, size_t *size)
{
	struct variable *v;
	int result = SIM_OK;

	pthread_mutex_lock(&lock);
	for (v = variables; v && v->host != symbol; v = v->next)
		;
	if (!v)
		result = cudaErrorInvalidSymbol;
	else if (addr && !memory_owner(v->addr[sim_device()])) /* none yet, or its context ended */
		result = memory_alloc(sim_device(), &v->addr[sim_device()], v->size);
	if (!result && addr)
		*addr = v->addr[sim_device()];
	if (!result && size)
		*size = v->size;
	pthread_mutex_unlock(&lock);
	return result;
}

RT_CALL(cudaGetSymbolAddress, find_variable(symbol, (uintptr_t *)ptr, NULL), void **ptr,
	const void *symbol)
RT_CALL(cudaGetSymbolSize, find_variable(symbol, NULL, size), size_t *size, const void *symbol)

/* Copies bytes of a variable to or from `other`. */
static int copy_symbol(const void *symbol, size_t offset, void *other, size_t bytes, bool to)
{
	uintptr_t addr;
	int result = find_variable(symbol, &addr, NULL);

	if (result)
		return result;
	return to ? driver()->cuMemcpy(addr + offset, (CUdeviceptr)other, bytes)
		  : driver()->cuMemcpy((CUdeviceptr)other, addr + offset, bytes);
}

static int copy_symbol_async(const void *symbol, size_t offset, void *other, size_t bytes, bool to,
			     cudaStream_t stream)
{
	uintptr_t addr;
	int result = find_variable(symbol, &addr, NULL);

	if (result)
		return result;
	return to ? driver()->cuMemcpyAsync(addr + offset, (CUdeviceptr)other, bytes, stream)
		  : driver()->cuMemcpyAsync((CUdeviceptr)other, addr + offset, bytes, stream);
}

RT_CALL(cudaMemcpyToSymbol, copy_symbol(symbol, offset, (void *)src, bytes, true),
	const void *symbol, const void *src, size_t bytes, size_t offset,
	UNUSED enum cudaMemcpyKind kind)
RT_CALL(cudaMemcpyFromSymbol, copy_symbol(symbol, offset, dst, bytes, false), void *dst,
	const void *symbol, size_t bytes, size_t offset, UNUSED enum cudaMemcpyKind kind)
RT_CALL(cudaMemcpyToSymbolAsync,
	copy_symbol_async(symbol, offset, (void *)src, bytes, true, stream), const void *symbol,
	const void *src, size_t bytes, size_t offset, UNUSED enum cudaMemcpyKind kind,
	cudaStream_t stream)
RT_CALL(cudaMemcpyFromSymbolAsync, copy_symbol_async(symbol, offset, dst, bytes, false, stream),
	void *dst, const void *symbol, size_t bytes, size_t offset, UNUSED enum cudaMemcpyKind kind,
	cudaStream_t stream)

/* ---- launches ---- */

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

static __thread struct configuration {
	dim3 grid, block;
	size_t shared;
	void *stream;
} configurations[CONFIGURATIONS];
static __thread unsigned int depth;

SIM_API unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
	if (depth == CONFIGURATIONS)
		return 1;
	configurations[depth++] = (struct configuration){ grid, block, shared, stream };
	return 0;
}

SIM_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
					       void *stream)
{
	const struct configuration *c;

	if (!depth)
		return cudaErrorMissingConfiguration;
	c = &configurations[--depth];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	*(void **)stream = c->stream;
	return cudaSuccess;
}

static int launched(int result)
{
	return result == SIM_INVALID ? cudaErrorInvalidConfiguration : result;
}

/* The address by which a kernel was registered is its handle for the driver. */
SIM_API cudaError_t cudaLaunchKernel(const void *fn, dim3 grid, dim3 block, void **args,
				     size_t shared, cudaStream_t stream)
{
	RT_ENTER();
	if (!fn)
		return RT(cudaErrorInvalidDeviceFunction);
	return RT(launched(driver()->cuLaunchKernel((CUfunction)fn, grid.x, grid.y, grid.z, block.x,
						    block.y, block.z, shared, stream, args, NULL)));
}

SIM_API cudaError_t cudaLaunchCooperativeKernel(const void *fn, dim3 grid, dim3 block, void **args,
						size_t shared, cudaStream_t stream)
{
	RT_ENTER();
	if (!fn)
		return RT(cudaErrorInvalidDeviceFunction);
	return RT(launched(driver()->cuLaunchCooperativeKernel((CUfunction)fn, grid.x, grid.y,
							       grid.z, block.x, block.y, block.z,
							       shared, stream, args)));
}

SIM_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *fn, void **args)
{
	CUlaunchConfig config;

	RT_ENTER();
	if (!c || !fn)
		return RT(!c ? SIM_INVALID : cudaErrorInvalidDeviceFunction);
	config =
		(CUlaunchConfig){ c->gridDim.x,	       c->gridDim.y,  c->gridDim.z,
				  c->blockDim.x,       c->blockDim.y, c->blockDim.z,
				  c->dynamicSmemBytes, c->stream,     (CUlaunchAttribute *)c->attrs,
				  c->numAttrs };
	return RT(launched(driver()->cuLaunchKernelEx(&config, (CUfunction)fn, args, NULL)));
}

SIM_API cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *fn)
{
	*kernel = (cudaKernel_t)fn;
	return cudaSuccess;
}

/* ---- attributes of kernels ---- */

SIM_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *fn)
{
	RT_ENTER();
	if (!a || !fn)
		return RT(!a ? SIM_INVALID : cudaErrorInvalidDeviceFunction);
	memset(a, 0, sizeof(*a));
	a->maxThreadsPerBlock = 1024;
	a->numRegs = 32;
	a->ptxVersion = a->binaryVersion = sim_card()->code_version;
	a->maxDynamicSharedSizeBytes = 48 << 10;
	a->preferredShmemCarveout = -1;
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaFuncSetAttribute(const void *fn, enum cudaFuncAttribute attribute,
					 int value)
{
	RT_ENTER();
	if (!fn)
		return RT(cudaErrorInvalidDeviceFunction);
	if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
	    (size_t)value > sim_card()->shared_optin)
		return RT(SIM_INVALID);
	return RT(SIM_OK);
}

RT_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, occupancy(blocks, threads, shared),
	int *blocks, UNUSED const void *fn, int threads, size_t shared)

SIM_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *fn,
							      int blocks, int threads)
{
	(void)fn, (void)threads;
	RT_ENTER();
	if (!bytes || blocks < 1)
		return RT(SIM_INVALID);
	*bytes = sim_card()->shared_per_sm / blocks - 1024;
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *fn,
						   const cudaLaunchConfig_t *config)
{
	(void)fn, (void)config;
	RT_ENTER();
	*clusters = sim_card()->sms / 2;
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *fn,
							 const cudaLaunchConfig_t *config)
{
	(void)fn, (void)config;
	RT_ENTER();
	*size = 8;
	return RT(SIM_OK);
}

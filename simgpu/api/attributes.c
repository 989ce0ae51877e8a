/* SPDX-License-Identifier: Apache-2.0
 *
 * Device attributes and properties, made from the card and attributes.def.
 */
#include <stdio.h>
#include <string.h>
#include "cudart.h"

#define LAST_ATTRIBUTE 512

int device_attribute(int *value, int attribute, int device)
{
	const struct sim_card *c = sim_card();

	if (!value || attribute < 1 || attribute > LAST_ATTRIBUTE)
		return SIM_INVALID;
	if (device < 0 || device >= sim_device_count())
		return SIM_BAD_DEVICE;
	*value = 0;
#define ATTR(name, v)                                \
	if (attribute == CU_DEVICE_ATTRIBUTE_##name) \
		*value = v;
#include "attributes.def"
	return SIM_OK;
}

static int attr(int attribute, int device)
{
	int value = 0;

	device_attribute(&value, attribute, device);
	return value;
}

#define A(name) attr(CU_DEVICE_ATTRIBUTE_##name, device)

/* Members that the layouts of CUDA 12 and 13 share, under the same names. */
#define FILL_PROPERTIES(p, device)                                                 \
	do {                                                                       \
		const struct sim_card *c = sim_card();                             \
		memset(p, 0, sizeof(*p));                                          \
		snprintf(p->name, sizeof(p->name), "%s", c->model);                \
		device_uuid((unsigned char *)&p->uuid, device_physical(device));   \
		p->totalGlobalMem = c->memory;                                     \
		p->sharedMemPerBlock = A(MAX_SHARED_MEMORY_PER_BLOCK);             \
		p->regsPerBlock = A(MAX_REGISTERS_PER_BLOCK);                      \
		p->warpSize = 32;                                                  \
		p->memPitch = A(MAX_PITCH);                                        \
		p->maxThreadsPerBlock = 1024;                                      \
		p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;                  \
		p->maxThreadsDim[2] = 64;                                          \
		p->maxGridSize[0] = 2147483647;                                    \
		p->maxGridSize[1] = p->maxGridSize[2] = 65535;                     \
		p->totalConstMem = 65536;                                          \
		p->major = c->major;                                               \
		p->minor = c->minor;                                               \
		p->textureAlignment = 512;                                         \
		p->texturePitchAlignment = 32;                                     \
		p->multiProcessorCount = c->sms;                                   \
		p->canMapHostMemory = 1;                                           \
		p->maxTexture1D = p->maxTexture2D[0] = A(MAXIMUM_TEXTURE1D_WIDTH); \
		p->maxTexture2D[1] = A(MAXIMUM_TEXTURE2D_HEIGHT);                  \
		p->surfaceAlignment = 512;                                         \
		p->concurrentKernels = 1;                                          \
		p->ECCEnabled = A(ECC_ENABLED);                                    \
		p->pciBusID = A(PCI_BUS_ID);                                       \
		p->asyncEngineCount = A(ASYNC_ENGINE_COUNT);                       \
		p->unifiedAddressing = 1;                                          \
		p->memoryBusWidth = c->bus_width;                                  \
		p->l2CacheSize = (int)c->l2;                                       \
		p->persistingL2CacheMaxSize = A(MAX_PERSISTING_L2_CACHE_SIZE);     \
		p->maxThreadsPerMultiProcessor = c->threads_per_sm;                \
		p->streamPrioritiesSupported = 1;                                  \
		p->globalL1CacheSupported = p->localL1CacheSupported = 1;          \
		p->sharedMemPerMultiprocessor = c->shared_per_sm;                  \
		p->regsPerMultiprocessor = 65536;                                  \
		p->managedMemory = 1;                                              \
		p->concurrentManagedAccess = 1;                                    \
		p->computePreemptionSupported = 1;                                 \
		p->canUseHostPointerForRegisteredMem = 1;                          \
		p->cooperativeLaunch = 1;                                          \
		p->sharedMemPerBlockOptin = c->shared_optin;                       \
		p->maxBlocksPerMultiProcessor = c->blocks_per_sm;                  \
		p->accessPolicyMaxWindowSize = A(MAX_ACCESS_POLICY_WINDOW_SIZE);   \
		p->reservedSharedMemPerBlock = 1024;                               \
		p->hostRegisterSupported = 1;                                      \
		p->sparseCudaArraySupported = 1;                                   \
		p->hostRegisterReadOnlySupported = 1;                              \
		p->memoryPoolsSupported = 1;                                       \
		p->memoryPoolSupportedHandleTypes = 1;                             \
		p->ipcEventSupported = 1;                                          \
		p->clusterLaunch = A(CLUSTER_LAUNCH);                              \
		p->unifiedFunctionPointers = 1;                                    \
	} while (0)

/* CUDA 12's layout of cudaDeviceProp. */
struct properties12 {
	char name[256];
	unsigned char uuid[16];
	char luid[8];
	unsigned int luidDeviceNodeMask;
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize;
	size_t memPitch;
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment, texturePitchAlignment;
	int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated;
	int canMapHostMemory, computeMode, maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear;
	int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
	int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2];
	int maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2];
	int maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap;
	int maxSurfaceCubemapLayered[2];
	size_t surfaceAlignment;
	int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
	int asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
	int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
	int globalL1CacheSupported, localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
	int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess;
	int concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
	int cooperativeLaunch, cooperativeMultiDeviceLaunch;
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
	int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
	int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
	unsigned int gpuDirectRDMAFlushWritesOptions;
	int gpuDirectRDMAWritesOrdering;
	unsigned int memoryPoolSupportedHandleTypes;
	int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
	int unifiedFunctionPointers, reserved[63];
};

_Static_assert(sizeof(struct properties12) == 1032, "the size of CUDA 12's structure");

static void fill12(struct properties12 *p, int device)
{
	FILL_PROPERTIES(p, device);
	p->clockRate = sim_card()->clock_khz;
	p->memoryClockRate = sim_card()->memory_clock_khz;
	p->deviceOverlap = 1;
	p->maxTexture1DLinear = A(MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
	p->singleToDoublePrecisionPerfRatio = A(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
}

static void fill13(struct cudaDeviceProp *p, int device)
{
	FILL_PROPERTIES(p, device);
	p->deviceNumaId = p->hostNumaId = -1;
}

static int check_device(int device)
{
	int result = sim_init();

	if (result)
		return result;
	return device >= 0 && device < sim_device_count() ? SIM_OK : SIM_BAD_DEVICE;
}

cudaError_t cudaGetDeviceProperties_v2(void *properties, int device);

/* CUDA 12's name of the function. */
SIM_API cudaError_t cudaGetDeviceProperties_v2(void *properties, int device)
{
	int result = check_device(device);

	if (!result)
		fill12(properties, device);
	return RT(result);
}

SIM_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	int result = check_device(device);

	if (!result && sim_cuda_major() >= 13)
		fill13(properties, device);
	else if (!result)
		fill12((struct properties12 *)properties, device);
	return RT(result);
}

SIM_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	int result = sim_init();

	return RT(result ? result : device_attribute(value, attribute, device));
}

SIM_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	if (!sim_is_init())
		return CUDA_ERROR_NOT_INITIALIZED;
	return DRV(device_attribute(value, attribute, device));
}

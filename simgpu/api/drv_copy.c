/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's copies and fills, all by way of the runtime's.
 */
#include "../core/clock.h"
#include "cudart.h"

#define COPY(name, dst_type, src_type)                                                            \
	SIM_API CUresult name(dst_type dst, src_type src, size_t bytes)                           \
	{                                                                                         \
		DRV_ENTER();                                                                      \
		return DRV(cudaMemcpy((void *)dst, (const void *)src, bytes, cudaMemcpyDefault)); \
	}

#define COPY_ASYNC(name, dst_type, src_type)                                             \
	SIM_API CUresult name(dst_type dst, src_type src, size_t bytes, CUstream stream) \
	{                                                                                \
		DRV_ENTER();                                                             \
		return DRV(cudaMemcpyAsync((void *)dst, (const void *)src, bytes,        \
					   cudaMemcpyDefault, stream));                  \
	}

COPY(cuMemcpy, CUdeviceptr, CUdeviceptr)
COPY(cuMemcpyHtoD_v2, CUdeviceptr, const void *)
COPY(cuMemcpyDtoH_v2, void *, CUdeviceptr)
COPY(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr)
COPY_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr)

SIM_API CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
			      size_t bytes)
{
	(void)to, (void)from;
	return cuMemcpy(dst, src, bytes);
}

SIM_API CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
				   size_t bytes, CUstream stream)
{
	(void)to, (void)from;
	return cuMemcpyAsync(dst, src, bytes, stream);
}

static int fill(CUdeviceptr dst, unsigned int value, size_t n, size_t width, void *stream,
		bool async)
{
	int result = sim_enter_driver();

	if (result || dst % width)
		return result ? result : SIM_INVALID;
	return fill_async((void *)dst, value, width, n * width, async ? stream : NULL);
}

#define FILL(name, type, width)                                                              \
	SIM_API CUresult name##_v2(CUdeviceptr dst, type value, size_t n)                    \
	{                                                                                    \
		return DRV(fill(dst, value, n, width, NULL, false));                         \
	}                                                                                    \
	SIM_API CUresult name##Async(CUdeviceptr dst, type value, size_t n, CUstream stream) \
	{                                                                                    \
		return DRV(fill(dst, value, n, width, stream, true));                        \
	}

FILL(cuMemsetD8, unsigned char, 1)
FILL(cuMemsetD16, unsigned short, 2)
FILL(cuMemsetD32, unsigned int, 4)

/* Ranges: where they lie. */
static void *end_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t at)
{
	return (char *)(type == CU_MEMORYTYPE_HOST ? (void *)host : (void *)device) + at;
}

#define TARGET(c)                                          \
	end_of(c->dstMemoryType, c->dstHost, c->dstDevice, \
	       c->dstY * c->dstPitch + c->dstXInBytes),    \
		c->dstPitch ? c->dstPitch : c->WidthInBytes
#define SOURCE(c)                                          \
	end_of(c->srcMemoryType, c->srcHost, c->srcDevice, \
	       c->srcY * c->srcPitch + c->srcXInBytes),    \
		c->srcPitch ? c->srcPitch : c->WidthInBytes

static int copy_2d(const CUDA_MEMCPY2D *c, void *stream, bool async)
{
	if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return SIM_OK; /* arrays have no contents here */
	if (async)
		return cudaMemcpy2DAsync(TARGET(c), SOURCE(c), c->WidthInBytes, c->Height,
					 cudaMemcpyDefault, stream);
	return cudaMemcpy2D(TARGET(c), SOURCE(c), c->WidthInBytes, c->Height, cudaMemcpyDefault);
}
SIM_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	DRV_ENTER();
	return copy ? DRV(copy_2d(copy, NULL, false)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	DRV_ENTER();
	return copy ? DRV(copy_2d(copy, stream, true)) : CUDA_ERROR_INVALID_VALUE;
}

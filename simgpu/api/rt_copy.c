/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's copies and fills: each is one call of the driver.
 */
#include "driver.h"

#define DEVICE(p) ((CUdeviceptr)(p))

static int copy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	switch ((int)kind) {
	case cudaMemcpyHostToDevice:
		return driver()->cuMemcpyHtoD(DEVICE(dst), src, bytes);
	case cudaMemcpyDeviceToHost:
		return driver()->cuMemcpyDtoH(dst, DEVICE(src), bytes);
	case cudaMemcpyDeviceToDevice:
		return driver()->cuMemcpyDtoD(DEVICE(dst), DEVICE(src), bytes);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return driver()->cuMemcpy(DEVICE(dst), DEVICE(src), bytes);
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

static int copy_async(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
		      cudaStream_t stream)
{
	switch ((int)kind) {
	case cudaMemcpyHostToDevice:
		return driver()->cuMemcpyHtoDAsync(DEVICE(dst), src, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return driver()->cuMemcpyDtoHAsync(dst, DEVICE(src), bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return driver()->cuMemcpyDtoDAsync(DEVICE(dst), DEVICE(src), bytes, stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return driver()->cuMemcpyAsync(DEVICE(dst), DEVICE(src), bytes, stream);
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

RT_CALL(cudaMemcpy, copy(dst, src, bytes, kind), void *dst, const void *src, size_t bytes,
	enum cudaMemcpyKind kind)
RT_CALL(cudaMemcpyAsync, copy_async(dst, src, bytes, kind, stream), void *dst, const void *src,
	size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)

static CUcontext context_of(int device)
{
	return (CUcontext)ctx_primary(device);
}

static int peer(void *dst, int to, const void *src, int from, size_t bytes, cudaStream_t stream,
		bool async)
{
	if (to < 0 || to >= sim_device_count() || from < 0 || from >= sim_device_count())
		return cudaErrorInvalidDevice;
	if (async)
		return driver()->cuMemcpyPeerAsync(DEVICE(dst), context_of(to), DEVICE(src),
						   context_of(from), bytes, stream);
	return driver()->cuMemcpyPeer(DEVICE(dst), context_of(to), DEVICE(src), context_of(from),
				      bytes);
}

RT_CALL(cudaMemcpyPeer, peer(dst, to, src, from, bytes, NULL, false), void *dst, int to,
	const void *src, int from, size_t bytes)
RT_CALL(cudaMemcpyPeerAsync, peer(dst, to, src, from, bytes, stream, true), void *dst, int to,
	const void *src, int from, size_t bytes, cudaStream_t stream)

/* ---- rows and boxes ---- */

static CUmemorytype type_of(const void *p)
{
	return sim_is_device_ptr(p) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

static int copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		   size_t height, cudaStream_t stream, bool async)
{
	const CUDA_MEMCPY2D c = { .srcMemoryType = type_of(src),
				  .srcHost = src,
				  .srcDevice = DEVICE(src),
				  .srcPitch = spitch,
				  .dstMemoryType = type_of(dst),
				  .dstHost = dst,
				  .dstDevice = DEVICE(dst),
				  .dstPitch = dpitch,
				  .WidthInBytes = width,
				  .Height = height };

	if (width > dpitch || width > spitch)
		return cudaErrorInvalidPitchValue;
	return async ? driver()->cuMemcpy2DAsync(&c, stream) : driver()->cuMemcpy2DUnaligned(&c);
}

RT_CALL(cudaMemcpy2D, copy_2d(dst, dpitch, src, spitch, width, height, NULL, false), void *dst,
	size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	UNUSED enum cudaMemcpyKind kind)
RT_CALL(cudaMemcpy2DAsync, copy_2d(dst, dpitch, src, spitch, width, height, stream, true),
	void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	UNUSED enum cudaMemcpyKind kind, cudaStream_t stream)

static CUmemorytype place_of(struct cudaPitchedPtr p, const void *array)
{
	return array ? CU_MEMORYTYPE_ARRAY : type_of(p.ptr);
}

#define ENDS(p)                                                                                 \
	.srcMemoryType = place_of(p->srcPtr, p->srcArray), .srcHost = p->srcPtr.ptr,            \
	.srcDevice = DEVICE(p->srcPtr.ptr), .srcPitch = p->srcPtr.pitch,                        \
	.srcHeight = p->srcPtr.ysize, .srcXInBytes = p->srcPos.x, .srcY = p->srcPos.y,          \
	.srcZ = p->srcPos.z, .srcArray = (CUarray)p->srcArray,                                  \
	.dstMemoryType = place_of(p->dstPtr, p->dstArray), .dstHost = p->dstPtr.ptr,            \
	.dstDevice = DEVICE(p->dstPtr.ptr), .dstPitch = p->dstPtr.pitch,                        \
	.dstHeight = p->dstPtr.ysize, .dstXInBytes = p->dstPos.x, .dstY = p->dstPos.y,          \
	.dstZ = p->dstPos.z, .dstArray = (CUarray)p->dstArray, .WidthInBytes = p->extent.width, \
	.Height = p->extent.height, .Depth = p->extent.depth

CUDA_MEMCPY3D driver_copy(const struct cudaMemcpy3DParms *p)
{
	return (CUDA_MEMCPY3D){ ENDS(p) };
}

static int copy_3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool async)
{
	CUDA_MEMCPY3D c;

	if (!p)
		return SIM_INVALID;
	c = driver_copy(p);
	return async ? driver()->cuMemcpy3DAsync(&c, stream) : driver()->cuMemcpy3D(&c);
}

static int peer_3d(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream, bool async)
{
	CUDA_MEMCPY3D_PEER c;

	if (!p)
		return SIM_INVALID;
	c = (CUDA_MEMCPY3D_PEER){ ENDS(p), .srcContext = context_of(p->srcDevice),
				  .dstContext = context_of(p->dstDevice) };
	return async ? driver()->cuMemcpy3DPeerAsync(&c, stream) : driver()->cuMemcpy3DPeer(&c);
}

RT_CALL(cudaMemcpy3D, copy_3d(p, NULL, false), const struct cudaMemcpy3DParms *p)
RT_CALL(cudaMemcpy3DAsync, copy_3d(p, stream, true), const struct cudaMemcpy3DParms *p,
	cudaStream_t stream)
RT_CALL(cudaMemcpy3DPeer, peer_3d(p, NULL, false), const struct cudaMemcpy3DPeerParms *p)
RT_CALL(cudaMemcpy3DPeerAsync, peer_3d(p, stream, true), const struct cudaMemcpy3DPeerParms *p,
	cudaStream_t stream)

/* ---- batches ---- */

/* Before CUDA 13 the last parameter here is the place for a wrong copy's index, not the stream. */
SIM_API cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
					 const size_t *sizes, size_t n,
					 struct cudaMemcpyAttributes *attributes, size_t *indices,
					 size_t n_attributes, cudaStream_t stream)
{
	RT_ENTER();
	if (sim_cuda_major() < 13)
		stream = NULL;
	return RT(driver()->cuMemcpyBatchAsync((CUdeviceptr *)dsts, (CUdeviceptr *)srcs,
					       (size_t *)sizes, n, (CUmemcpyAttributes *)attributes,
					       indices, n_attributes, stream));
}

SIM_API cudaError_t cudaMemcpy3DBatchAsync(size_t n, struct cudaMemcpy3DBatchOp *list,
					   unsigned long long flags, cudaStream_t stream)
{
	RT_ENTER();
	if (sim_cuda_major() < 13)
		stream = NULL;
	return RT(driver()->cuMemcpy3DBatchAsync(n, (CUDA_MEMCPY3D_BATCH_OP *)list, flags, stream));
}

/* Before CUDA 13 the location is a device, -1 for the host, and the stream comes next. */
SIM_API cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t bytes,
					 struct cudaMemLocation location, unsigned int flags,
					 cudaStream_t stream)
{
	CUmemLocation where = { .type = (CUmemLocationType)location.type, .id = location.id };

	RT_ENTER();
	if (sim_cuda_major() < 13) {
		where.id = (int)location.type;
		where.type = where.id < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
		flags = 0;
		stream = NULL;
	}
	return RT(driver()->cuMemPrefetchAsync(DEVICE(ptr), bytes, where, flags, stream));
}

SIM_API cudaError_t cudaMemPrefetchBatchAsync(void **ptrs, size_t *sizes, size_t n,
					      struct cudaMemLocation *locations, size_t *indices,
					      size_t n_locations, unsigned long long flags,
					      cudaStream_t stream)
{
	RT_ENTER();
	return RT(driver()->cuMemPrefetchBatchAsync((CUdeviceptr *)ptrs, sizes, n,
						    (CUmemLocation *)locations, indices,
						    n_locations, flags, stream));
}

/* ---- fills ---- */

static int fill_2d(void *dst, size_t pitch, int value, size_t width, size_t height,
		   cudaStream_t stream, bool async)
{
	if (async)
		return driver()->cuMemsetD2D8Async(DEVICE(dst), pitch, (unsigned char)value, width,
						   height, stream);
	return driver()->cuMemsetD2D8(DEVICE(dst), pitch, (unsigned char)value, width, height);
}

/* Adjacent slices are filled like more rows. */
static int fill_3d(struct cudaPitchedPtr p, int value, struct cudaExtent e, cudaStream_t stream,
		   bool async)
{
	size_t slice = p.pitch * p.ysize;
	int result = SIM_OK;

	if (p.ysize == e.height || e.depth < 2)
		return fill_2d(p.ptr, p.pitch, value, e.width, e.height * e.depth, stream, async);
	for (size_t z = 0; !result && z < e.depth; z++)
		result = fill_2d((char *)p.ptr + z * slice, p.pitch, value, e.width, e.height,
				 stream, async);
	return result;
}

RT_CALL(cudaMemset, driver()->cuMemsetD8(DEVICE(dst), (unsigned char)value, bytes), void *dst,
	int value, size_t bytes)
RT_CALL(cudaMemsetAsync,
	driver()->cuMemsetD8Async(DEVICE(dst), (unsigned char)value, bytes, stream), void *dst,
	int value, size_t bytes, cudaStream_t stream)
RT_CALL(cudaMemset2D, fill_2d(dst, pitch, value, width, height, NULL, false), void *dst,
	size_t pitch, int value, size_t width, size_t height)
RT_CALL(cudaMemset2DAsync, fill_2d(dst, pitch, value, width, height, stream, true), void *dst,
	size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
RT_CALL(cudaMemset3D, fill_3d(p, value, extent, NULL, false), struct cudaPitchedPtr p, int value,
	struct cudaExtent extent)
RT_CALL(cudaMemset3DAsync, fill_3d(p, value, extent, stream, true), struct cudaPitchedPtr p,
	int value, struct cudaExtent extent, cudaStream_t stream)

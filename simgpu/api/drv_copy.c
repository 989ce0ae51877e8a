/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's copies and fills. Arrays have no contents here.
 */
#include <string.h>
#include "graph_nodes.h"

#define COPY(name, dst_type, src_type)                                   \
	SIM_API CUresult name(dst_type dst, src_type src, size_t bytes)  \
	{                                                                \
		DRV_ENTER();                                             \
		return DRV(box_copy(ROW(dst, src, bytes), NULL, false)); \
	}

#define COPY_ASYNC(name, dst_type, src_type)                                             \
	SIM_API CUresult name(dst_type dst, src_type src, size_t bytes, CUstream stream) \
	{                                                                                \
		DRV_ENTER();                                                             \
		return DRV(box_copy(ROW(dst, src, bytes), stream, true));                \
	}

COPY(cuMemcpy, CUdeviceptr, CUdeviceptr)
COPY(cuMemcpyHtoD_v2, CUdeviceptr, const void *)
COPY(cuMemcpyDtoH_v2, void *, CUdeviceptr)
COPY(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr)
COPY_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr)

DRV_CALL(cuMemcpyPeer, box_copy(ROW(dst, src, bytes), NULL, false), CUdeviceptr dst,
	 UNUSED CUcontext to, CUdeviceptr src, UNUSED CUcontext from, size_t bytes)
DRV_CALL(cuMemcpyPeerAsync, box_copy(ROW(dst, src, bytes), stream, true), CUdeviceptr dst,
	 UNUSED CUcontext to, CUdeviceptr src, UNUSED CUcontext from, size_t bytes, CUstream stream)

/* ---- rows and boxes ---- */

static void *end_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t at)
{
	return (char *)(type == CU_MEMORYTYPE_HOST ? (void *)host : (void *)device) + at;
}

static bool of_array(CUmemorytype source, CUmemorytype target)
{
	return source == CU_MEMORYTYPE_ARRAY || target == CU_MEMORYTYPE_ARRAY;
}

static size_t pitch_of(size_t pitch, size_t width)
{
	return pitch ? pitch : width;
}

static int copy_2d(const CUDA_MEMCPY2D *c, void *stream, bool async)
{
	struct box b;

	if (!c)
		return SIM_INVALID;
	if (of_array(c->srcMemoryType, c->dstMemoryType))
		return SIM_OK;
	b = (struct box){ .dpitch = pitch_of(c->dstPitch, c->WidthInBytes),
			  .spitch = pitch_of(c->srcPitch, c->WidthInBytes),
			  .width = c->WidthInBytes,
			  .height = c->Height,
			  .depth = 1 };
	if (b.width > b.dpitch || b.width > b.spitch)
		return SIM_INVALID;
	b.dst = end_of(c->dstMemoryType, c->dstHost, c->dstDevice,
		       c->dstY * b.dpitch + c->dstXInBytes);
	b.src = end_of(c->srcMemoryType, c->srcHost, c->srcDevice,
		       c->srcY * b.spitch + c->srcXInBytes);
	return box_copy(&b, stream, async);
}

int box_of_3d(const CUDA_MEMCPY3D *c, struct box *b)
{
	*b = (struct box){ .dpitch = pitch_of(c->dstPitch, c->WidthInBytes),
			   .spitch = pitch_of(c->srcPitch, c->WidthInBytes),
			   .width = c->WidthInBytes,
			   .height = c->Height,
			   .depth = c->Depth };
	b->dslice = b->dpitch * pitch_of(c->dstHeight, c->Height);
	b->sslice = b->spitch * pitch_of(c->srcHeight, c->Height);
	if (b->width > b->dpitch || b->width > b->spitch)
		return SIM_INVALID;
	b->dst = end_of(c->dstMemoryType, c->dstHost, c->dstDevice,
			c->dstZ * b->dslice + c->dstY * b->dpitch + c->dstXInBytes);
	b->src = end_of(c->srcMemoryType, c->srcHost, c->srcDevice,
			c->srcZ * b->sslice + c->srcY * b->spitch + c->srcXInBytes);
	return SIM_OK;
}

static int copy_3d(const CUDA_MEMCPY3D *c, void *stream, bool async)
{
	struct box b;
	int result;

	if (!c)
		return SIM_INVALID;
	if (of_array(c->srcMemoryType, c->dstMemoryType))
		return SIM_OK;
	result = box_of_3d(c, &b);
	return result ? result : box_copy(&b, stream, async);
}

/* The struct for peers has the contexts in fields that are reserved in CUDA_MEMCPY3D. */
static int peer_3d(const CUDA_MEMCPY3D_PEER *c, void *stream, bool async)
{
	CUDA_MEMCPY3D plain;

	if (!c)
		return SIM_INVALID;
	memcpy(&plain, c, sizeof(plain));
	return copy_3d(&plain, stream, async);
}

DRV_CALL(cuMemcpy2D_v2, copy_2d(copy, NULL, false), const CUDA_MEMCPY2D *copy)
DRV_CALL(cuMemcpy2DAsync_v2, copy_2d(copy, stream, true), const CUDA_MEMCPY2D *copy,
	 CUstream stream)
DRV_CALL(cuMemcpy3D_v2, copy_3d(copy, NULL, false), const CUDA_MEMCPY3D *copy)
DRV_CALL(cuMemcpy3DAsync_v2, copy_3d(copy, stream, true), const CUDA_MEMCPY3D *copy,
	 CUstream stream)
DRV_CALL(cuMemcpy3DPeer, peer_3d(copy, NULL, false), const CUDA_MEMCPY3D_PEER *copy)
DRV_CALL(cuMemcpy3DPeerAsync, peer_3d(copy, stream, true), const CUDA_MEMCPY3D_PEER *copy,
	 CUstream stream)

/* ---- batches ---- */

SIM_API CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
				       size_t n, CUmemcpyAttributes *attributes, size_t *indices,
				       size_t n_attributes, CUstream stream)
{
	int result = dsts && srcs && sizes && n ? SIM_OK : SIM_INVALID;

	(void)attributes, (void)indices, (void)n_attributes;
	DRV_ENTER();
	for (size_t i = 0; !result && i < n; i++)
		result = box_copy(ROW(dsts[i], srcs[i], sizes[i]), stream, true);
	return DRV(result);
}

static int copy_operand(const CUDA_MEMCPY3D_BATCH_OP *o, void *stream)
{
	const CUmemcpy3DOperand *to = &o->dst, *from = &o->src;
	struct box b = { .width = o->extent.width,
			 .height = o->extent.height,
			 .depth = o->extent.depth };

	if (to->type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
	    from->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
		return SIM_OK;
	b.dst = (void *)to->op.ptr.ptr;
	b.src = (const void *)from->op.ptr.ptr;
	b.dpitch = pitch_of(to->op.ptr.rowLength, b.width);
	b.spitch = pitch_of(from->op.ptr.rowLength, b.width);
	b.dslice = b.dpitch * pitch_of(to->op.ptr.layerHeight, b.height);
	b.sslice = b.spitch * pitch_of(from->op.ptr.layerHeight, b.height);
	return box_copy(&b, stream, true);
}

SIM_API CUresult cuMemcpy3DBatchAsync_v2(size_t n, CUDA_MEMCPY3D_BATCH_OP *list,
					 unsigned long long flags, CUstream stream)
{
	int result = list && n && !flags ? SIM_OK : SIM_INVALID;

	DRV_ENTER();
	for (size_t i = 0; !result && i < n; i++)
		result = copy_operand(&list[i], stream);
	return DRV(result);
}

/* ---- fills ---- */

static int fill(CUdeviceptr dst, size_t pitch, unsigned int value, size_t n, size_t rows,
		unsigned int unit, void *stream)
{
	struct box b = { .dst = (void *)dst,
			 .dpitch = pitch,
			 .width = n * unit,
			 .height = rows,
			 .depth = 1,
			 .value = value,
			 .unit = unit };

	if (dst % unit || (rows > 1 && (pitch % unit || pitch < n * unit)))
		return SIM_INVALID;
	return box_fill(&b, stream);
}

#define FILL(name, flat, type, unit)                                                            \
	DRV_CALL(name##_v2, fill(dst, 0, value, n, 1, unit, NULL), CUdeviceptr dst, type value, \
		 size_t n)                                                                      \
	DRV_CALL(name##Async, fill(dst, 0, value, n, 1, unit, stream), CUdeviceptr dst,         \
		 type value, size_t n, CUstream stream)                                         \
	DRV_CALL(flat##_v2, fill(dst, pitch, value, n, rows, unit, NULL), CUdeviceptr dst,      \
		 size_t pitch, type value, size_t n, size_t rows)                               \
	DRV_CALL(flat##Async, fill(dst, pitch, value, n, rows, unit, stream), CUdeviceptr dst,  \
		 size_t pitch, type value, size_t n, size_t rows, CUstream stream)

FILL(cuMemsetD8, cuMemsetD2D8, unsigned char, 1)
FILL(cuMemsetD16, cuMemsetD2D16, unsigned short, 2)
FILL(cuMemsetD32, cuMemsetD2D32, unsigned int, 4)

/* Managed memory stays where it is. */
DRV_CALL(cuMemPrefetchAsync_v2, stream_valid(stream), UNUSED CUdeviceptr ptr, UNUSED size_t bytes,
	 UNUSED CUmemLocation location, UNUSED unsigned int flags, CUstream stream)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays, textures and surfaces: arrays take memory, textures are handles.
 */
#include <string.h>
#include "traced.h"

#define ARRAY_KIND   SIM_KIND('A', 'R', 'R', '1')
#define TEXTURE_KIND SIM_KIND('T', 'E', 'X', '1')

struct array {
	uintptr_t memory;
	uint32_t owner; /* id of the context that it ends with */
	struct cudaChannelFormatDesc format;
	struct cudaExtent extent;
	unsigned int flags;
};

static size_t bytes_of(const struct cudaChannelFormatDesc *f, struct cudaExtent e)
{
	size_t element = (f->x + f->y + f->z + f->w + 7) / 8;

	return element * (e.width ? e.width : 1) * (e.height ? e.height : 1) *
	       (e.depth ? e.depth : 1);
}

static int create_array(void **out, struct cudaChannelFormatDesc format, struct cudaExtent extent,
			unsigned int flags)
{
	struct array *a;
	int result;

	if (!out || !extent.width)
		return SIM_INVALID;
	a = sim_handle(ARRAY_KIND, sizeof(*a));
	if (!a)
		return SIM_NOMEM;
	*a = (struct array){ 0, ctx_owner(sim_device()), format, extent, flags };
	result = memory_alloc(sim_device(), &a->memory, bytes_of(&format, extent));
	if (result)
		sim_handle_free(a);
	else
		*out = a;
	return result;
}

static int destroy(void *array)
{
	struct array *a = sim_handle_check(array, ARRAY_KIND);

	if (!a || memory_owner(a->memory) != a->owner)
		return SIM_BAD_HANDLE;
	memory_free(a->memory);
	sim_handle_free(a);
	return SIM_OK;
}

static int texture(unsigned long long *out)
{
	void *h = out ? sim_handle(TEXTURE_KIND, 8) : NULL;

	if (!h)
		return SIM_INVALID;
	*out = (unsigned long long)(uintptr_t)h;
	return SIM_OK;
}

static int drop_texture(unsigned long long object)
{
	void *h = (void *)(uintptr_t)object;

	if (!sim_handle_check(h, TEXTURE_KIND))
		return SIM_INVALID;
	sim_handle_free(h);
	return SIM_OK;
}

/* ---- runtime ---- */

RT_TRACED(cudaMalloc3DArray, v3020, (array, desc, extent, flags),
	  desc ? create_array((void **)array, *desc, extent, flags) : SIM_INVALID,
	  cudaArray_t *array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
	  unsigned int flags)

SIM_API cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
				    size_t width, size_t height, unsigned int flags)
{
	struct cudaExtent extent = { width, height, 0 };

	TRACED_RT(cudaMallocArray_v3020, array, desc, width, height, flags);
	RT_ENTER();
	return RT(desc ? create_array((void **)array, *desc, extent, flags) : SIM_INVALID);
}

RT_TRACED(cudaFreeArray, v3020, (array), array ? destroy(array) : SIM_OK, cudaArray_t array)

/* A pyramid of levels takes a third more than its base. */
SIM_API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array,
					     const struct cudaChannelFormatDesc *desc,
					     struct cudaExtent extent, unsigned int levels,
					     unsigned int flags)
{
	if (levels > 1)
		extent.width += extent.width / 3;
	return cudaMalloc3DArray((cudaArray_t *)array, desc, extent, flags);
}

SIM_API cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *level, cudaMipmappedArray_const_t array,
					       unsigned int n)
{
	(void)n;
	*level = (cudaArray_t)array;
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
				     unsigned int *flags, cudaArray_t array)
{
	struct array *a = sim_handle_check(array, ARRAY_KIND);

	if (!a)
		return RT(SIM_BAD_HANDLE);
	if (desc)
		*desc = a->format;
	if (extent)
		*extent = a->extent;
	if (flags)
		*flags = a->flags;
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
	return cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)array);
}

SIM_API struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
							   enum cudaChannelFormatKind kind)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, kind };
}

RT_CALL(cudaCreateTextureObject, texture(object), cudaTextureObject_t *object,
	UNUSED const struct cudaResourceDesc *resource, UNUSED const struct cudaTextureDesc *desc,
	UNUSED const struct cudaResourceViewDesc *view)
RT_PLAIN(cudaDestroyTextureObject, drop_texture(object), cudaTextureObject_t object)

/* ---- driver ---- */

static struct cudaChannelFormatDesc format_of(CUarray_format format, unsigned int channels)
{
	/* The low bits of the format numbers: 1 and 8 are one byte, 2, 9 and 16 two, the rest four.
	 */
	int bits = format == 1 || format == 8			? 8
		   : format == 2 || format == 9 || format == 16 ? 16
								: 32;

	return (struct cudaChannelFormatDesc){ bits, channels > 1 ? bits : 0,
					       channels > 2 ? bits : 0, channels > 3 ? bits : 0,
					       cudaChannelFormatKindUnsigned };
}

SIM_API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
	TRACED_DRV(cuArrayCreate_v2, array, d);
	DRV_ENTER();
	if (!d)
		return DRV(SIM_INVALID);
	return DRV(create_array((void **)array, format_of(d->Format, d->NumChannels),
				(struct cudaExtent){ d->Width, d->Height, 0 }, 0));
}

SIM_API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	TRACED_DRV(cuArray3DCreate_v2, array, d);
	DRV_ENTER();
	if (!d)
		return DRV(SIM_INVALID);
	return DRV(create_array((void **)array, format_of(d->Format, d->NumChannels),
				(struct cudaExtent){ d->Width, d->Height, d->Depth }, d->Flags));
}

DRV_TRACED_PLAIN(cuArrayDestroy, (array), destroy(array), CUarray array)

DRV_PLAIN(cuMipmappedArrayDestroy, destroy(array), CUmipmappedArray array)
DRV_CALL(cuTexObjectCreate, texture(object), CUtexObject *object,
	 UNUSED const CUDA_RESOURCE_DESC *resource, UNUSED const CUDA_TEXTURE_DESC *desc,
	 UNUSED const CUDA_RESOURCE_VIEW_DESC *view)
DRV_PLAIN(cuTexObjectDestroy, drop_texture(object), CUtexObject object)

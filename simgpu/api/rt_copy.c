/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's copies and fills. The direction is taken from the addresses, as with unified
 * addressing. What is put on a recording stream becomes a node and moves nothing.
 */
#include "cudart.h"

static int copy(void *dst, const void *src, size_t bytes, int kind)
{
	if ((unsigned int)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	return sim_copy(dst, src, bytes);
}

static int put(void *stream, enum node_type type)
{
	int result = stream_valid(stream);

	if (result)
		return result;
	return stream_captures(stream, type, 0, NULL, NULL) ? -1 : capture_legacy(stream);
}

static int copy_async(void *dst, const void *src, size_t bytes, int kind, void *stream)
{
	int result = put(stream, NODE_MEMCPY);

	return result ? (result < 0 ? SIM_OK : result) : copy(dst, src, bytes, kind);
}

static int copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		   size_t height, int kind)
{
	if (width > dpitch || width > spitch)
		return cudaErrorInvalidPitchValue;
	for (size_t i = 0; i < height; i++) {
		int result =
			copy((char *)dst + i * dpitch, (const char *)src + i * spitch, width, kind);

		if (result)
			return result;
	}
	return SIM_OK;
}

SIM_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	int result;

	RT_ENTER();
	result = capture_forbids();
	return RT(result ? result : copy(dst, src, bytes, kind));
}

SIM_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
				    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	RT_ENTER();
	return RT(copy_async(dst, src, bytes, kind, stream));
}

SIM_API cudaError_t cudaMemcpyPeer(void *dst, int to, const void *src, int from, size_t bytes)
{
	(void)to;
	(void)from;
	RT_ENTER();
	return RT(sim_copy(dst, src, bytes));
}

SIM_API cudaError_t cudaMemcpyPeerAsync(void *dst, int to, const void *src, int from, size_t bytes,
					cudaStream_t stream)
{
	(void)to;
	(void)from;
	RT_ENTER();
	return RT(copy_async(dst, src, bytes, cudaMemcpyDefault, stream));
}

SIM_API cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
				 size_t width, size_t height, enum cudaMemcpyKind kind)
{
	RT_ENTER();
	return RT(copy_2d(dst, dpitch, src, spitch, width, height, kind));
}

SIM_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
				      size_t width, size_t height, enum cudaMemcpyKind kind,
				      cudaStream_t stream)
{
	int result;

	RT_ENTER();
	result = put(stream, NODE_MEMCPY);
	if (result)
		return RT(result < 0 ? SIM_OK : result);
	return RT(copy_2d(dst, dpitch, src, spitch, width, height, kind));
}

SIM_API cudaError_t cudaMemset(void *dst, int value, size_t bytes)
{
	int result;

	RT_ENTER();
	result = capture_legacy(NULL);
	return RT(result ? result : sim_fill(dst, value, bytes));
}

SIM_API cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
	int result;

	RT_ENTER();
	result = put(stream, NODE_MEMSET);
	if (result)
		return RT(result < 0 ? SIM_OK : result);
	return RT(sim_fill(dst, value, bytes));
}

SIM_API cudaError_t cudaMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	RT_ENTER();
	for (size_t i = 0; i < height; i++)
		sim_fill((char *)dst + i * pitch, value, width);
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaMemset2DAsync(void *dst, size_t pitch, int value, size_t width,
				      size_t height, cudaStream_t stream)
{
	int result;

	RT_ENTER();
	result = put(stream, NODE_MEMSET);
	return result ? RT(result < 0 ? SIM_OK : result)
		      : cudaMemset2D(dst, pitch, value, width, height);
}

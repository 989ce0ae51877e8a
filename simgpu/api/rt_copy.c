/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's copies and fills. The direction is taken from the addresses, as with unified
 * addressing. What is put on a recording stream becomes a node and moves nothing. What moves moves
 * at once; when it ends is another matter (../core/clock.h).
 */
#include "../core/clock.h"
#include "cudart.h"

static int copy(void *dst, const void *src, size_t bytes, int kind)
{
	int result;

	if ((unsigned int)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	result = sim_copy(dst, src, bytes);
	if (!result && bytes && sim_is_device_ptr(src) && !sim_is_device_ptr(dst))
		value_read(src, bytes);
	return result;
}

static int put_copy(void *stream, const void *dst, const void *src, size_t bytes)
{
	struct node_spec spec = { .type = NODE_MEMCPY, .ns = work_of_copy(dst, src, bytes).ns };
	int result = stream_valid(stream);

	if (result)
		return result;
	return stream_captures(stream, &spec) ? -1 : capture_legacy(stream);
}

static int put_fill(void *stream, size_t bytes)
{
	int result = stream_valid(stream);

	if (!result)
		result = capture_legacy(stream);
	if (result)
		return result;
	return stream_work(stream, NODE_MEMSET, time_of_bytes((double)bytes)) ? -1 : SIM_OK;
}

static int copy_async(void *dst, const void *src, size_t bytes, int kind, void *stream)
{
	int result = put_copy(stream, dst, src, bytes);

	if (result)
		return result < 0 ? SIM_OK : result;
	result = copy(dst, src, bytes, kind);
	if (!result)
		work_copy(stream, dst, src, bytes, false);
	return result;
}

static int copy_now(void *dst, const void *src, size_t bytes, int kind)
{
	int result = copy(dst, src, bytes, kind);

	if (!result)
		work_copy(NULL, dst, src, bytes, true);
	return result;
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

static int fill_2d(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	for (size_t i = 0; i < height; i++)
		sim_fill((char *)dst + i * pitch, value, width);
	return SIM_OK;
}

SIM_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	int result;

	RT_ENTER();
	result = capture_forbids();
	return RT(result ? result : copy_now(dst, src, bytes, kind));
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
	return RT(copy_now(dst, src, bytes, cudaMemcpyDefault));
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
	int result;

	RT_ENTER();
	result = copy_2d(dst, dpitch, src, spitch, width, height, kind);
	if (!result)
		work_copy(NULL, dst, src, width * height, true);
	return RT(result);
}

SIM_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
				      size_t width, size_t height, enum cudaMemcpyKind kind,
				      cudaStream_t stream)
{
	int result;

	RT_ENTER();
	result = put_copy(stream, dst, src, width * height);
	if (result)
		return RT(result < 0 ? SIM_OK : result);
	result = copy_2d(dst, dpitch, src, spitch, width, height, kind);
	if (!result)
		work_copy(stream, dst, src, width * height, false);
	return RT(result);
}

SIM_API cudaError_t cudaMemset(void *dst, int value, size_t bytes)
{
	int result;

	RT_ENTER();
	result = put_fill(NULL, bytes);
	return RT(result ? result : sim_fill(dst, value, bytes));
}

SIM_API cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
	int result;

	RT_ENTER();
	result = put_fill(stream, bytes);
	if (result)
		return RT(result < 0 ? SIM_OK : result);
	return RT(sim_fill(dst, value, bytes));
}

SIM_API cudaError_t cudaMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	int result;

	RT_ENTER();
	result = put_fill(NULL, width * height);
	return RT(result ? result : fill_2d(dst, pitch, value, width, height));
}

SIM_API cudaError_t cudaMemset2DAsync(void *dst, size_t pitch, int value, size_t width,
				      size_t height, cudaStream_t stream)
{
	int result;

	RT_ENTER();
	result = put_fill(stream, width * height);
	if (result)
		return RT(result < 0 ? SIM_OK : result);
	return RT(fill_2d(dst, pitch, value, width, height));
}

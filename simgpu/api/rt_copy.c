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
		value_read(dst, src, bytes);
	return result;
}

/* ---- recorded ---- */

/* Rows that are copied, or filled if there is no source. */
struct rows {
	struct act act;
	void *dst;
	const void *src;
	size_t dpitch, spitch, width, height;
	uint32_t value;
	unsigned int unit;
};

/* A graph may be launched when memory of the host has long gone, unless that is pinned. */
static bool is_there(const void *p)
{
	struct host_range range;

	return sim_is_device_ptr(p) || host_find(p, &range);
}

static void copy_rows(struct act *act, void *stream)
{
	const struct rows *r = (const struct rows *)act;

	(void)stream;
	if (!is_there(r->dst) || (r->src && !is_there(r->src)))
		return;
	for (size_t i = 0; i < r->height; i++) {
		char *to = (char *)r->dst + i * r->dpitch;

		if (r->src)
			copy(to, (const char *)r->src + i * r->spitch, r->width, cudaMemcpyDefault);
		else
			sim_fill_pattern(to, r->value, r->unit, r->width);
	}
}

static void record_rows(void *stream, const struct rows *what)
{
	struct rows *r = (struct rows *)act_new(sizeof(*r), copy_rows);

	if (r) {
		struct act act = r->act;

		*r = *what;
		r->act = act;
	}
	capture_act(stream, &r->act);
}

/* Less than 0: it was recorded. */
static int put_copy(void *stream, const struct rows *r)
{
	size_t bytes = r->width * r->height;
	struct node_spec spec = { .type = NODE_MEMCPY,
				  .ns = work_of_copy(r->dst, r->src, bytes).ns };
	int result = stream_valid(stream);

	if (result)
		return result;
	if (!stream_captures(stream, &spec))
		return capture_legacy(stream);
	record_rows(stream, r);
	return -1;
}

static int put_fill(void *stream, const struct rows *r)
{
	int result = stream_valid(stream);

	if (!result)
		result = capture_legacy(stream);
	if (result)
		return result;
	if (!stream_work(stream, NODE_MEMSET, time_of_bytes((double)r->width * r->height)))
		return SIM_OK;
	record_rows(stream, r);
	return -1;
}

int fill_async(void *dst, uint32_t value, unsigned int unit, size_t bytes, void *stream)
{
	struct rows r = { .dst = dst, .value = value, .unit = unit, .width = bytes, .height = 1 };
	int result = put_fill(stream, &r);

	return result ? (result < 0 ? SIM_OK : result) : sim_fill_pattern(dst, value, unit, bytes);
}

/* ---- done at once ---- */

static int copy_async(void *dst, const void *src, size_t bytes, int kind, void *stream)
{
	struct rows r = { .dst = dst, .src = src, .width = bytes, .height = 1 };
	int result = put_copy(stream, &r);

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

static int fill_2d(void *dst, size_t pitch, int value, size_t width, size_t height, void *stream)
{
	struct rows r = { .dst = dst,
			  .value = (unsigned char)value,
			  .unit = 1,
			  .width = width,
			  .height = height,
			  .dpitch = pitch };
	int result = put_fill(stream, &r);

	if (result)
		return result < 0 ? SIM_OK : result;
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

RT_CALL(cudaMemcpyAsync, copy_async(dst, src, bytes, kind, stream), void *dst, const void *src,
	size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
RT_CALL(cudaMemcpyPeer, copy_now(dst, src, bytes, cudaMemcpyDefault), void *dst, UNUSED int to,
	const void *src, UNUSED int from, size_t bytes)
RT_CALL(cudaMemcpyPeerAsync, copy_async(dst, src, bytes, cudaMemcpyDefault, stream), void *dst,
	UNUSED int to, const void *src, UNUSED int from, size_t bytes, cudaStream_t stream)

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
	struct rows r = { .dst = dst,
			  .src = src,
			  .width = width,
			  .height = height,
			  .dpitch = dpitch,
			  .spitch = spitch };
	int result;

	RT_ENTER();
	result = put_copy(stream, &r);
	if (result)
		return RT(result < 0 ? SIM_OK : result);
	result = copy_2d(dst, dpitch, src, spitch, width, height, kind);
	if (!result)
		work_copy(stream, dst, src, width * height, false);
	return RT(result);
}

RT_CALL(cudaMemset, fill_async(dst, (unsigned char)value, 1, bytes, NULL), void *dst, int value,
	size_t bytes)
RT_CALL(cudaMemsetAsync, fill_async(dst, (unsigned char)value, 1, bytes, stream), void *dst,
	int value, size_t bytes, cudaStream_t stream)
RT_CALL(cudaMemset2D, fill_2d(dst, pitch, value, width, height, NULL), void *dst, size_t pitch,
	int value, size_t width, size_t height)
RT_CALL(cudaMemset2DAsync, fill_2d(dst, pitch, value, width, height, stream), void *dst,
	size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)

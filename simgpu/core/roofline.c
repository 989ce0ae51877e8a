/* SPDX-License-Identifier: Apache-2.0
 *
 * How long work takes on the card: the longer of its arithmetic and its memory traffic, at the part
 * of the data sheet's speeds (cards.def) that programs reach, and never less than a kernel needs to
 * start. Of most kernels only the number of threads is known. A thread is assumed to move as many
 * bytes as in PyTorch's element-wise kernels. Any thread.
 */
#include "clock.h"
#include "memory.h"
#include "usage.h"

#define KERNEL_LEAST	 2000.0 /* ns */
#define COPY_LEAST	 2000.0
#define COLLECTIVE_LEAST 15000.0
#define REACHED_MEMORY	 0.8 /* of the data sheet's figure */
#define REACHED_PRODUCT	 0.6
#define REACHED_LINK	 0.8
#define BYTES_OF_THREAD	 48.0
#define PAGEABLE	 8.0 /* GB/s: host memory that the driver stages */
#define STAGED_AT_ONCE	 65536

static uint64_t longer(double a, double b)
{
	return (uint64_t)(a > b ? a : b);
}

/* GB/s are bytes/ns. */
uint64_t time_of_bytes(double bytes)
{
	return longer(KERNEL_LEAST, bytes / (sim_card()->speed.memory * REACHED_MEMORY));
}

uint64_t time_of_kernel(uint64_t blocks, uint64_t threads)
{
	return time_of_bytes((double)blocks * (double)threads * BYTES_OF_THREAD);
}

uint64_t time_of_cycles(int64_t cycles)
{
	return cycles > 0 ? (uint64_t)((double)cycles * 1e6 / sim_card()->clock_khz) : 0;
}

/* TFLOP/s by cudaDataType_t: float64 and complex128; 16 bits; 8 bits and fewer. All others count as
 * float32, because TF32 is used only if the program asks for it. */
static double speed_of(int cuda_type)
{
	const struct sim_speed *s = &sim_card()->speed;

	switch (cuda_type) {
	case 1:
	case 5:
		return s->f64;
	case 2:
	case 6:
	case 14:
	case 15:
		return s->f16;
	case 3:
	case 7:
	case 8:
	case 9:
	case 28:
	case 29:
	case 33:
		return s->f8 > 0 ? s->f8 : s->f16;
	default:
		return s->f32;
	}
}

uint64_t time_of_product(double operations, int cuda_type, double bytes)
{
	/* TFLOP/s are 1000 operations/ns. */
	double arithmetic = operations / (speed_of(cuda_type) * 1000 * REACHED_PRODUCT);

	return KERNEL_LEAST + longer(arithmetic, (double)time_of_bytes(bytes));
}

/* A ring: each rank passes on all but its own part. */
uint64_t time_of_collective(double bytes, int ranks)
{
	double part = ranks > 1 ? (double)(ranks - 1) / ranks : 0;

	return (uint64_t)COLLECTIVE_LEAST +
	       (uint64_t)(bytes * part / (sim_card()->speed.card * REACHED_LINK));
}

/* ---- copies ---- */

struct work work_of_copy(const void *dst, const void *src, size_t bytes)
{
	int to = sim_ptr_device(dst), from = sim_ptr_device(src);
	double speed = sim_card()->speed.host * REACHED_LINK;
	struct work w = { 0 };

	if (to >= 0 && from >= 0 && to == from)
		speed = sim_card()->speed.memory * REACHED_MEMORY / 2;
	else if (to >= 0 && from >= 0)
		speed = sim_card()->speed.card * REACHED_LINK;
	else if (to >= 0)
		w.engine = ENGINE_TO_DEVICE;
	else if (from >= 0)
		w.engine = ENGINE_TO_HOST;
	w.ns = (uint64_t)COPY_LEAST + (uint64_t)((double)bytes / speed);
	return w;
}

static bool pageable(const void *p)
{
	struct host_range r;

	return !host_find(p, &r);
}

void work_copy(void *stream, const void *dst, const void *src, size_t bytes, bool blocking)
{
	struct sim_stream *s = stream_find(stream);
	struct work w;

	usage_work();
	if (!s || !clock_on())
		return;
	w = work_of_copy(dst, src, bytes);
	if (w.engine == ENGINE_TO_DEVICE && pageable(src)) {
		clock_spend(s->device, (uint64_t)((double)bytes / PAGEABLE));
		blocking = blocking && bytes > STAGED_AT_ONCE;
	} else if (w.engine == ENGINE_TO_HOST) {
		blocking = blocking || pageable(dst);
	} else if (w.engine == ENGINE_NONE) {
		blocking = false;
	}
	clock_work(s, &w);
	if (blocking)
		clock_wait(s->device, clock_end(s));
}

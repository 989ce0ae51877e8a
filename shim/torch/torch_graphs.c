/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begin and end of CUDA graph captures by PyTorch: the allocator serves a capture from a private
 * pool, which its reports do not name. Application threads; the framework's functions run as ever,
 * and might throw.
 */
#include "torch.h"
#include "../../format/record.h"

#define BEGIN	   _ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode
#define FINISH	   _ZN2at4cuda9CUDAGraph11capture_endEv
#define FINISH_PRE _ZN2at4cuda9CUDAGraph15capture_end_preEv
#define POOL	   _ZN2at4cuda9CUDAGraph4poolEv

#pragma GCC visibility push(default)
void BEGIN(void *graph, struct torch_pool pool, int mode);
void FINISH(void *graph);
void FINISH_PRE(void *graph);
#pragma GCC visibility pop

typedef void begin_fn(void *, struct torch_pool, int);
typedef void finish_fn(void *);
typedef struct torch_pool pool_fn(void *);

void torch_pool_event(unsigned kind, unsigned flags, struct torch_pool pool, int8_t device)
{
	struct gmt_event e = {
		.kind = (uint16_t)kind,
		.flags = (uint16_t)flags,
		.arg0 = pool.first,
		.arg1 = pool.second,
	};

	if (!gmt_recording())
		return;
	e.stream = torch_stream(device, &device);
	e.device = device;
	gmt_capture(&e);
}

/* The event follows the call, in which random generators still allocate from the common pool. */
void BEGIN(void *graph, struct torch_pool pool, int mode)
{
	static void *cache;
	begin_fn *real = (begin_fn *)torch_real(&cache, NAME(BEGIN));

	real(graph, pool, mode);
	torch_pool_event(GMT_GRAPH_BEGIN, 0, pool, -1);
}

/* If the capture failed, real() throws, and no end is recorded. */
static void finish_capture(finish_fn *real, void *graph)
{
	static void *cache;
	pool_fn *pool = (pool_fn *)torch_real(&cache, NAME(POOL));

	real(graph);
	if (pool)
		torch_pool_event(GMT_GRAPH_END, 0, pool(graph), -1);
}

void FINISH(void *graph)
{
	static void *cache;

	finish_capture((finish_fn *)torch_real(&cache, NAME(FINISH)), graph);
}

/* Later releases have two halves of it, which Python calls too; the first one ends the capture. A
 * second end changes nothing. */
void FINISH_PRE(void *graph)
{
	static void *cache;

	finish_capture((finish_fn *)torch_real(&cache, NAME(FINISH_PRE)), graph);
}

bool torch_graphs(void)
{
	static void *cache;

	return torch_real(&cache, NAME(FINISH)) != NULL;
}

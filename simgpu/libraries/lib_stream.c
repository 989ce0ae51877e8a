/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of libraries on a stream: they take time and compute nothing. Any thread. */
#include "../core/clock.h"
#include "../core/devices.h"
#include "lib.h"

void lib_launch(void *stream)
{
	stream_work(stream, NODE_KERNEL, time_of_kernel(1, 1));
}

void lib_product(void *stream, double operations, int cuda_type, double bytes)
{
	stream_work(stream, NODE_KERNEL, time_of_product(operations, cuda_type, bytes));
}

void lib_collective(void *stream, double bytes, int ranks)
{
	struct node_spec spec = { .type = NODE_KERNEL, .ns = time_of_collective(bytes, ranks) };
	struct sim_stream *s = stream_find(stream);

	ctx_load(sim_device(), CTX_KERNELS, NULL);
	if (s && !stream_captures(stream, &spec))
		clock_work(s, &(struct work){ .ns = spec.ns, .collective = true });
}

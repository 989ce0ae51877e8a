/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: kernels are checked and timed but not run, host functions are called at once.
 */
#include "clock.h"
#include "contents.h"
#include "devices.h"
#include "usage.h"

#define THREADS_MOST 1024
#define HOST_NS	     5000

bool stream_work(void *stream, enum node_type type, uint64_t ns)
{
	struct sim_stream *s = stream_find(stream);

	usage_work();
	progress_work((uint64_t)type << 56 ^ ns);
	if (type == NODE_KERNEL) {
		ctx_load(s ? s->device : sim_device(), CTX_KERNELS, NULL);
		counts_launch();
	}
	if (stream_captures(stream, &(struct node_spec){ .type = type, .ns = ns }))
		return true;
	if (s)
		clock_work(s, &(struct work){ .ns = ns });
	return false;
}

int launch_kernel(void *stream, void **args, unsigned int grid, unsigned int block, size_t shared)
{
	return launch_kernel_for(stream, args, grid, block, shared, time_of_kernel(grid, block));
}

int launch_kernel_for(void *stream, void **args, unsigned int grid, unsigned int block,
		      size_t shared, uint64_t ns)
{
	int result;

	if (!grid || !block || block > THREADS_MOST || shared > sim_card()->shared_optin)
		return SIM_INVALID;
	if (stream_valid(stream))
		return SIM_BAD_HANDLE;
	if (!ctx_load(sim_device(), CTX_KERNELS, NULL))
		return SIM_NOMEM;
	result = capture_legacy(stream);
	if (result)
		return result;
	if (!stream_work(stream, NODE_KERNEL, ns))
		contents_launch(args);
	else
		capture_act(stream, act_launch(args));
	return SIM_OK;
}

int launch_host(void *stream, void (*fn)(void *), void *data)
{
	if (!fn)
		return SIM_INVALID;
	if (stream_valid(stream))
		return SIM_BAD_HANDLE;
	if (stream_captures(stream,
			    &(struct node_spec){
				    .type = NODE_HOST, .fn = fn, .data = data, .ns = HOST_NS }))
		return SIM_OK;
	clock_work(stream_find(stream), &(struct work){ .ns = HOST_NS });
	fn(data);
	return SIM_OK;
}

/* Two blocks if threads and shared memory allow them: the kernel's registers are not known. */
int occupancy(int *blocks, int threads, size_t shared)
{
	const struct sim_card *c = sim_card();
	int n = 2;

	if (!blocks || threads < 1)
		return SIM_INVALID;
	if (n > c->threads_per_sm / threads)
		n = c->threads_per_sm / threads;
	if (shared > c->shared_optin || threads > THREADS_MOST)
		n = 0;
	else if (shared && (size_t)n > c->shared_per_sm / (shared + 1024))
		n = (int)(c->shared_per_sm / (shared + 1024));
	*blocks = n;
	return SIM_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels: checked, noticed, never run. Host functions on a stream are called at once.
 */
#include "core.h"

#define THREADS_MOST 1024

int launch_kernel(void *stream, void **args, unsigned int grid, unsigned int block, size_t shared)
{
	if (!grid || !block || block > THREADS_MOST || shared > sim_card()->shared_optin)
		return SIM_INVALID;
	if (stream_valid(stream))
		return SIM_BAD_HANDLE;
	if (stream_captures(stream, NODE_KERNEL, 0, NULL, NULL))
		return SIM_OK;
	contents_launch(args);
	return capture_legacy(stream);
}

int launch_host(void *stream, void (*fn)(void *), void *data)
{
	if (!fn)
		return SIM_INVALID;
	if (stream_valid(stream))
		return SIM_BAD_HANDLE;
	if (!stream_captures(stream, NODE_HOST, 0, (void *)fn, data))
		fn(data);
	return SIM_OK;
}

/* Registers are not known: two blocks where threads and shared memory allow them. */
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's launches.
 */
#include <string.h>
#include "../core/clock.h"
#include "../kernels/kernels.h"
#include "cudart.h"
#include "graph_nodes.h"

#define ELEMENT	  4.0	     /* bytes, on average */
#define SIZE_MOST 0x0d000000 /* larger 4-byte arguments count as floats */

static uint64_t time_of(const void *fn, unsigned int blocks, unsigned int threads, void **args)
{
	const struct kernel *k = args ? kernel_find(fn) : NULL;

	return k && k->spins ? time_of_cycles(*(int64_t *)args[0])
			     : time_of_kernel(blocks, threads);
}

/* Keeps the launch request with the recorded node, which runs it if the parameters are known. */
static void record(const struct launch *l, void *stream)
{
	struct act *kept = kernel_keep(l);

	if (kept && kernel_kept(kept)->args && !library_check(l->fn))
		capture_act(stream, act_keep(kept));
	else if (!library_check(l->fn))
		kernel_record(l->fn, stream, l->grid, l->args);
	capture_launch(stream, kept);
}

static int launch_known(const struct launch *l, void *stream, uint64_t ns)
{
	unsigned int n = l->grid[0] * l->grid[1] * l->grid[2];
	unsigned int threads = l->block[0] * l->block[1] * l->block[2];
	bool records = sim_capturing(stream);
	bool done = !records && kernel_launch(l->fn, l->grid, l->args);
	int result;

	if (done)
		contents_wipe();
	result = launch_kernel_for(stream, done ? NULL : l->args, n, threads, l->shared,
				   ns ? ns : time_of(l->fn, n, threads, l->args));
	if (records && !result)
		record(l, stream);
	return result;
}

/* Time of a compiled kernel in ns by the bytes of its tensors, or 0 if not known. The blocks do not
 * count, because an autotuner would find that fewer threads are always faster. Number of elements:
 * the product of the 4-byte integers, at most to the allocation's end. */
static uint64_t time_of_arguments(void *function, void **params)
{
	struct kernel *k = function_check(function) ? kernel_find(function) : NULL;
	const struct parameter *p;
	int n = k && params ? kernel_parameters(k, &p) : 0;
	double elements = 0, bytes = 0;

	for (int i = 0; i < n; i++)
		if (p[i].size == 4) {
			int32_t number = *(const int32_t *)params[i];

			if (number > 1 && number < SIZE_MOST)
				elements = (elements > 0 ? elements : 1) * number;
		}
	for (int i = 0; i < n; i++)
		if (p[i].size == 8) {
			uintptr_t address = *(const uintptr_t *)params[i];
			double room = (double)memory_room(address, elements > 0);

			bytes += elements > 0 && elements * ELEMENT < room ? elements * ELEMENT
									   : room;
		}
	return bytes > 0 ? time_of_bytes(bytes) : 0;
}

/* Packed arguments are pairs of a key and a value: the buffer and its size. NULL if the offsets of
 * the parameters are not known. */
void **unpack(const void *function, void **extra, void *params[PARAMETERS])
{
	struct kernel *k = kernel_find(function);
	const struct parameter *p;
	int n = k ? kernel_parameters(k, &p) : -1;
	size_t bytes;

	if (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE)
		return NULL;
	bytes = *(size_t *)extra[3];
	contents_scan(extra[1], bytes);
	if (n < 0 || n > PARAMETERS)
		return NULL;
	for (int i = 0; i < n; i++) {
		if ((size_t)p[i].offset + p[i].size > bytes)
			return NULL;
		params[i] = (char *)extra[1] + p[i].offset;
	}
	return params;
}

static bool can_run(const void *function)
{
	const struct kernel *k = kernel_find(function);

	return !k || kernel_has_code(k);
}

SIM_API CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy,
				unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
				unsigned int shared, CUstream stream, void **params, void **extra)
{
	struct launch l = { function, { gx, gy, gz }, { bx, by, bz }, shared, params };
	void *unpacked[PARAMETERS];

	DRV_ENTER();
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!can_run(function))
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (!params && extra)
		l.args = unpack(function, extra, unpacked);
	if (!library_check(function))
		return DRV(launch_known(&l, stream, time_of_arguments(function, l.args)));
	library_launch(stream);
	if (sim_capturing(stream))
		record(&l, stream);
	return DRV(SIM_OK);
}

SIM_API CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params,
				  void **extra)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
			      c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream, params,
			      extra);
}

SIM_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
					   unsigned int gz, unsigned int bx, unsigned int by,
					   unsigned int bz, unsigned int shared, CUstream stream,
					   void **params)
{
	return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

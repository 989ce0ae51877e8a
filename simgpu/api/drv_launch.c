/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's launches.
 */
#include <string.h>
#include "../core/clock.h"
#include "../kernels/kernels.h"
#include "cudart.h"

#define ELEMENT	  4.0	     /* bytes, on average */
#define SIZE_MOST 0x0d000000 /* larger 4-byte arguments are taken for floats */

static uint64_t time_of(const void *fn, unsigned int blocks, unsigned int threads, void **args)
{
	const struct kernel *k = args ? kernel_find(fn) : NULL;

	return k && k->spins ? time_of_cycles(*(int64_t *)args[0])
			     : time_of_kernel(blocks, threads);
}

static int launch_known(const void *fn, const unsigned int blocks[3], unsigned int threads,
			void **args, size_t shared, void *stream, uint64_t ns)
{
	unsigned int n = blocks[0] * blocks[1] * blocks[2];
	bool records = sim_capturing(stream);
	bool done = !records && kernel_launch(fn, blocks, args);
	int result;

	if (done)
		contents_wipe();
	result = launch_kernel_for(stream, done ? NULL : args, n, threads, shared,
				   ns ? ns : time_of(fn, n, threads, args));
	if (records && !result)
		kernel_record(fn, stream, blocks, args);
	return result;
}

/* A compiled kernel takes as long as its tensors have bytes, however it is cut into blocks: else a
 * tuner would find that fewer threads are always faster. Its whole numbers are sizes, whose product
 * is the number of elements; a tensor ends with its allocation at the latest. 0: not known. */
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

SIM_API CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy,
				unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
				unsigned int shared, CUstream stream, void **params, void **extra)
{
	DRV_ENTER();
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (library_check(function)) {
		library_launch(stream);
		return DRV(SIM_OK);
	}
	/* Packed arguments: pairs of a key and a value, the buffer and its size. */
	if (extra && extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER &&
	    extra[2] == CU_LAUNCH_PARAM_BUFFER_SIZE)
		contents_scan(extra[1], *(size_t *)extra[3]);
	return DRV(launch_known(function, (unsigned int[]){ gx, gy, gz }, bx * by * bz, params,
				shared, stream, time_of_arguments(function, params)));
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

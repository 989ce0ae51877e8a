/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and sentences of the error codes, and the runtime's last error of each thread.
 */
#include "cudart.h"

static const struct error {
	int code;
	const char *driver, *runtime, *text;
} errors[] = {
#define ERROR(code, driver, runtime, text) { code, driver, runtime, text },
#include "cuda_errors.def"
};

static __thread int last;

static const struct error *find_error(int code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == code)
			return &errors[i];
	return NULL;
}

int sim_error(int result)
{
	/* "Not ready" is an answer, not an error. */
	if (result && result != SIM_NOT_READY)
		last = result;
	return result;
}

SIM_API cudaError_t cudaGetLastError(void)
{
	int result = last;

	last = 0;
	return (cudaError_t)result;
}

SIM_API cudaError_t cudaPeekAtLastError(void)
{
	return (cudaError_t)last;
}

SIM_API const char *cudaGetErrorName(cudaError_t error)
{
	const struct error *e = find_error(error);

	return e && e->runtime ? e->runtime : "unrecognized error code";
}

SIM_API const char *cudaGetErrorString(cudaError_t error)
{
	const struct error *e = find_error(error);

	return e && e->runtime ? e->text : "unrecognized error code";
}

SIM_API CUresult cuGetErrorName(CUresult error, const char **name)
{
	const struct error *e = find_error(error);

	*name = e ? e->driver : NULL;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGetErrorString(CUresult error, const char **text)
{
	const struct error *e = find_error(error);

	*text = e && e->driver ? e->text : NULL;
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

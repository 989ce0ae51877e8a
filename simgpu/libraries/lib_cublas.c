/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS: handles and their settings. Products are WORK rows: they take time, and their results are
 * forgotten (lib_work.c). Any thread.
 */
#include "lib.h"

enum { CUBLAS_OK = 0, CUBLAS_NOT_INITIALIZED = 1, CUBLAS_NO_ROOM = 3, CUBLAS_INVALID = 7 };

#define BLAS_BLOCKS 3

struct blas {
	void *stream;
	int pointer_mode, atomics_mode, math_mode, sm_target;
	int emulation_strategy, special_values, mantissa_control, mantissa_bits, mantissa_offset;
	void *mantissa_pointer;
	void *own[BLAS_BLOCKS];
	void *workspace; /* the program's; NULL: own[0] */
};

#define KIND LIB_BLAS

size_t lib_blas_workspace(void)
{
	return lib_capability() >= 90 ? 32 * MIB : 4 * MIB;
}

/* Bytes of a new handle's blocks: the default workspace, and two small ones. On an H100 version 13
 * takes twice the documented workspace. A card smaller than any real one has that alone. */
static size_t own_bytes(int block)
{
	static const size_t small[] = { 0, 128 << 10, 1 << 10 };
	const bool whole = !sim_card()->small;

	if (block)
		return whole ? small[block] : 0;
	if (whole && lib_capability() >= 90 && lib_version("cublas", 0) >= 13)
		return 2 * lib_blas_workspace();
	return lib_blas_workspace();
}

API(int, cublasDestroy_v2, struct blas *b)
{
	if (!sim_handle_check(b, KIND))
		return CUBLAS_NOT_INITIALIZED;
	for (int i = 0; i < BLAS_BLOCKS; i++)
		lib_free(b->own[i]);
	sim_handle_free(b);
	return CUBLAS_OK;
}

API(int, cublasCreate_v2, struct blas **out)
{
	struct blas *b;

	if (!out)
		return CUBLAS_INVALID;
	b = sim_handle(KIND, sizeof(*b));
	if (!b)
		return CUBLAS_NO_ROOM;
	for (int i = 0; i < BLAS_BLOCKS; i++) {
		const size_t bytes = own_bytes(i);

		b->own[i] = bytes ? lib_alloc(bytes) : NULL;
		if (bytes && !b->own[i]) {
			cublasDestroy_v2(b);
			return CUBLAS_NO_ROOM;
		}
	}
	*out = b;
	return CUBLAS_OK;
}

#define SETTING(set, get, type, field) \
	API_SETTING(set, get, KIND, blas, type, field, CUBLAS_NOT_INITIALIZED, CUBLAS_INVALID)

/* Setting a stream resets the workspace to the library's own, as in the real one. */
API(int, cublasSetStream_v2, struct blas *b, void *stream)
{
	if (!sim_handle_check(b, KIND))
		return CUBLAS_NOT_INITIALIZED;
	b->stream = stream;
	b->workspace = NULL;
	return CUBLAS_OK;
}

API(int, cublasGetStream_v2, struct blas *b, void **stream)
{
	if (!sim_handle_check(b, KIND))
		return CUBLAS_NOT_INITIALIZED;
	if (!stream)
		return CUBLAS_INVALID;
	*stream = b->stream;
	return CUBLAS_OK;
}

SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, pointer_mode)
SETTING(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics_mode)
SETTING(cublasSetMathMode, cublasGetMathMode, int, math_mode)
SETTING(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_target)
SETTING(cublasSetEmulationStrategy, cublasGetEmulationStrategy, int, emulation_strategy)
SETTING(cublasSetEmulationSpecialValuesSupport, cublasGetEmulationSpecialValuesSupport, int,
	special_values)
SETTING(cublasSetFixedPointEmulationMantissaControl, cublasGetFixedPointEmulationMantissaControl,
	int, mantissa_control)
SETTING(cublasSetFixedPointEmulationMaxMantissaBitCount,
	cublasGetFixedPointEmulationMaxMantissaBitCount, int, mantissa_bits)
SETTING(cublasSetFixedPointEmulationMantissaBitOffset,
	cublasGetFixedPointEmulationMantissaBitOffset, int, mantissa_offset)
SETTING(cublasSetFixedPointEmulationMantissaBitCountPointer,
	cublasGetFixedPointEmulationMantissaBitCountPointer, void *, mantissa_pointer)

API(int, cublasSetWorkspace_v2, struct blas *b, void *workspace, UNUSED size_t bytes)
{
	if (!sim_handle_check(b, KIND))
		return CUBLAS_NOT_INITIALIZED;
	b->workspace = workspace;
	return CUBLAS_OK;
}

void lib_use_blas(void *handle)
{
	struct blas *b = sim_handle_check(handle, KIND);

	if (b)
		lib_use(b->workspace ? b->workspace : b->own[0]);
}

API_VERSION(cublasGetVersion_v2, "cublas", 10000, CUBLAS_INVALID, UNUSED struct blas *b, int *out)
API_PROPERTY(cublasGetProperty, "cublas", CUBLAS_INVALID)
API_CALL(size_t, cublasGetCudartVersion, sim_cuda_version(), void)

API(int, cublasGetLoggerCallback, void **callback)
{
	if (!callback)
		return CUBLAS_INVALID;
	*callback = NULL;
	return CUBLAS_OK;
}

static const struct {
	int status;
	const char *name, *text;
} statuses[] = {
	{ 0, "CUBLAS_STATUS_SUCCESS", "success" },
	{ 1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized" },
	{ 3, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed" },
	{ 7, "CUBLAS_STATUS_INVALID_VALUE", "an invalid value was given" },
	{ 8, "CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature" },
	{ 11, "CUBLAS_STATUS_MAPPING_ERROR", "texture memory could not be used" },
	{ 13, "CUBLAS_STATUS_EXECUTION_FAILED", "the program failed on the device" },
	{ 14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed" },
	{ 15, "CUBLAS_STATUS_NOT_SUPPORTED", "the operation is not supported" },
	{ 16, "CUBLAS_STATUS_LICENSE_ERROR", "the licence does not allow it" },
};

#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))

static const char *status_string(int status, bool name)
{
	for (size_t i = 0; i < STATUSES; i++)
		if (statuses[i].status == status)
			return name ? statuses[i].name : statuses[i].text;
	return "unknown cuBLAS status";
}

API_CALL(const char *, cublasGetStatusName, status_string(status, true), int status)
API_CALL(const char *, cublasGetStatusString, status_string(status, false), int status)
API_CALL(const char *, cublasLtGetStatusName, status_string(status, true), int status)
API_CALL(const char *, cublasLtGetStatusString, status_string(status, false), int status)

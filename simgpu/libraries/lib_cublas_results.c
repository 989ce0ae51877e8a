/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS functions that return results: sums and indices (zero in host memory, forgotten in device
 * memory) and checks of arguments (no error). Any thread.
 */
#include <string.h>
#include "lib.h"

static int give(void *result, size_t bytes)
{
	if (!result)
		return 7;
	if (sim_is_device_ptr(result))
		sim_forget(result);
	else
		memset(result, 0, bytes);
	return 0;
}

/* Launches the kernel that computes the result from x and y. */
static int reduce(const char *name, void *handle, const void *x, const void *y, void *result,
		  size_t bytes)
{
	const uintptr_t words[] = { (uintptr_t)handle, (uintptr_t)x, (uintptr_t)y,
				    (uintptr_t)result };

	if (result)
		lib_work(name, words, 4);
	return give(result, bytes);
}

/* a, b: arrays of addresses on the device. */
static int solve(const char *name, void *handle, const void *a, const void *b, int *info)
{
	const uintptr_t words[] = { (uintptr_t)handle, (uintptr_t)a, (uintptr_t)b };

	lib_work(name, words, 3);
	return give(info, sizeof(*info));
}

/* Functions that reduce one vector to one number; the second of each pair takes 64-bit counts. */
#define REDUCE(name, suffix, bytes)                                                                \
	API(int, name##suffix, void *h, int n, const void *x, int incx, void *result)              \
	{                                                                                          \
		(void)n, (void)incx;                                                               \
		return reduce(#name #suffix, h, x, NULL, result, bytes);                           \
	}                                                                                          \
	API(int, name##suffix##_64, void *h, int64_t n, const void *x, int64_t incx, void *result) \
	{                                                                                          \
		(void)n, (void)incx;                                                               \
		return reduce(#name #suffix "_64", h, x, NULL, result, bytes);                     \
	}

REDUCE(cublasSnrm2, _v2, 4)
REDUCE(cublasDnrm2, _v2, 8)
REDUCE(cublasScnrm2, _v2, 4)
REDUCE(cublasDznrm2, _v2, 8)
REDUCE(cublasSasum, _v2, 4)
REDUCE(cublasDasum, _v2, 8)
REDUCE(cublasScasum, _v2, 4)
REDUCE(cublasDzasum, _v2, 8)

/* Like REDUCE, but the result is an index, which is as wide as the counts. */
#define INDEX(name)                                                                           \
	API(int, name, void *h, int n, const void *x, int incx, int *result)                  \
	{                                                                                     \
		(void)n, (void)incx;                                                          \
		return reduce(#name, h, x, NULL, result, sizeof(*result));                    \
	}                                                                                     \
	API(int, name##_64, void *h, int64_t n, const void *x, int64_t incx, int64_t *result) \
	{                                                                                     \
		(void)n, (void)incx;                                                          \
		return reduce(#name "_64", h, x, NULL, result, sizeof(*result));              \
	}

INDEX(cublasIsamax_v2)
INDEX(cublasIdamax_v2)
INDEX(cublasIcamax_v2)
INDEX(cublasIzamax_v2)
INDEX(cublasIsamin_v2)
INDEX(cublasIdamin_v2)
INDEX(cublasIcamin_v2)
INDEX(cublasIzamin_v2)

#define INDEX_EX(name)                                                                 \
	API(int, name, void *h, int n, const void *x, int type, int incx, int *result) \
	{                                                                              \
		(void)n, (void)type, (void)incx;                                       \
		return reduce(#name, h, x, NULL, result, sizeof(*result));             \
	}                                                                              \
	API(int, name##_64, void *h, int64_t n, const void *x, int type, int64_t incx, \
	    int64_t *result)                                                           \
	{                                                                              \
		(void)n, (void)type, (void)incx;                                       \
		return reduce(#name "_64", h, x, NULL, result, sizeof(*result));       \
	}

INDEX_EX(cublasIamaxEx)
INDEX_EX(cublasIaminEx)

#define REDUCE_EX(name)                                                                      \
	API(int, name, void *h, int n, const void *x, int type, int incx, void *result,      \
	    int result_type, int execution)                                                  \
	{                                                                                    \
		(void)n, (void)type, (void)incx, (void)execution;                            \
		return reduce(#name, h, x, NULL, result, lib_type_bytes(result_type));       \
	}                                                                                    \
	API(int, name##_64, void *h, int64_t n, const void *x, int type, int64_t incx,       \
	    void *result, int result_type, int execution)                                    \
	{                                                                                    \
		(void)n, (void)type, (void)incx, (void)execution;                            \
		return reduce(#name "_64", h, x, NULL, result, lib_type_bytes(result_type)); \
	}

REDUCE_EX(cublasNrm2Ex)
REDUCE_EX(cublasAsumEx)

#define DOT(name, bytes)                                                                    \
	API(int, name, void *h, int n, const void *x, int incx, const void *y, int incy,    \
	    void *result)                                                                   \
	{                                                                                   \
		(void)n, (void)incx, (void)incy;                                            \
		return reduce(#name, h, x, y, result, bytes);                               \
	}                                                                                   \
	API(int, name##_64, void *h, int64_t n, const void *x, int64_t incx, const void *y, \
	    int64_t incy, void *result)                                                     \
	{                                                                                   \
		(void)n, (void)incx, (void)incy;                                            \
		return reduce(#name "_64", h, x, y, result, bytes);                         \
	}

DOT(cublasSdot_v2, 4)
DOT(cublasDdot_v2, 8)
DOT(cublasCdotu_v2, 8)
DOT(cublasCdotc_v2, 8)
DOT(cublasZdotu_v2, 16)
DOT(cublasZdotc_v2, 16)

#define DOT_EX(name)                                                                              \
	API(int, name, void *h, int n, const void *x, int xtype, int incx, const void *y,         \
	    int ytype, int incy, void *result, int result_type, int execution)                    \
	{                                                                                         \
		(void)n, (void)xtype, (void)incx;                                                 \
		(void)ytype, (void)incy, (void)execution;                                         \
		return reduce(#name, h, x, y, result, lib_type_bytes(result_type));               \
	}                                                                                         \
	API(int, name##_64, void *h, int64_t n, const void *x, int xtype, int64_t incx,           \
	    const void *y, int ytype, int64_t incy, void *result, int result_type, int execution) \
	{                                                                                         \
		(void)n, (void)xtype, (void)incx;                                                 \
		(void)ytype, (void)incy, (void)execution;                                         \
		return reduce(#name "_64", h, x, y, result, lib_type_bytes(result_type));         \
	}

DOT_EX(cublasDotEx)
DOT_EX(cublasDotcEx)

/* Batched solvers: `info` is host memory here, for the check of the arguments. */
#define BATCHED(type)                                                                            \
	API(int, cublas##type##geqrfBatched, void *h, int m, int n, void *a, int lda, void *tau, \
	    int *info, int batch)                                                                \
	{                                                                                        \
		(void)m, (void)n, (void)lda, (void)batch;                                        \
		return solve("cublas" #type "geqrfBatched", h, a, tau, info);                    \
	}                                                                                        \
	API(int, cublas##type##getrsBatched, void *h, int trans, int n, int nrhs, void *a,       \
	    int lda, const int *pivot, void *b, int ldb, int *info, int batch)                   \
	{                                                                                        \
		(void)trans, (void)n, (void)nrhs, (void)lda;                                     \
		(void)pivot, (void)ldb, (void)batch;                                             \
		return solve("cublas" #type "getrsBatched", h, a, b, info);                      \
	}                                                                                        \
	API(int, cublas##type##gelsBatched, void *h, int trans, int m, int n, int nrhs, void *a, \
	    int lda, void *c, int ldc, int *info, int *device_info, int batch)                   \
	{                                                                                        \
		(void)trans, (void)m, (void)n, (void)nrhs, (void)lda;                            \
		(void)ldc, (void)batch;                                                          \
		if (device_info)                                                                 \
			sim_forget(device_info);                                                 \
		return solve("cublas" #type "gelsBatched", h, a, c, info);                       \
	}

BATCHED(S)
BATCHED(D)
BATCHED(C)
BATCHED(Z)

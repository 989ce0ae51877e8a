/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS functions that give something back to the host: sums and indices (zero, where the result
 * is host memory; forgotten, where it is on the device) and argument checks (all well). Any thread.
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

/* Functions that reduce one vector to one number; the second of each pair takes 64-bit counts. */
#define REDUCE(name, suffix, bytes)                                                                \
	API(int, name##suffix, void *h, int n, const void *x, int incx, void *result)              \
	{                                                                                          \
		(void)h, (void)n, (void)x, (void)incx;                                             \
		return give(result, bytes);                                                        \
	}                                                                                          \
	API(int, name##suffix##_64, void *h, int64_t n, const void *x, int64_t incx, void *result) \
	{                                                                                          \
		(void)h, (void)n, (void)x, (void)incx;                                             \
		return give(result, bytes);                                                        \
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
		(void)h, (void)n, (void)x, (void)incx;                                        \
		return give(result, sizeof(*result));                                         \
	}                                                                                     \
	API(int, name##_64, void *h, int64_t n, const void *x, int64_t incx, int64_t *result) \
	{                                                                                     \
		(void)h, (void)n, (void)x, (void)incx;                                        \
		return give(result, sizeof(*result));                                         \
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
		(void)h, (void)n, (void)x, (void)type, (void)incx;                     \
		return give(result, sizeof(*result));                                  \
	}                                                                              \
	API(int, name##_64, void *h, int64_t n, const void *x, int type, int64_t incx, \
	    int64_t *result)                                                           \
	{                                                                              \
		(void)h, (void)n, (void)x, (void)type, (void)incx;                     \
		return give(result, sizeof(*result));                                  \
	}

INDEX_EX(cublasIamaxEx)
INDEX_EX(cublasIaminEx)

#define REDUCE_EX(name)                                                                 \
	API(int, name, void *h, int n, const void *x, int type, int incx, void *result, \
	    int result_type, int execution)                                             \
	{                                                                               \
		(void)h, (void)n, (void)x, (void)type, (void)incx, (void)execution;     \
		return give(result, lib_type_bytes(result_type));                       \
	}                                                                               \
	API(int, name##_64, void *h, int64_t n, const void *x, int type, int64_t incx,  \
	    void *result, int result_type, int execution)                               \
	{                                                                               \
		(void)h, (void)n, (void)x, (void)type, (void)incx, (void)execution;     \
		return give(result, lib_type_bytes(result_type));                       \
	}

REDUCE_EX(cublasNrm2Ex)
REDUCE_EX(cublasAsumEx)

#define DOT(name, bytes)                                                                    \
	API(int, name, void *h, int n, const void *x, int incx, const void *y, int incy,    \
	    void *result)                                                                   \
	{                                                                                   \
		(void)h, (void)n, (void)x, (void)incx, (void)y, (void)incy;                 \
		return give(result, bytes);                                                 \
	}                                                                                   \
	API(int, name##_64, void *h, int64_t n, const void *x, int64_t incx, const void *y, \
	    int64_t incy, void *result)                                                     \
	{                                                                                   \
		(void)h, (void)n, (void)x, (void)incx, (void)y, (void)incy;                 \
		return give(result, bytes);                                                 \
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
		(void)h, (void)n, (void)x, (void)xtype, (void)incx;                               \
		(void)y, (void)ytype, (void)incy, (void)execution;                                \
		return give(result, lib_type_bytes(result_type));                                 \
	}                                                                                         \
	API(int, name##_64, void *h, int64_t n, const void *x, int xtype, int64_t incx,           \
	    const void *y, int ytype, int64_t incy, void *result, int result_type, int execution) \
	{                                                                                         \
		(void)h, (void)n, (void)x, (void)xtype, (void)incx;                               \
		(void)y, (void)ytype, (void)incy, (void)execution;                                \
		return give(result, lib_type_bytes(result_type));                                 \
	}

DOT_EX(cublasDotEx)
DOT_EX(cublasDotcEx)

/* Batched solvers: `info` is host memory here and says whether the arguments were right. */
#define BATCHED(type)                                                                            \
	API(int, cublas##type##geqrfBatched, void *h, int m, int n, void *a, int lda, void *tau, \
	    int *info, int batch)                                                                \
	{                                                                                        \
		(void)h, (void)m, (void)n, (void)a, (void)lda, (void)tau, (void)batch;           \
		return give(info, sizeof(*info));                                                \
	}                                                                                        \
	API(int, cublas##type##getrsBatched, void *h, int trans, int n, int nrhs, void *a,       \
	    int lda, const int *pivot, void *b, int ldb, int *info, int batch)                   \
	{                                                                                        \
		(void)h, (void)trans, (void)n, (void)nrhs, (void)a, (void)lda;                   \
		(void)pivot, (void)b, (void)ldb, (void)batch;                                    \
		return give(info, sizeof(*info));                                                \
	}                                                                                        \
	API(int, cublas##type##gelsBatched, void *h, int trans, int m, int n, int nrhs, void *a, \
	    int lda, void *c, int ldc, int *info, int *device_info, int batch)                   \
	{                                                                                        \
		(void)h, (void)trans, (void)m, (void)n, (void)nrhs, (void)a, (void)lda;          \
		(void)c, (void)ldc, (void)batch;                                                 \
		if (device_info)                                                                 \
			sim_forget(device_info);                                                 \
		return give(info, sizeof(*info));                                                \
	}

BATCHED(S)
BATCHED(D)
BATCHED(C)
BATCHED(Z)

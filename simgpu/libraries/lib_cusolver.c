/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER: handles, and the workspace of each solver. The sizes follow LAPACK's blocked algorithms
 * (a block of 32 columns): an approximation, and never zero. A solver's `info` on the device reads
 * as zero, which means success. Any thread.
 */
#include "lib.h"

enum { SOLVER_OK = 0, SOLVER_ALLOC_FAILED = 2, SOLVER_INVALID = 3 };

int cublasCreate_v2(void **out); /* lib_cublas.c */
int cublasDestroy_v2(void *handle);

#define KIND  LIB_SOLVER
#define BLOCK 32

struct solver {
	void *stream;
	int deterministic, math, emulation;
	void *blas, *own; /* of a handle for dense matrices */
};

#define OBJECT(make, unmake) \
	API_OBJECT(make, unmake, KIND, sizeof(struct solver), SOLVER_INVALID, SOLVER_ALLOC_FAILED)

/* A handle for dense matrices has a handle of cuBLAS and a block as large as cuBLAS's documented
 * workspace, on an H100. */
API(int, cusolverDnDestroy, struct solver *s)
{
	if (!sim_handle_check(s, KIND))
		return SOLVER_OK;
	lib_free(s->own);
	if (s->blas)
		cublasDestroy_v2(s->blas);
	sim_handle_free(s);
	return SOLVER_OK;
}

API(int, cusolverDnCreate, void **out)
{
	int result =
		lib_create(out, KIND, sizeof(struct solver), SOLVER_INVALID, SOLVER_ALLOC_FAILED);
	struct solver *s = result ? NULL : *out;

	if (!s)
		return result;
	s->own = lib_alloc(lib_blas_workspace());
	if (s->own && !cublasCreate_v2(&s->blas))
		return SOLVER_OK;
	cusolverDnDestroy(s);
	return SOLVER_ALLOC_FAILED;
}

OBJECT(cusolverSpCreate, cusolverSpDestroy)
OBJECT(cusolverDnCreateParams, cusolverDnDestroyParams)
OBJECT(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo)
OBJECT(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo)
OBJECT(cusolverDnIRSParamsCreate, cusolverDnIRSParamsDestroy)
OBJECT(cusolverDnIRSInfosCreate, cusolverDnIRSInfosDestroy)

#define SETTING(set, get, type, field) \
	API_SETTING(set, get, KIND, solver, type, field, SOLVER_INVALID, SOLVER_INVALID)

SETTING(cusolverDnSetStream, cusolverDnGetStream, void *, stream)
SETTING(cusolverSpSetStream, cusolverSpGetStream, void *, stream)
SETTING(cusolverDnSetDeterministicMode, cusolverDnGetDeterministicMode, int, deterministic)
SETTING(cusolverDnSetMathMode, cusolverDnGetMathMode, int, math)
SETTING(cusolverDnSetEmulationStrategy, cusolverDnGetEmulationStrategy, int, emulation)

API_VERSION(cusolverGetVersion, "cusolver", 1000, SOLVER_INVALID, int *out)
API_PROPERTY(cusolverGetProperty, "cusolver", SOLVER_INVALID)

/* ---- workspaces, in elements ---- */

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t panel(int64_t m, int64_t n)
{
	return BLOCK * larger(larger(m, n), 1);
}

/* Eigenvectors by divide and conquer, or by Jacobi rotations. */
static int64_t eigen(int64_t n)
{
	return 1 + 6 * n + 2 * n * n;
}

/* The bidiagonal form, its two factors' scalars, and a panel. */
static int64_t singular(int64_t m, int64_t n)
{
	return 4 * larger(m, n) + panel(m, n) + larger(n, 1) * larger(n, 1);
}

static int give_elements(int *out, int64_t elements)
{
	if (!out)
		return SOLVER_INVALID;
	*out = lib_round_int(elements);
	return SOLVER_OK;
}

static int tell_bytes(size_t *device, size_t *host, int type, int64_t elements)
{
	if (!device || !host)
		return SOLVER_INVALID;
	*device = elements * lib_type_bytes(type);
	*host = 0;
	return SOLVER_OK;
}

#define SIZE(name, elements, ...)                                                 \
	API(int, cusolverDn##name##_bufferSize, UNUSED void *handle, __VA_ARGS__) \
	{                                                                         \
		return give_elements(lwork, elements);                            \
	}
/* Arguments on which the sizes do not depend: a matrix, its leading dimension, and others. */
#define MATRIX	 UNUSED void *a, UNUSED int lda
#define SIDES	 UNUSED int side, UNUSED int trans
#define OTHER(x) UNUSED void *x, UNUSED int ld##x
#define LWORK	 int *lwork
#define STEPS	 UNUSED long long

/* For every number type. */
#define ALL_TYPES(T)                                                                              \
	SIZE(T##potrf, panel(n, n), UNUSED int uplo, int n, MATRIX, LWORK)                        \
	SIZE(T##potri, panel(n, n), UNUSED int uplo, int n, MATRIX, LWORK)                        \
	SIZE(T##lauum, panel(n, n), UNUSED int uplo, int n, MATRIX, LWORK)                        \
	SIZE(T##getrf, panel(m, n), int m, int n, MATRIX, LWORK)                                  \
	SIZE(T##geqrf, panel(m, n), int m, int n, MATRIX, LWORK)                                  \
	SIZE(T##sytrf, panel(n, n), int n, MATRIX, LWORK)                                         \
	SIZE(T##sytri, panel(n, n), UNUSED int uplo, int n, MATRIX, UNUSED void *pivot, LWORK)    \
	SIZE(T##gebrd, panel(m, n), int m, int n, LWORK)                                          \
	SIZE(T##gesvd, singular(m, n), int m, int n, LWORK)                                       \
	SIZE(T##gesvdj, singular(m, n), UNUSED int job, UNUSED int economy, int m, int n, MATRIX, \
	     UNUSED void *s, OTHER(u), OTHER(v), LWORK, UNUSED void *params)                      \
	SIZE(T##gesvdjBatched, larger(batch, 1) * singular(m, n), UNUSED int job, int m, int n,   \
	     MATRIX, UNUSED void *s, OTHER(u), OTHER(v), LWORK, UNUSED void *params, int batch)   \
	SIZE(T##gesvdaStridedBatched, larger(batch, 1) * singular(m, n), UNUSED int job,          \
	     UNUSED int rank, int m, int n, MATRIX, STEPS sa, UNUSED void *s, STEPS ss, OTHER(u), \
	     STEPS su, OTHER(v), STEPS sv, LWORK, int batch)

/* Real and complex types call the same solver by two names. */
#define SIDED_TYPES(T, gqr, mqr, gbr, gtr, mtr, trd)                                              \
	SIZE(T##gqr, panel(m, n), int m, int n, UNUSED int k, MATRIX, UNUSED void *tau, LWORK)    \
	SIZE(T##mqr, panel(m, n), SIDES, int m, int n, UNUSED int k, MATRIX, UNUSED void *tau,    \
	     OTHER(c), LWORK)                                                                     \
	SIZE(T##gbr, panel(m, n), UNUSED int side, int m, int n, UNUSED int k, MATRIX,            \
	     UNUSED void *tau, LWORK)                                                             \
	SIZE(T##gtr, panel(n, n), UNUSED int uplo, int n, MATRIX, UNUSED void *tau, LWORK)        \
	SIZE(T##mtr, panel(m, n), UNUSED int side, UNUSED int uplo, UNUSED int trans, int m,      \
	     int n, MATRIX, UNUSED void *tau, OTHER(c), LWORK)                                    \
	SIZE(T##trd, panel(n, n), UNUSED int uplo, int n, MATRIX, UNUSED void *d, UNUSED void *e, \
	     UNUSED void *tau, LWORK)

#define VECTORS UNUSED int job, UNUSED int uplo
#define EIGEN_TYPES(T, evd, evj, evjb, gvd, gvj)                                                   \
	SIZE(T##evd, eigen(n), VECTORS, int n, MATRIX, UNUSED void *w, LWORK)                      \
	SIZE(T##evj, eigen(n), VECTORS, int n, MATRIX, UNUSED void *w, LWORK, UNUSED void *params) \
	SIZE(T##evjb, larger(batch, 1) * eigen(n), VECTORS, int n, MATRIX, UNUSED void *w, LWORK,  \
	     UNUSED void *params, int batch)                                                       \
	SIZE(T##gvd, eigen(n), UNUSED int type, VECTORS, int n, MATRIX, OTHER(b), UNUSED void *w,  \
	     LWORK)                                                                                \
	SIZE(T##gvj, eigen(n), UNUSED int type, VECTORS, int n, MATRIX, OTHER(b), UNUSED void *w,  \
	     LWORK, UNUSED void *params)

ALL_TYPES(S)
ALL_TYPES(D)
ALL_TYPES(C)
ALL_TYPES(Z)
SIDED_TYPES(S, orgqr, ormqr, orgbr, orgtr, ormtr, sytrd)
SIDED_TYPES(D, orgqr, ormqr, orgbr, orgtr, ormtr, sytrd)
SIDED_TYPES(C, ungqr, unmqr, ungbr, ungtr, unmtr, hetrd)
SIDED_TYPES(Z, ungqr, unmqr, ungbr, ungtr, unmtr, hetrd)
EIGEN_TYPES(S, syevd, syevj, syevjBatched, sygvd, sygvj)
EIGEN_TYPES(D, syevd, syevj, syevjBatched, sygvd, sygvj)
EIGEN_TYPES(C, heevd, heevj, heevjBatched, hegvd, hegvj)
EIGEN_TYPES(Z, heevd, heevj, heevjBatched, hegvd, hegvj)

/* ---- the newer interface, which counts bytes and takes any type ---- */

#define XSIZE(name, type, elements, ...)                                          \
	API(int, cusolverDn##name##_bufferSize, UNUSED void *handle, __VA_ARGS__) \
	{                                                                         \
		return tell_bytes(device, host, type, elements);                  \
	}
#define PARAMS	   UNUSED void *params
#define XMATRIX	   int type, UNUSED const void *a, UNUSED int64_t lda
#define XVECTOR(x) UNUSED int type_##x, UNUSED const void *x
#define XOTHER(x)  XVECTOR(x), UNUSED int64_t ld##x
#define RESULT	   size_t *device, size_t *host
#define COMPUTE	   UNUSED int compute

XSIZE(Xpotrf, type, panel(n, n), PARAMS, UNUSED int uplo, int64_t n, XMATRIX, COMPUTE, RESULT)
XSIZE(Xgetrf, type, panel(m, n), PARAMS, int64_t m, int64_t n, XMATRIX, COMPUTE, RESULT)
XSIZE(Xgeqrf, type, panel(m, n), PARAMS, int64_t m, int64_t n, XMATRIX, XVECTOR(tau), COMPUTE,
      RESULT)
XSIZE(Xsyevd, type, eigen(n), PARAMS, VECTORS, int64_t n, XMATRIX, XVECTOR(w), COMPUTE, RESULT)
XSIZE(XsyevBatched, type, larger(batch, 1) * eigen(n), PARAMS, VECTORS, int64_t n, XMATRIX,
      XVECTOR(w), COMPUTE, RESULT, int64_t batch)
XSIZE(Xgeev, type, 2 * eigen(n), PARAMS, UNUSED int left, UNUSED int right, int64_t n, XMATRIX,
      XVECTOR(w), XOTHER(vl), XOTHER(vr), COMPUTE, RESULT)
XSIZE(Xgesvd, type, singular(m, n), PARAMS, UNUSED signed char jobu, UNUSED signed char jobv,
      int64_t m, int64_t n, XMATRIX, XVECTOR(s), XOTHER(u), XOTHER(v), COMPUTE, RESULT)
XSIZE(Xgesvdp, type, singular(m, n), PARAMS, UNUSED int job, UNUSED int economy, int64_t m,
      int64_t n, XMATRIX, XVECTOR(s), XOTHER(u), XOTHER(v), COMPUTE, RESULT)
XSIZE(Xtrtri, type, panel(n, n), UNUSED int uplo, UNUSED int diagonal, int64_t n, XMATRIX, RESULT)
XSIZE(Xsytrs, type, panel(n, columns), UNUSED int uplo, int64_t n, int64_t columns, XMATRIX,
      UNUSED const int64_t *pivot, XOTHER(b), RESULT)
XSIZE(Xlarft, type, panel(n, k), PARAMS, UNUSED int direct, UNUSED int stored, int64_t n, int64_t k,
      XMATRIX, XVECTOR(tau), XOTHER(t), COMPUTE, RESULT)

/* ---- reports of iterative solvers ---- */

API_CALL(int, cusolverDnXsyevjGetSweeps, give_elements(sweeps, 1), UNUSED void *handle,
	 UNUSED void *info, int *sweeps)
API_CALL(int, cusolverDnXgesvdjGetSweeps, give_elements(sweeps, 1), UNUSED void *handle,
	 UNUSED void *info, int *sweeps)

static int tell_residual(double *residual)
{
	if (!residual)
		return SOLVER_INVALID;
	*residual = 0;
	return SOLVER_OK;
}

API_CALL(int, cusolverDnXsyevjGetResidual, tell_residual(residual), UNUSED void *handle,
	 UNUSED void *info, double *residual)
API_CALL(int, cusolverDnXgesvdjGetResidual, tell_residual(residual), UNUSED void *handle,
	 UNUSED void *info, double *residual)

/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE: sizes of the buffers that operations need. Approximations: an index or a value for each
 * row, or for each entry if something is sorted. Any thread.
 */
#include "lib.h"

#define INVALID 3
#define LEAST	512

int cusparseSpMatGetSize(const void *matrix, int64_t *rows, int64_t *columns, int64_t *entries);

static int give_bytes(size_t *out, size_t bytes)
{
	if (!out)
		return INVALID;
	*out = bytes > LEAST ? bytes : LEAST;
	return 0;
}

/* The legacy interface counts bytes as int. */
static int tell_int(int *out, size_t bytes)
{
	if (!out)
		return INVALID;
	give_bytes(&bytes, bytes);
	*out = lib_round_int(bytes);
	return 0;
}

/* `of_row` bytes for each row of a sparse matrix and `of_entry` for each of its entries. */
static int tell_matrix(size_t *out, const void *matrix, size_t of_row, size_t of_entry)
{
	int64_t rows, columns, entries;
	int result = cusparseSpMatGetSize(matrix, &rows, &columns, &entries);

	return result ? result : give_bytes(out, rows * of_row + entries * of_entry);
}

#define SPARSE(x) const void *x
#define ANY(x)	  UNUSED const void *x
#define NUMBER(x) UNUSED int x

API_CALL(int, cusparseSpMV_bufferSize, tell_matrix(out, a, lib_type_bytes(type), 0), ANY(handle),
	 NUMBER(op), ANY(alpha), SPARSE(a), ANY(x), ANY(beta), ANY(y), int type, NUMBER(algorithm),
	 size_t *out)
API_CALL(int, cusparseSpMM_bufferSize, tell_matrix(out, a, lib_type_bytes(type), 0), ANY(handle),
	 NUMBER(op_a), NUMBER(op_b), ANY(alpha), SPARSE(a), ANY(b), ANY(beta), ANY(c), int type,
	 NUMBER(algorithm), size_t *out)
API_CALL(int, cusparseSDDMM_bufferSize, tell_matrix(out, c, lib_type_bytes(type), 0), ANY(handle),
	 NUMBER(op_a), NUMBER(op_b), ANY(alpha), ANY(a), ANY(b), ANY(beta), SPARSE(c), int type,
	 NUMBER(algorithm), size_t *out)
API_CALL(int, cusparseSpSV_bufferSize,
	 tell_matrix(out, a, 4 * sizeof(int) + lib_type_bytes(type), sizeof(int)), ANY(handle),
	 NUMBER(op), ANY(alpha), SPARSE(a), ANY(x), ANY(y), int type, NUMBER(algorithm), ANY(state),
	 size_t *out)
API_CALL(int, cusparseSpSM_bufferSize,
	 tell_matrix(out, a, 4 * sizeof(int) + lib_type_bytes(type), sizeof(int)), ANY(handle),
	 NUMBER(op_a), NUMBER(op_b), ANY(alpha), SPARSE(a), ANY(b), ANY(c), int type,
	 NUMBER(algorithm), ANY(state), size_t *out)

static int work(const char *name, const void *handle, const void *a, const void *b, const void *c,
		const void *buffer)
{
	const uintptr_t words[] = { (uintptr_t)handle, (uintptr_t)a, (uintptr_t)b, (uintptr_t)c,
				    (uintptr_t)buffer };

	lib_work(name, words, 5);
	return 0;
}

/* Both are called twice: without a buffer for its size, then with one. */
API_CALL(int, cusparseSpGEMM_workEstimation,
	 buffer ? work("cusparseSpGEMM_workEstimation", handle, a, b, c, buffer)
		: tell_matrix(out, a, sizeof(int), lib_type_bytes(type)),
	 const void *handle, NUMBER(op_a), NUMBER(op_b), ANY(alpha), SPARSE(a), SPARSE(b),
	 ANY(beta), SPARSE(c), int type, NUMBER(algorithm), ANY(state), size_t *out,
	 const void *buffer)
API_CALL(int, cusparseSpGEMM_compute,
	 buffer ? work("cusparseSpGEMM_compute", handle, a, b, c, buffer)
		: tell_matrix(out, a, sizeof(int), 2 * (sizeof(int) + lib_type_bytes(type))),
	 const void *handle, NUMBER(op_a), NUMBER(op_b), ANY(alpha), SPARSE(a), SPARSE(b),
	 ANY(beta), SPARSE(c), int type, NUMBER(algorithm), ANY(state), size_t *out,
	 const void *buffer)

/* ---- sorting and conversion ---- */

API_CALL(int, cusparseXcoosort_bufferSizeExt, give_bytes(out, 4 * sizeof(int) * (size_t)entries),
	 ANY(handle), NUMBER(m), NUMBER(n), int entries, ANY(rows), ANY(columns), size_t *out)
API_CALL(int, cusparseXcsrsort_bufferSizeExt, give_bytes(out, 4 * sizeof(int) * (size_t)entries),
	 ANY(handle), NUMBER(m), NUMBER(n), int entries, ANY(rows), ANY(columns), size_t *out)

/* The number of entries of a sum is not known, because the sum is not computed. It is zero here. */
API(int, cusparseXcsrgeam2Nnz, const void *handle, NUMBER(m), NUMBER(n), ANY(describe_a),
    NUMBER(entries_a), const void *rows_a, const void *columns_a, ANY(describe_b),
    NUMBER(entries_b), const void *rows_b, const void *columns_b, ANY(describe_c),
    const void *rows_c, int *total, const void *workspace)
{
	const uintptr_t words[] = { (uintptr_t)handle,	 (uintptr_t)rows_a,    (uintptr_t)columns_a,
				    (uintptr_t)rows_b,	 (uintptr_t)columns_b, (uintptr_t)rows_c,
				    (uintptr_t)workspace };

	if (!total)
		return INVALID;
	lib_work("cusparseXcsrgeam2Nnz", words, sizeof(words) / sizeof(words[0]));
	if (sim_is_device_ptr(total))
		sim_forget(total);
	else
		*total = 0;
	return 0;
}

/* For each number type: the legacy interface. */
#define TYPES(T)                                                                                 \
	API(int, cusparse##T##csrgeam2_bufferSizeExt, ANY(handle), int m, NUMBER(n), ANY(alpha), \
	    ANY(describe_a), NUMBER(entries_a), ANY(values_a), ANY(rows_a), ANY(columns_a),      \
	    ANY(beta), ANY(describe_b), NUMBER(entries_b), ANY(values_b), ANY(rows_b),           \
	    ANY(columns_b), ANY(describe_c), ANY(values_c), ANY(rows_c), ANY(columns_c),         \
	    size_t *out)                                                                         \
	{                                                                                        \
		return give_bytes(out, sizeof(int) * (size_t)m);                                 \
	}                                                                                        \
	API(int, cusparse##T##bsrsv2_bufferSize, ANY(handle), NUMBER(direction), NUMBER(op),     \
	    int rows, int entries, ANY(describe), ANY(values), ANY(offsets), ANY(columns),       \
	    NUMBER(block), ANY(info), int *out)                                                  \
	{                                                                                        \
		return tell_int(out, sizeof(int) * ((size_t)rows + entries));                    \
	}                                                                                        \
	API(int, cusparse##T##bsrsm2_bufferSize, ANY(handle), NUMBER(direction), NUMBER(op_a),   \
	    NUMBER(op_x), int rows, NUMBER(n), int entries, ANY(describe), ANY(values),          \
	    ANY(offsets), ANY(columns), NUMBER(block), ANY(info), int *out)                      \
	{                                                                                        \
		return tell_int(out, sizeof(int) * ((size_t)rows + entries));                    \
	}

TYPES(S)
TYPES(D)
TYPES(C)
TYPES(Z)

/* No zero pivot was met: the position is -1. */
#define PIVOT(name)                                                                  \
	API(int, name, ANY(handle), ANY(info), int *position)                        \
	{                                                                            \
		int none = -1;                                                       \
                                                                                     \
		return position ? sim_copy(position, &none, sizeof(none)) : INVALID; \
	}

PIVOT(cusparseXbsrsv2_zeroPivot)
PIVOT(cusparseXbsrsm2_zeroPivot)

/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE: descriptors that remember their shape, and buffer sizes (approximations, never zero
 * where the real library needs something). Products of two sparse matrices cannot be counted
 * without computing them: they come out empty. Any thread.
 */
#include "lib.h"

enum { SPARSE_OK = 0, SPARSE_ALLOC_FAILED = 2, SPARSE_INVALID = 3 };

#define KIND LIB_SPARSE

/* Any of the library's objects: a handle, a matrix, a vector, the state of a solver. */
struct sparse {
	void *stream;
	int64_t rows, columns, entries;
	int value_type, pointer_mode, type, fill, diagonal, base;
};

static struct sparse *check(const void *handle)
{
	return sim_handle_check((void *)handle, KIND);
}

static int create(void **out, int64_t rows, int64_t columns, int64_t entries, int value_type)
{
	struct sparse *s;

	if (!out)
		return SPARSE_INVALID;
	s = sim_handle(KIND, sizeof(*s));
	if (!s)
		return SPARSE_ALLOC_FAILED;
	s->rows = rows;
	s->columns = columns;
	s->entries = entries;
	s->value_type = value_type;
	*out = s;
	return SPARSE_OK;
}

static int destroy(const void *handle)
{
	sim_handle_free(check(handle));
	return SPARSE_OK;
}

#define OBJECT(make, unmake)                    \
	API(int, make, void **out)              \
	{                                       \
		return create(out, 0, 0, 0, 0); \
	}                                       \
	API(int, unmake, void *object)          \
	{                                       \
		return destroy(object);         \
	}

OBJECT(cusparseCreate, cusparseDestroy)
OBJECT(cusparseCreateMatDescr, cusparseDestroyMatDescr)
OBJECT(cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info)
OBJECT(cusparseCreateBsrsm2Info, cusparseDestroyBsrsm2Info)
OBJECT(cusparseSpGEMM_createDescr, cusparseSpGEMM_destroyDescr)
OBJECT(cusparseSpSM_createDescr, cusparseSpSM_destroyDescr)
OBJECT(cusparseSpSV_createDescr, cusparseSpSV_destroyDescr)

/* ---- settings ---- */

#define SETTER(name, field)                       \
	API(int, name, void *object, int value)   \
	{                                         \
		struct sparse *s = check(object); \
                                                  \
		if (!s)                           \
			return SPARSE_INVALID;    \
		s->field = value;                 \
		return SPARSE_OK;                 \
	}
/* Matrix descriptors are asked for the value itself. */
#define GETTER(name, field)                       \
	API(int, name, const void *object)        \
	{                                         \
		struct sparse *s = check(object); \
                                                  \
		return s ? s->field : 0;          \
	}

SETTER(cusparseSetPointerMode, pointer_mode)
SETTER(cusparseSetMatType, type)
SETTER(cusparseSetMatFillMode, fill)
SETTER(cusparseSetMatDiagType, diagonal)
SETTER(cusparseSetMatIndexBase, base)
GETTER(cusparseGetMatType, type)
GETTER(cusparseGetMatFillMode, fill)
GETTER(cusparseGetMatDiagType, diagonal)
GETTER(cusparseGetMatIndexBase, base)

API(int, cusparseGetPointerMode, void *handle, int *mode)
{
	struct sparse *s = check(handle);

	if (!s || !mode)
		return SPARSE_INVALID;
	*mode = s->pointer_mode;
	return SPARSE_OK;
}

API(int, cusparseSetStream, void *handle, void *stream)
{
	struct sparse *s = check(handle);

	if (!s)
		return SPARSE_INVALID;
	s->stream = stream;
	return SPARSE_OK;
}

API(int, cusparseGetStream, void *handle, void **stream)
{
	struct sparse *s = check(handle);

	if (!s || !stream)
		return SPARSE_INVALID;
	*stream = s->stream;
	return SPARSE_OK;
}

API(int, cusparseGetProperty, int part, int *out)
{
	if (!out || part < 0 || part > 2)
		return SPARSE_INVALID;
	*out = lib_version("cusparse", part);
	return SPARSE_OK;
}

API(int, cusparseGetVersion, UNUSED void *handle, int *out)
{
	if (!out)
		return SPARSE_INVALID;
	*out = lib_version("cusparse", 0) * 1000 + lib_version("cusparse", 1) * 100 +
	       lib_version("cusparse", 2);
	return SPARSE_OK;
}

API(const char *, cusparseGetErrorString, int status)
{
	static const char *const texts[] = {
		"success",	    "initialization error",    "out of memory",
		"invalid value",    "architecture mismatch",   "memory mapping error",
		"execution failed", "internal error",	       "matrix type not supported",
		"zero pivot",	    "operation not supported", "insufficient resources",
	};

	if (status < 0 || status >= (int)(sizeof(texts) / sizeof(texts[0])))
		return "unknown cuSPARSE status";
	return texts[status];
}

API(const char *, cusparseGetErrorName, int status)
{
	return cusparseGetErrorString(status);
}

/* ---- matrices and vectors ---- */

API(int, cusparseCreateCsr, void **out, int64_t rows, int64_t columns, int64_t entries,
    UNUSED void *offsets, UNUSED void *indices, UNUSED void *values, UNUSED int offset_type,
    UNUSED int index_type, UNUSED int base, int value_type)
{
	return create(out, rows, columns, entries, value_type);
}

API(int, cusparseCreateCsc, void **out, int64_t rows, int64_t columns, int64_t entries,
    UNUSED void *offsets, UNUSED void *indices, UNUSED void *values, UNUSED int offset_type,
    UNUSED int index_type, UNUSED int base, int value_type)
{
	return create(out, rows, columns, entries, value_type);
}

API(int, cusparseCreateCoo, void **out, int64_t rows, int64_t columns, int64_t entries,
    UNUSED void *row, UNUSED void *column, UNUSED void *values, UNUSED int index_type,
    UNUSED int base, int value_type)
{
	return create(out, rows, columns, entries, value_type);
}

API(int, cusparseCreateDnMat, void **out, int64_t rows, int64_t columns, UNUSED int64_t ld,
    UNUSED void *values, int value_type, UNUSED int order)
{
	return create(out, rows, columns, rows * columns, value_type);
}

API(int, cusparseCreateDnVec, void **out, int64_t size, UNUSED void *values, int value_type)
{
	return create(out, size, 1, size, value_type);
}

API(int, cusparseCreateSpVec, void **out, int64_t size, int64_t entries, UNUSED void *indices,
    UNUSED void *values, UNUSED int index_type, UNUSED int base, int value_type)
{
	return create(out, size, 1, entries, value_type);
}

#define GONE(name)                         \
	API(int, name, const void *object) \
	{                                  \
		return destroy(object);    \
	}

GONE(cusparseDestroySpMat)
GONE(cusparseDestroyDnMat)
GONE(cusparseDestroyDnVec)
GONE(cusparseDestroySpVec)

API(int, cusparseSpMatGetSize, const void *matrix, int64_t *rows, int64_t *columns,
    int64_t *entries)
{
	struct sparse *s = check(matrix);

	if (!s || !rows || !columns || !entries)
		return SPARSE_INVALID;
	*rows = s->rows;
	*columns = s->columns;
	*entries = s->entries;
	return SPARSE_OK;
}

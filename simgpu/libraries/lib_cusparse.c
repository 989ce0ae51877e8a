/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE: descriptors that remember their shape, and buffer sizes (approximations, never zero if
 * the real library needs something). Products of two sparse matrices cannot be counted without
 * computing them: they come out empty. Any thread.
 */
#include "lib.h"

enum { SPARSE_OK = 0, SPARSE_ALLOC_FAILED = 2, SPARSE_INVALID = 3 };

#define KIND LIB_SPARSE

/* Any of the library's objects: a handle, a matrix, a vector, the state of a solver. */
struct sparse {
	void *stream;
	int64_t rows, columns, entries;
	int value_type, pointer_mode, type, fill, diagonal, base;
	const void *data[3]; /* its arrays on the device */
};

static struct sparse *sparse_of(const void *handle)
{
	return sim_handle_check((void *)handle, KIND);
}

static int create_sparse(void **out, struct sparse what)
{
	struct sparse *s;

	if (!out)
		return SPARSE_INVALID;
	s = sim_handle(KIND, sizeof(*s));
	if (!s)
		return SPARSE_ALLOC_FAILED;
	*s = what;
	*out = s;
	return SPARSE_OK;
}

void lib_use_sparse(void *object)
{
	struct sparse *s = sparse_of(object);

	for (int i = 0; s && i < 3; i++)
		lib_use(s->data[i]);
}

static int destroy(const void *handle)
{
	sim_handle_free(sparse_of(handle));
	return SPARSE_OK;
}

#define OBJECT(make, unmake)                                                      \
	API_CALL(int, make, create_sparse(out, (struct sparse){ 0 }), void **out) \
	API_CALL(int, unmake, destroy(object), void *object)

OBJECT(cusparseCreate, cusparseDestroy)
OBJECT(cusparseCreateMatDescr, cusparseDestroyMatDescr)
OBJECT(cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info)
OBJECT(cusparseCreateBsrsm2Info, cusparseDestroyBsrsm2Info)
OBJECT(cusparseSpGEMM_createDescr, cusparseSpGEMM_destroyDescr)
OBJECT(cusparseSpSM_createDescr, cusparseSpSM_destroyDescr)
OBJECT(cusparseSpSV_createDescr, cusparseSpSV_destroyDescr)

/* ---- settings ---- */

#define SETTING(set, get, type, field) \
	API_SETTING(set, get, KIND, sparse, type, field, SPARSE_INVALID, SPARSE_INVALID)

#define SETTER(name, field)                           \
	API(int, name, void *object, int value)       \
	{                                             \
		struct sparse *s = sparse_of(object); \
                                                      \
		if (!s)                               \
			return SPARSE_INVALID;        \
		s->field = value;                     \
		return SPARSE_OK;                     \
	}
/* Getters of matrix descriptors return the value itself. */
#define GETTER(name, field)                           \
	API(int, name, const void *object)            \
	{                                             \
		struct sparse *s = sparse_of(object); \
                                                      \
		return s ? s->field : 0;              \
	}

SETTER(cusparseSetMatType, type)
SETTER(cusparseSetMatFillMode, fill)
SETTER(cusparseSetMatDiagType, diagonal)
SETTER(cusparseSetMatIndexBase, base)
GETTER(cusparseGetMatType, type)
GETTER(cusparseGetMatFillMode, fill)
GETTER(cusparseGetMatDiagType, diagonal)
GETTER(cusparseGetMatIndexBase, base)

SETTING(cusparseSetPointerMode, cusparseGetPointerMode, int, pointer_mode)
SETTING(cusparseSetStream, cusparseGetStream, void *, stream)
API_PROPERTY(cusparseGetProperty, "cusparse", SPARSE_INVALID)
API_VERSION(cusparseGetVersion, "cusparse", 1000, SPARSE_INVALID, UNUSED void *handle, int *out)

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

API_CALL(const char *, cusparseGetErrorName, cusparseGetErrorString(status), int status)

/* ---- matrices and vectors ---- */

#define MATRIX(...) \
	create_sparse(out, (struct sparse){ .rows = rows, .value_type = value_type, __VA_ARGS__ })
#define ENTRIES .columns = columns, .entries = entries

API_CALL(int, cusparseCreateCsr, MATRIX(ENTRIES, .data = { offsets, indices, values }), void **out,
	 int64_t rows, int64_t columns, int64_t entries, void *offsets, void *indices, void *values,
	 UNUSED int offset_type, UNUSED int index_type, UNUSED int base, int value_type)
API_CALL(int, cusparseCreateCsc, MATRIX(ENTRIES, .data = { offsets, indices, values }), void **out,
	 int64_t rows, int64_t columns, int64_t entries, void *offsets, void *indices, void *values,
	 UNUSED int offset_type, UNUSED int index_type, UNUSED int base, int value_type)
API_CALL(int, cusparseCreateCoo, MATRIX(ENTRIES, .data = { row, column, values }), void **out,
	 int64_t rows, int64_t columns, int64_t entries, void *row, void *column, void *values,
	 UNUSED int index_type, UNUSED int base, int value_type)
API_CALL(int, cusparseCreateDnMat,
	 MATRIX(.columns = columns, .entries = rows * columns, .data = { values }), void **out,
	 int64_t rows, int64_t columns, UNUSED int64_t ld, void *values, int value_type,
	 UNUSED int order)
API_CALL(int, cusparseCreateDnVec, MATRIX(.columns = 1, .entries = rows, .data = { values }),
	 void **out, int64_t rows, void *values, int value_type)
API_CALL(int, cusparseCreateSpVec,
	 MATRIX(.columns = 1, .entries = entries, .data = { indices, values }), void **out,
	 int64_t rows, int64_t entries, void *indices, void *values, UNUSED int index_type,
	 UNUSED int base, int value_type)

#define GONE(name) API_CALL(int, name, destroy(object), const void *object)

GONE(cusparseDestroySpMat)
GONE(cusparseDestroyDnMat)
GONE(cusparseDestroyDnVec)
GONE(cusparseDestroySpVec)

API(int, cusparseSpMatGetSize, const void *matrix, int64_t *rows, int64_t *columns,
    int64_t *entries)
{
	struct sparse *s = sparse_of(matrix);

	if (!s || !rows || !columns || !entries)
		return SPARSE_INVALID;
	*rows = s->rows;
	*columns = s->columns;
	*entries = s->entries;
	return SPARSE_OK;
}

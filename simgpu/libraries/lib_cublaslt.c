/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt: descriptors that keep their attributes, and a heuristic that always finds one
 * algorithm, without a workspace (torch allocates that before it queries). Any thread.
 */
#include <string.h>
#include "lib_products.h"

enum { LT_OK = 0, LT_NO_ROOM = 3, LT_INVALID = 7 };

#define KIND	   SIM_KIND('b', 'l', 'L', 't')
#define ATTRIBUTES 64
#define VALUE	   32

/* A descriptor of any sort. Callers may also hold one by value (64 or 256 bytes) and have it
 * initialised in place: those are left zeroed and their attributes are not kept. */
struct descriptor {
	struct {
		unsigned char bytes[VALUE];
		size_t size;
	} attributes[ATTRIBUTES];
};

struct algorithm {
	uint64_t data[8];
};

struct heuristic {
	struct algorithm algorithm;
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
};

/* Attributes of a matrix's layout and of an operation (cublasLtMatrixLayoutAttribute_t,
 * cublasLtMatmulDescAttributes_t). */
enum {
	LAYOUT_TYPE = 0,
	LAYOUT_ROWS = 2,
	LAYOUT_COLS = 3,
	LAYOUT_COUNT = 5,
	OPERATION_TRANSPOSE_A = 3
};

static int create(void **out)
{
	if (!out)
		return LT_INVALID;
	*out = sim_handle(KIND, sizeof(struct descriptor));
	return *out ? LT_OK : LT_NO_ROOM;
}

static int destroy(void *handle)
{
	sim_handle_free(sim_handle_check(handle, KIND));
	return LT_OK;
}

static int set(void *handle, int attribute, const void *value, size_t size)
{
	struct descriptor *d = sim_handle_check(handle, KIND);

	if (!value)
		return LT_INVALID;
	if (!d || attribute < 0 || attribute >= ATTRIBUTES || size > VALUE)
		return LT_OK;
	memcpy(d->attributes[attribute].bytes, value, size);
	d->attributes[attribute].size = size;
	return LT_OK;
}

static int get(void *handle, int attribute, void *value, size_t size, size_t *written)
{
	struct descriptor *d = sim_handle_check(handle, KIND);
	bool known = d && attribute >= 0 && attribute < ATTRIBUTES && size <= VALUE;

	if (value && size)
		memset(value, 0, size);
	if (value && known)
		memcpy(value, d->attributes[attribute].bytes, size);
	if (written)
		*written = size;
	return LT_OK;
}

static int create_layout(void **out, int type, uint64_t rows, uint64_t cols)
{
	int result = create(out);

	if (!result) {
		set(*out, LAYOUT_TYPE, &type, sizeof(type));
		set(*out, LAYOUT_ROWS, &rows, sizeof(rows));
		set(*out, LAYOUT_COLS, &cols, sizeof(cols));
	}
	return result;
}

static int64_t attribute(void *handle, int attribute, int64_t otherwise)
{
	struct descriptor *d = sim_handle_check(handle, KIND);
	int64_t value = 0;

	if (!d || !d->attributes[attribute].size)
		return otherwise;
	memcpy(&value, d->attributes[attribute].bytes,
	       d->attributes[attribute].size < 8 ? d->attributes[attribute].size : 8);
	return value;
}

/* The result is m x n, and k is the other dimension of A. */
static void multiply(void *stream, void *operation, void *a, void *d)
{
	double m = (double)attribute(d, LAYOUT_ROWS, 0), n = (double)attribute(d, LAYOUT_COLS, 0);
	bool transposed = attribute(operation, OPERATION_TRANSPOSE_A, 0) != 0;
	struct lib_product p;

	lib_product_of(&p, m, n, (double)attribute(a, transposed ? LAYOUT_ROWS : LAYOUT_COLS, 0),
		       (double)attribute(d, LAYOUT_COUNT, 1), (int)attribute(a, LAYOUT_TYPE, 0));
	lib_product(stream, p.operations, p.cuda_type, p.bytes);
}

static int init(void *memory, size_t size)
{
	if (!memory)
		return LT_INVALID;
	memset(memory, 0, size);
	return LT_OK;
}

API_CALL(int, cublasLtCreate, create(handle), void **handle)
API_CALL(int, cublasLtDestroy, destroy(handle), void *handle)

/* Create, Destroy, Set, Get and Init of one sort of descriptor. */
#define DESCRIPTOR(sort, created, create_args, init_args, unused)                                \
	API(int, cublasLt##sort##Create, create_args)                                            \
	{                                                                                        \
		unused;                                                                          \
		return created;                                                                  \
	}                                                                                        \
	API(int, cublasLt##sort##Init_internal, init_args)                                       \
	{                                                                                        \
		unused;                                                                          \
		return init(out, size);                                                          \
	}                                                                                        \
	API(int, cublasLt##sort##Destroy, void *d)                                               \
	{                                                                                        \
		return destroy(d);                                                               \
	}                                                                                        \
	API(int, cublasLt##sort##SetAttribute, void *d, int attribute, const void *value,        \
	    size_t size)                                                                         \
	{                                                                                        \
		return set(d, attribute, value, size);                                           \
	}                                                                                        \
	API(int, cublasLt##sort##GetAttribute, void *d, int attribute, void *value, size_t size, \
	    size_t *written)                                                                     \
	{                                                                                        \
		return get(d, attribute, value, size, written);                                  \
	}

#define ARGS(...) __VA_ARGS__

DESCRIPTOR(MatrixLayout, create_layout(out, type, rows, cols),
	   ARGS(void **out, int type, uint64_t rows, uint64_t cols, int64_t ld),
	   ARGS(void *out, size_t size, int type, uint64_t rows, uint64_t cols, int64_t ld),
	   ARGS((void)type, (void)rows, (void)cols, (void)ld))
DESCRIPTOR(MatmulDesc, create(out), ARGS(void **out, int compute, int scale),
	   ARGS(void *out, size_t size, int compute, int scale), ARGS((void)compute, (void)scale))
DESCRIPTOR(MatrixTransformDesc, create(out), ARGS(void **out, int scale),
	   ARGS(void *out, size_t size, int scale), (void)scale)
DESCRIPTOR(EmulationDesc, create(out), ARGS(void **out), ARGS(void *out, size_t size), )
DESCRIPTOR(MatmulPreference, create(out), ARGS(void **out), ARGS(void *out, size_t size), )

API_CALL(int, cublasLtGroupedMatrixLayoutCreate, create(out), void **out, UNUSED int type,
	 UNUSED int groups, UNUSED const void *rows, UNUSED const void *cols, UNUSED const void *ld)

/* Uses the addresses among the operation's attributes: bias, scales and others. */
static void use_attributes(void *operation)
{
	struct descriptor *d = sim_handle_check(operation, KIND);
	void *address;

	for (int i = 0; d && i < ATTRIBUTES; i++)
		if (d->attributes[i].size == sizeof(address)) {
			memcpy(&address, d->attributes[i].bytes, sizeof(address));
			lib_use(address);
		}
}

static void use_all(const void *const *addresses, int n)
{
	for (int i = 0; i < n; i++)
		lib_use(addresses[i]);
}

/* ---- algorithms ---- */

API(int, cublasLtMatmulAlgoGetHeuristic, void *handle, void *operation, void *a, void *b, void *c,
    void *d, void *preference, int wanted, struct heuristic *results, int *found)
{
	(void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
	if (!results || !found || wanted < 1)
		return LT_INVALID;
	memset(results, 0, sizeof(*results));
	results->waves = 1;
	*found = 1;
	return LT_OK;
}

API(int, cublasLtMatmulAlgoCheck, void *handle, void *operation, void *a, void *b, void *c, void *d,
    const struct algorithm *algorithm, struct heuristic *result)
{
	(void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d;
	if (!algorithm || !result)
		return LT_INVALID;
	memset(result, 0, sizeof(*result));
	result->algorithm = *algorithm;
	result->waves = 1;
	return LT_OK;
}

API(int, cublasLtMatmulAlgoGetIds, void *handle, int compute, int scale, int a, int b, int c, int d,
    int wanted, int *ids, int *found)
{
	(void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
	if (!ids || wanted < 1)
		return LT_INVALID;
	ids[0] = 1;
	if (found)
		*found = 1;
	return LT_OK;
}

API(int, cublasLtMatmulAlgoInit, void *handle, int compute, int scale, int a, int b, int c, int d,
    int id, struct algorithm *algorithm)
{
	(void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
	if (!algorithm)
		return LT_INVALID;
	memset(algorithm, 0, sizeof(*algorithm));
	algorithm->data[0] = id;
	return LT_OK;
}

API_CALL(int, cublasLtMatmulAlgoCapGetAttribute, get(NULL, attribute, value, size, written),
	 UNUSED const struct algorithm *algorithm, int attribute, void *value, size_t size,
	 size_t *written)
API_CALL(int, cublasLtMatmulAlgoConfigGetAttribute, get(NULL, attribute, value, size, written),
	 UNUSED const struct algorithm *algorithm, int attribute, void *value, size_t size,
	 size_t *written)

API(int, cublasLtMatmul, void *handle, void *operation, const void *alpha, const void *a,
    void *a_layout, const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
    void *d, void *d_layout, const struct algorithm *algorithm, void *workspace, size_t bytes,
    void *stream)
{
	(void)handle, (void)b_layout, (void)c_layout, (void)algorithm, (void)bytes;
	if (!d)
		return LT_INVALID;
	sim_forget(d);
	lib_uses("cublasLtMatmul");
	use_all((const void *[]){ alpha, a, b, beta, c, d, workspace }, 7);
	use_attributes(operation);
	multiply(stream, operation, a_layout, d_layout);
	lib_used();
	return LT_OK;
}

/* ---- the rest ---- */

API(int, cublasLtHeuristicsCacheGetCapacity, size_t *capacity)
{
	if (!capacity)
		return LT_INVALID;
	*capacity = 8192;
	return LT_OK;
}

API_PROPERTY(cublasLtGetProperty, "cublas", LT_INVALID)
API_CALL(size_t, cublasLtGetVersion, lib_version_number("cublas", 10000), void)
API_CALL(size_t, cublasLtGetCudartVersion, sim_cuda_version(), void)

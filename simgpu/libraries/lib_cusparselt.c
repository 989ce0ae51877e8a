/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSELt (two of four elements kept). Its objects are memory of the caller: a descriptor keeps
 * its shape in its first words. Any thread.
 */
#include <string.h>
#include "lib.h"

#define INVALID 3

struct matrix {
	int64_t rows, columns;
	int type;
};

static int describe(struct matrix *m, int64_t rows, int64_t columns, int type)
{
	if (!m)
		return INVALID;
	*m = (struct matrix){ rows, columns, type };
	return 0;
}

API_CALL(int, cusparseLtDenseDescriptorInit, describe(m, rows, columns, type), UNUSED void *handle,
	 void *m, int64_t rows, int64_t columns, UNUSED int64_t ld, UNUSED uint32_t alignment,
	 int type, UNUSED int order)
API_CALL(int, cusparseLtStructuredDescriptorInit, describe(m, rows, columns, type),
	 UNUSED void *handle, void *m, int64_t rows, int64_t columns, UNUSED int64_t ld,
	 UNUSED uint32_t alignment, int type, UNUSED int order, UNUSED int sparsity)

/* Half of the values, and two bits for the place of each. */
API(int, cusparseLtSpMMACompressedSize2, UNUSED void *handle, const void *descriptor,
    size_t *compressed, size_t *buffer)
{
	const struct matrix *m = descriptor;
	size_t kept;

	if (!m || !compressed || !buffer)
		return INVALID;
	kept = (size_t)m->rows * m->columns / 2;
	*compressed = kept * lib_type_bytes(m->type) + kept / 4;
	*buffer = 0;
	return 0;
}

API(int, cusparseLtMatmulGetWorkspace, UNUSED void *handle, UNUSED void *plan, size_t *bytes)
{
	if (!bytes)
		return INVALID;
	*bytes = 0;
	return 0;
}

API(int, cusparseLtMatmulAlgGetAttribute, UNUSED void *handle, UNUSED void *selection,
    UNUSED int attribute, void *value, size_t bytes)
{
	if (!value)
		return INVALID;
	memset(value, 0, bytes);
	return 0;
}

API(int, cusparseLtGetProperty, int part, int *out)
{
	static const int version[] = { 0, 8, 0 };

	if (!out || part < 0 || part > 2)
		return INVALID;
	*out = version[part];
	return 0;
}

API(int, cusparseLtGetVersion, UNUSED void *handle, int *out)
{
	if (!out)
		return INVALID;
	*out = 800;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

void rows_init(struct row_store *r, size_t each, struct chunk_pool *pool)
{
	size_t words = each % sizeof(uint32_t) ? 0 : each / sizeof(uint32_t);

	*r = (struct row_store){ .each = each,
				 .chunks = chunks_new(each * ROWS_PIECE, words, pool) };
}

void rows_free(struct row_store *r)
{
	chunks_free(r->chunks);
	*r = (struct row_store){ .each = r->each };
}

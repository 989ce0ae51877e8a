/* SPDX-License-Identifier: Apache-2.0 */
/* The values of one column of a row group, and the bytes of its pages. */
#ifndef VIEWER_PARQUET_COLUMN_H
#define VIEWER_PARQUET_COLUMN_H

#include "../base/bytes.h"
#include "../base/map.h"
#include "parquet.h"

/* Values that are there stand in `values` as a page has them; what stood there before and where,
 * by a hash of it, is in `seen`. A column whose values are all different has no dictionary. */
struct column_values {
	enum parquet_type type;
	struct bytes values, valid;	  /* valid: a bit for each row, once one was null */
	struct bytes dictionary, numbers; /* numbers: of each value in the dictionary, 32 bits */
	struct bytes places;		  /* of texts: where each begins in it */
	struct map seen;
	uint32_t entries;
	bool plain; /* there is no dictionary */
	uint64_t given, rows;
	int64_t least, most; /* of INT and TIME */
};

void column_number(struct column_values *c, int64_t n);
void column_flag(struct column_values *c, bool yes);
void column_text(struct column_values *c, const char *s, size_t len);
void column_row(struct column_values *c); /* the row ends: without a value it is null */

/* The page of data, not packed; how it is encoded: *dictionary. */
void column_page(struct column_values *c, struct bytes *page, bool *dictionary);
void column_clear(struct column_values *c); /* for the next row group */
void column_free(struct column_values *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Thrift's compact protocol, which the headers of a Parquet file are in: fields in the order
 * of their numbers, lists, nested structs. */
#ifndef VIEWER_THRIFT_H
#define VIEWER_THRIFT_H

#include "../base/bytes.h"

#define THRIFT_DEPTH 10

enum thrift_type {
	THRIFT_TRUE = 1,
	THRIFT_FALSE = 2,
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_BINARY = 8,
	THRIFT_LIST = 9,
	THRIFT_STRUCT = 12,
};

struct thrift {
	struct bytes out;
	int last[THRIFT_DEPTH]; /* number of the latest field of each open struct */
	unsigned depth;
};

void thrift_flag(struct thrift *t, int field, int yes);
void thrift_i32(struct thrift *t, int field, int32_t n);
void thrift_i64(struct thrift *t, int field, int64_t n);
void thrift_binary(struct thrift *t, int field, const void *bytes, size_t len);
void thrift_text(struct thrift *t, int field, const char *s);

/* A struct as a field, then its fields, then thrift_end. As an item of a list it has no field: 0.
 */
void thrift_begin(struct thrift *t, int field);
void thrift_end(struct thrift *t);

/* The head of a list; its items follow. */
void thrift_list(struct thrift *t, int field, enum thrift_type of, size_t count);
void thrift_item_i32(struct thrift *t, int32_t n);
void thrift_item_text(struct thrift *t, const char *s);

#endif

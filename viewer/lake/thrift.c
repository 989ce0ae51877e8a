/* SPDX-License-Identifier: Apache-2.0 */
#include "thrift.h"

#include <string.h>

#include "../../format/varint.h"

static void byte(struct thrift *t, unsigned b)
{
	bytes_add(&t->out, &(uint8_t){ (uint8_t)b }, 1);
}

static void signed_number(struct thrift *t, int64_t n)
{
	bytes_varint(&t->out, zigzag((uint64_t)n));
}

/* Near the field before it its number takes four bits of the type's byte. */
static void head(struct thrift *t, int field, enum thrift_type type)
{
	int *last = &t->last[t->depth], far = field - *last;

	if (far > 0 && far < 16) {
		byte(t, (unsigned)far << 4 | type);
	} else {
		byte(t, type);
		signed_number(t, field);
	}
	*last = field;
}

void thrift_flag(struct thrift *t, int field, int yes)
{
	head(t, field, yes ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_i32(struct thrift *t, int field, int32_t n)
{
	head(t, field, THRIFT_I32);
	signed_number(t, n);
}

void thrift_i64(struct thrift *t, int field, int64_t n)
{
	head(t, field, THRIFT_I64);
	signed_number(t, n);
}

void thrift_binary(struct thrift *t, int field, const void *bytes, size_t len)
{
	head(t, field, THRIFT_BINARY);
	bytes_varint(&t->out, len);
	bytes_add(&t->out, bytes, len);
}

void thrift_text(struct thrift *t, int field, const char *s)
{
	thrift_binary(t, field, s, strlen(s));
}

void thrift_begin(struct thrift *t, int field)
{
	if (field)
		head(t, field, THRIFT_STRUCT);
	t->last[++t->depth] = 0;
}

void thrift_end(struct thrift *t)
{
	byte(t, 0);
	t->depth--;
}

void thrift_list(struct thrift *t, int field, enum thrift_type of, size_t count)
{
	head(t, field, THRIFT_LIST);
	if (count < 15) {
		byte(t, (unsigned)count << 4 | of);
	} else {
		byte(t, 0xf0u | of);
		bytes_varint(&t->out, count);
	}
}

void thrift_item_i32(struct thrift *t, int32_t n)
{
	signed_number(t, n);
}

void thrift_item_text(struct thrift *t, const char *s)
{
	bytes_varint(&t->out, strlen(s));
	bytes_add(&t->out, s, strlen(s));
}

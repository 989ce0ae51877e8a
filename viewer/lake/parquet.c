/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet.h"

#include <stdlib.h>
#include <zstd.h>

#include "../base/need.h"
#include "../../format/version.h"
#include "parquet_column.h"
#include "thrift.h"

/* Constants of the format. */
enum { OPTIONAL = 1, DATA_PAGE = 0, DICTIONARY_PAGE = 2, NO_CODEC = 0, ZSTD_CODEC = 6 };
enum { PLAIN = 0, RLE = 3, RLE_DICTIONARY = 8 };
enum { MOST_BYTES = 64 << 20 }; /* of a column in a row group; the group ends early */

/* By enum parquet_type: the physical type, and its meaning for older readers. */
static const struct form {
	int physical, converted;
} forms[] = {
	[PARQUET_INT] = { 2, -1 },
	[PARQUET_FLAG] = { 0, -1 },
	[PARQUET_TEXT] = { 6, 0 },
	[PARQUET_TIME] = { 2, -1 },
};

/* Position of a column's pages, for the footer. */
struct chunk {
	int64_t dictionary_at, data_at; /* dictionary_at: 0 = there is none */
	int64_t plain_bytes, bytes;
	uint64_t rows, given;
	int64_t least, most;
	bool dictionary;
};

struct parquet {
	FILE *f;
	const struct parquet_column *columns;
	struct column_values *values;
	unsigned count;
	int level;
	ZSTD_CCtx *zstd;
	struct bytes page, packed;
	int64_t at; /* bytes written */
	uint64_t rows, all_rows;
	struct chunk *chunks; /* `count` per row group */
	size_t groups, room;
	struct {
		const char *key, *value;
	} facts[PARQUET_FACTS];
	unsigned fact_count;
};

static void parquet_write_bytes(struct parquet *p, const void *bytes, size_t len)
{
	if (len)
		fwrite(bytes, 1, len, p->f);
	p->at += (int64_t)len;
}

struct parquet *parquet_open(FILE *f, const struct parquet_column *columns, unsigned count,
			     int level)
{
	struct parquet *p = need_new(sizeof(*p));

	*p = (struct parquet){ .f = f, .columns = columns, .count = count, .level = level };
	p->values = need_new(count * sizeof(*p->values));
	for (unsigned i = 0; i < count; i++)
		p->values[i].type = columns[i].type;
	p->zstd = level ? ZSTD_createCCtx() : NULL;
	parquet_write_bytes(p, "PAR1", 4);
	return p;
}

void parquet_fact(struct parquet *p, const char *key, const char *value)
{
	if (p->fact_count == PARQUET_FACTS)
		return;
	p->facts[p->fact_count].key = key;
	p->facts[p->fact_count++].value = value;
}

struct column_values *parquet_column(struct parquet *p, unsigned column)
{
	return &p->values[column];
}

/* ---- pages ---- */

/* Compresses a page for the file. */
static const struct bytes *pack(struct parquet *p, const struct bytes *page)
{
	size_t most = ZSTD_compressBound(page->len), n;

	if (!p->zstd)
		return page;
	if (p->packed.room < most) {
		p->packed.p = need_resize(p->packed.p, most);
		p->packed.room = most;
	}
	n = ZSTD_compressCCtx(p->zstd, p->packed.p, most, page->p, page->len, p->level);
	p->packed.len = ZSTD_isError(n) ? 0 : n;
	return &p->packed;
}

static void page_of_data(struct thrift *t, const struct chunk *c)
{
	thrift_begin(t, 5);
	thrift_i32(t, 1, (int32_t)c->rows);
	thrift_i32(t, 2, c->dictionary ? RLE_DICTIONARY : PLAIN);
	thrift_i32(t, 3, RLE);
	thrift_i32(t, 4, RLE);
	thrift_end(t);
}

static void page_of_dictionary(struct thrift *t, uint32_t entries)
{
	thrift_begin(t, 7);
	thrift_i32(t, 1, (int32_t)entries);
	thrift_i32(t, 2, PLAIN);
	thrift_end(t);
}

static void put_page(struct parquet *p, struct chunk *c, const struct bytes *page, uint32_t entries)
{
	const struct bytes *packed = pack(p, page);
	struct thrift t = { 0 };

	thrift_i32(&t, 1, entries ? DICTIONARY_PAGE : DATA_PAGE);
	thrift_i32(&t, 2, (int32_t)page->len);
	thrift_i32(&t, 3, (int32_t)packed->len);
	if (entries)
		page_of_dictionary(&t, entries);
	else
		page_of_data(&t, c);
	bytes_add(&t.out, "", 1);
	parquet_write_bytes(p, t.out.p, t.out.len);
	parquet_write_bytes(p, packed->p, packed->len);
	c->plain_bytes += (int64_t)(t.out.len + page->len);
	c->bytes += (int64_t)(t.out.len + packed->len);
	bytes_free(&t.out);
}

static void put_column(struct parquet *p, struct column_values *v, struct chunk *c)
{
	*c = (struct chunk){
		.rows = v->rows, .given = v->given, .least = v->least, .most = v->most
	};
	column_page(v, &p->page, &c->dictionary);
	if (c->dictionary) {
		c->dictionary_at = p->at;
		put_page(p, c, &v->dictionary, v->entries);
	}
	c->data_at = p->at;
	put_page(p, c, &p->page, 0);
	column_clear(v);
}

static void put_group(struct parquet *p)
{
	if (p->groups == p->room) {
		p->room = p->room ? 2 * p->room : 4;
		p->chunks = need_resize(p->chunks, p->room * p->count * sizeof(*p->chunks));
	}
	for (unsigned i = 0; i < p->count; i++)
		put_column(p, &p->values[i], &p->chunks[p->groups * p->count + i]);
	p->groups++;
	p->all_rows += p->rows;
	p->rows = 0;
}

void parquet_row(struct parquet *p)
{
	bool full = ++p->rows == PARQUET_GROUP;

	for (unsigned i = 0; i < p->count; i++) {
		column_row(&p->values[i]);
		full |= p->values[i].values.len > MOST_BYTES;
	}
	if (full)
		put_group(p);
}

uint64_t parquet_rows(const struct parquet *p)
{
	return p->all_rows + p->rows;
}

/* ---- the footer ---- */

static void put_meaning(struct thrift *t, enum parquet_type type)
{
	if (type != PARQUET_TEXT && type != PARQUET_TIME)
		return;
	if (forms[type].converted >= 0)
		thrift_i32(t, 6, forms[type].converted);
	thrift_begin(t, 10);
	thrift_begin(t, type == PARQUET_TEXT ? 1 : 8);
	if (type == PARQUET_TIME) {
		thrift_flag(t, 1, 0); /* a clock without a zone */
		thrift_begin(t, 2);
		thrift_begin(t, 2); /* microseconds */
		thrift_end(t);
		thrift_end(t);
	}
	thrift_end(t);
	thrift_end(t);
}

static void put_schema(struct parquet *p, struct thrift *t)
{
	thrift_list(t, 2, THRIFT_STRUCT, p->count + 1);
	thrift_begin(t, 0);
	thrift_text(t, 4, "schema");
	thrift_i32(t, 5, (int32_t)p->count);
	thrift_end(t);
	for (unsigned i = 0; i < p->count; i++) {
		thrift_begin(t, 0);
		thrift_i32(t, 1, forms[p->columns[i].type].physical);
		thrift_i32(t, 3, OPTIONAL);
		thrift_text(t, 4, p->columns[i].name);
		put_meaning(t, p->columns[i].type);
		thrift_end(t);
	}
}

static void put_statistics(struct thrift *t, const struct chunk *c, enum parquet_type type)
{
	thrift_begin(t, 12);
	thrift_i64(t, 3, (int64_t)(c->rows - c->given));
	if (c->given && (type == PARQUET_INT || type == PARQUET_TIME)) {
		thrift_binary(t, 5, &c->most, sizeof(c->most));
		thrift_binary(t, 6, &c->least, sizeof(c->least));
	}
	thrift_end(t);
}

static void put_chunk(struct parquet *p, struct thrift *t, const struct chunk *c, unsigned column)
{
	thrift_begin(t, 0);
	thrift_i64(t, 2, 0);
	thrift_begin(t, 3);
	thrift_i32(t, 1, forms[p->columns[column].type].physical);
	thrift_list(t, 2, THRIFT_I32, c->dictionary ? 3 : 2);
	thrift_item_i32(t, PLAIN);
	thrift_item_i32(t, RLE);
	if (c->dictionary)
		thrift_item_i32(t, RLE_DICTIONARY);
	thrift_list(t, 3, THRIFT_BINARY, 1);
	thrift_item_text(t, p->columns[column].name);
	thrift_i32(t, 4, p->level ? ZSTD_CODEC : NO_CODEC);
	thrift_i64(t, 5, (int64_t)c->rows);
	thrift_i64(t, 6, c->plain_bytes);
	thrift_i64(t, 7, c->bytes);
	thrift_i64(t, 9, c->data_at);
	if (c->dictionary_at)
		thrift_i64(t, 11, c->dictionary_at);
	put_statistics(t, c, p->columns[column].type);
	thrift_end(t);
	thrift_end(t);
}

static void put_row_group(struct parquet *p, struct thrift *t, const struct chunk *chunks)
{
	int64_t plain = 0, packed = 0;

	thrift_begin(t, 0);
	thrift_list(t, 1, THRIFT_STRUCT, p->count);
	for (unsigned i = 0; i < p->count; i++) {
		put_chunk(p, t, &chunks[i], i);
		plain += chunks[i].plain_bytes;
		packed += chunks[i].bytes;
	}
	thrift_i64(t, 2, plain);
	thrift_i64(t, 3, (int64_t)chunks[0].rows);
	thrift_i64(t, 6, packed);
	thrift_end(t);
}

/* Sort order of least and most: the type's own. */
static void put_orders(struct parquet *p, struct thrift *t)
{
	thrift_list(t, 7, THRIFT_STRUCT, p->count);
	for (unsigned i = 0; i < p->count; i++) {
		thrift_begin(t, 0);
		thrift_begin(t, 1);
		thrift_end(t);
		thrift_end(t);
	}
}

static void put_footer(struct parquet *p)
{
	struct thrift t = { 0 };
	uint32_t len;

	thrift_i32(&t, 1, 2);
	put_schema(p, &t);
	thrift_i64(&t, 3, (int64_t)p->all_rows);
	thrift_list(&t, 4, THRIFT_STRUCT, p->groups);
	for (size_t i = 0; i < p->groups; i++)
		put_row_group(p, &t, &p->chunks[i * p->count]);
	if (p->fact_count)
		thrift_list(&t, 5, THRIFT_STRUCT, p->fact_count);
	for (unsigned i = 0; i < p->fact_count; i++) {
		thrift_begin(&t, 0);
		thrift_text(&t, 1, p->facts[i].key);
		thrift_text(&t, 2, p->facts[i].value);
		thrift_end(&t);
	}
	thrift_text(&t, 6, "gpumemtrace version " GMT_TOOL_VERSION);
	put_orders(p, &t);
	bytes_add(&t.out, "", 1);
	len = (uint32_t)t.out.len;
	parquet_write_bytes(p, t.out.p, t.out.len);
	parquet_write_bytes(p, &len, sizeof(len));
	parquet_write_bytes(p, "PAR1", 4);
	bytes_free(&t.out);
}

void parquet_close(struct parquet *p)
{
	if (p->rows)
		put_group(p);
	put_footer(p);
	for (unsigned i = 0; i < p->count; i++)
		column_free(&p->values[i]);
	ZSTD_freeCCtx(p->zstd);
	bytes_free(&p->page);
	bytes_free(&p->packed);
	free(p->values);
	free(p->chunks);
	free(p);
}

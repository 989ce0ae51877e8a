/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An Arrow IPC file: a schema, record batches of up to 65536 rows, and at the end where they are.
 * Numbers are uint64, texts utf8; each column's unit and meaning are its metadata.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/emit_json.h"
#include "../base/need.h"
#include "export_table.h"
#include "flatbuffer.h"

#define ROWS 65536

/* Numbers of Arrow's unions and versions. */
enum { HEADER_SCHEMA = 1, HEADER_BATCH = 3, TYPE_INT = 2, TYPE_UTF8 = 5, VERSION_5 = 4 };

struct bytes {
	uint8_t *p;
	size_t len, room;
};

struct column_data {
	struct bytes values, offsets, valid;
	uint64_t nulls;
};

struct arrow {
	FILE *f;
	struct column_data columns[COLUMNS];
	uint64_t rows, at; /* of this batch; bytes written */
	struct batch {
		uint64_t offset, body;
		uint32_t meta;
	} * batches;
	size_t batch_count, batch_room;
};

static void put(struct arrow *a, const void *bytes, size_t len)
{
	if (len)
		fwrite(bytes, 1, len, a->f);
	a->at += len;
}

static void pad(struct arrow *a)
{
	static const char zeros[8];

	put(a, zeros, (8 - a->at % 8) % 8);
}

static void add(struct bytes *b, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		b->p = need_grow(b->p, &b->room, b->len, 1);
		b->p[b->len++] = ((const uint8_t *)bytes)[i];
	}
}

/* Readers check that texts are UTF-8: other bytes become '?'. */
static void add_text(struct bytes *b, const char *s, size_t len)
{
	while (len) {
		size_t n = emit_utf8(s, len);

		add(b, n ? s : "?", n ? n : 1);
		n = n ? n : 1;
		s += n;
		len -= n;
	}
}

static void write_meta(struct flatbuffer *b, size_t at, const struct export_column *c)
{
	const char *rows[][2] = { { "unit", c->unit }, { "meaning", c->meaning } };
	size_t first = flatbuffer_vector(b, at, 2, 4, 4);

	for (size_t i = 0; i < 2; i++) {
		struct flatbuffer_table t =
			flatbuffer_table(b, first + 4 * i, (const uint8_t[]){ 4, 4 }, 2);

		flatbuffer_string(b, t.field[0], rows[i][0]);
		flatbuffer_string(b, t.field[1], rows[i][1]);
	}
}

static void write_field(struct flatbuffer *b, size_t at, const struct export_column *c)
{
	bool number = c->kind == COLUMN_NUMBER;
	struct flatbuffer_table t = flatbuffer_table(b, at,
						     (const uint8_t[]){ 4, 1, 1, 4, 0, 4, 4 }, 7),
				type;

	flatbuffer_string(b, t.field[0], c->name);
	flatbuffer_set(b, t.field[1], 1, 1);
	flatbuffer_set(b, t.field[2], number ? TYPE_INT : TYPE_UTF8, 1);
	type = flatbuffer_table(b, t.field[3], (const uint8_t[]){ 4, 1 }, number ? 2 : 0);
	if (number)
		flatbuffer_set(b, type.field[0], 64, 4);
	flatbuffer_vector(b, t.field[5], 0, 4, 4);
	write_meta(b, t.field[6], c);
}

static void write_schema(struct flatbuffer *b, size_t at)
{
	struct flatbuffer_table t = flatbuffer_table(b, at, (const uint8_t[]){ 2, 4 }, 2);
	size_t first = flatbuffer_vector(b, t.field[1], COLUMNS, 4, 4);

	for (unsigned i = 0; i < COLUMNS; i++)
		write_field(b, first + 4 * i, &export_columns[i]);
}

/* The reference to the header is where the caller goes on. */
static size_t message(struct flatbuffer *b, unsigned header, uint64_t body)
{
	struct flatbuffer_table t;

	flatbuffer_start(b);
	t = flatbuffer_table(b, 0, (const uint8_t[]){ 2, 1, 4, 8 }, 4);
	flatbuffer_set(b, t.field[0], VERSION_5, 2);
	flatbuffer_set(b, t.field[1], header, 1);
	flatbuffer_set(b, t.field[3], body, 8);
	return t.field[2];
}

/* How many bytes the message takes without its body. */
static uint32_t put_message(struct arrow *a, struct flatbuffer *b)
{
	uint32_t head[2] = { UINT32_MAX };

	flatbuffer_pad(b, 8);
	head[1] = (uint32_t)b->len;
	put(a, head, sizeof(head));
	put(a, b->p, b->len);
	flatbuffer_free(b);
	return head[1] + 8;
}

static struct bytes *buffer_of(struct arrow *a, unsigned column, unsigned i)
{
	struct column_data *c = &a->columns[column];

	if (i == 0)
		return &c->valid;
	return i == 1 && export_columns[column].kind == COLUMN_TEXT ? &c->offsets : &c->values;
}

static unsigned buffer_count(unsigned column)
{
	return export_columns[column].kind == COLUMN_TEXT ? 3 : 2;
}

/* Every buffer of the body, one behind the other, each padded: what is said of them, or they
 * themselves. */
static uint64_t each_buffer(struct arrow *a, struct flatbuffer *b, size_t at)
{
	uint64_t offset = 0;

	for (unsigned c = 0; c < COLUMNS; c++)
		for (unsigned i = 0; i < buffer_count(c); i++) {
			const struct bytes *data = buffer_of(a, c, i);

			if (b) {
				flatbuffer_set(b, at, offset, 8);
				flatbuffer_set(b, at + 8, data->len, 8);
				at += 16;
			}
			offset += (data->len + 7) / 8 * 8;
		}
	return offset;
}

static void put_body(struct arrow *a)
{
	for (unsigned c = 0; c < COLUMNS; c++)
		for (unsigned i = 0; i < buffer_count(c); i++) {
			struct bytes *data = buffer_of(a, c, i);

			put(a, data->p, data->len);
			pad(a);
		}
}

static void clear(struct arrow *a)
{
	for (unsigned c = 0; c < COLUMNS; c++) {
		a->columns[c].nulls = 0;
		for (unsigned i = 0; i < 3; i++)
			buffer_of(a, c, i)->len = 0;
	}
	a->rows = 0;
}

static void put_batch(struct arrow *a)
{
	struct batch batch = { .offset = a->at, .body = each_buffer(a, NULL, 0) };
	struct flatbuffer b;
	struct flatbuffer_table t;
	uint32_t buffers = 0;
	size_t nodes, at = message(&b, HEADER_BATCH, batch.body);

	for (unsigned c = 0; c < COLUMNS; c++)
		buffers += buffer_count(c);
	t = flatbuffer_table(&b, at, (const uint8_t[]){ 8, 4, 4 }, 3);
	flatbuffer_set(&b, t.field[0], a->rows, 8);
	nodes = flatbuffer_vector(&b, t.field[1], COLUMNS, 16, 8);
	for (unsigned c = 0; c < COLUMNS; c++) {
		flatbuffer_set(&b, nodes + 16 * c, a->rows, 8);
		flatbuffer_set(&b, nodes + 16 * c + 8, a->columns[c].nulls, 8);
	}
	each_buffer(a, &b, flatbuffer_vector(&b, t.field[2], buffers, 16, 8));
	batch.meta = put_message(a, &b);
	put_body(a);
	a->batches = need_grow(a->batches, &a->batch_room, a->batch_count, sizeof(*a->batches));
	a->batches[a->batch_count++] = batch;
	clear(a);
}

static void add_cell(struct column_data *c, const struct export_column *column, uint64_t row,
		     const struct export_cell *cell)
{
	static const uint8_t none;
	const int32_t zero = 0;
	int32_t end;

	if (row % 8 == 0)
		add(&c->valid, &none, 1);
	c->valid.p[row / 8] |= (uint8_t)(!cell->null << row % 8);
	c->nulls += cell->null;
	if (column->kind == COLUMN_NUMBER) {
		add(&c->values, &cell->number, sizeof(cell->number));
		return;
	}
	if (!c->offsets.len)
		add(&c->offsets, &zero, sizeof(zero));
	add_text(&c->values, cell->text, cell->len);
	end = (int32_t)c->values.len;
	add(&c->offsets, &end, sizeof(end));
}

static void row(void *ctx, const struct export_cell *cells)
{
	struct arrow *a = ctx;

	for (unsigned c = 0; c < COLUMNS; c++)
		add_cell(&a->columns[c], &export_columns[c], a->rows, &cells[c]);
	if (++a->rows == ROWS)
		put_batch(a);
}

static void put_footer(struct arrow *a)
{
	static const uint32_t end[2] = { UINT32_MAX, 0 };
	struct flatbuffer b;
	struct flatbuffer_table t;
	size_t first;
	uint32_t len;

	put(a, end, sizeof(end));
	flatbuffer_start(&b);
	t = flatbuffer_table(&b, 0, (const uint8_t[]){ 2, 4, 4, 4 }, 4);
	flatbuffer_set(&b, t.field[0], VERSION_5, 2);
	write_schema(&b, t.field[1]);
	flatbuffer_vector(&b, t.field[2], 0, 24, 8);
	first = flatbuffer_vector(&b, t.field[3], (uint32_t)a->batch_count, 24, 8);
	for (size_t i = 0; i < a->batch_count; i++) {
		flatbuffer_set(&b, first + 24 * i, a->batches[i].offset, 8);
		flatbuffer_set(&b, first + 24 * i + 8, a->batches[i].meta, 4);
		flatbuffer_set(&b, first + 24 * i + 16, a->batches[i].body, 8);
	}
	len = (uint32_t)b.len;
	put(a, b.p, b.len);
	put(a, &len, sizeof(len));
	put(a, "ARROW1", 6);
	flatbuffer_free(&b);
}

int export_arrow(struct export *x)
{
	struct arrow a = { .f = x->f };
	struct flatbuffer b;
	int rc;

	put(&a, "ARROW1\0\0", 8);
	write_schema(&b, message(&b, HEADER_SCHEMA, 0));
	put_message(&a, &b);
	rc = export_table(x, row, &a);
	if (a.rows)
		put_batch(&a);
	put_footer(&a);
	for (unsigned c = 0; c < COLUMNS; c++)
		for (unsigned i = 0; i < 3; i++) {
			free(buffer_of(&a, c, i)->p);
			*buffer_of(&a, c, i) = (struct bytes){ 0 };
		}
	free(a.batches);
	return rc;
}

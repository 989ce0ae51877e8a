/* SPDX-License-Identifier: Apache-2.0 */
#include "arrow.h"

/* Bytes of a number, or of a text's offset. */
static unsigned arrow_bytes(enum arrow_type type)
{
	static const uint8_t bytes[] = { [ARROW_UINT64] = 8,
					 [ARROW_UINT32] = 4,
					 [ARROW_UINT16] = 2,
					 [ARROW_INT32] = 4,
					 [ARROW_TEXT] = 4 };

	return bytes[type];
}

static void new_buffers(struct arrow_batch *b, unsigned i)
{
	struct arrow_cells *c = &b->cells[i];
	bool text = b->columns[i].type == ARROW_TEXT;

	if (!c->valid.p)
		c->valid.p = need_new(ARROW_ROWS / 8);
	if (text && !c->offsets.p)
		c->offsets.p = need_new((ARROW_ROWS + 1) * sizeof(int32_t));
	if (!text && !c->values.p)
		c->values.p = need_new(ARROW_ROWS * arrow_bytes(b->columns[i].type));
	if (!c->values.p)
		c->values.room = 0;
}

static int unknown_column(const struct arrow_column *all, unsigned total, const char *name,
			  size_t len)
{
	char names[512] = "";

	FOR_EACH (const struct arrow_column, c, all, total)
		text_add(names, sizeof(names), ", %s", c->name);
	return say_usage("--columns \"%.*s\" is not one of %s", (int)len, name, names + 2);
}

int arrow_choose(const struct arrow_column *all, unsigned total, const char *list, unsigned *which,
		 unsigned *count)
{
	uint64_t taken = 0;

	for (*count = 0; !list && *count < total; ++*count)
		which[*count] = *count;
	for (; list && *list; list += strspn(list, ",")) {
		size_t len = strcspn(list, ",");
		unsigned i = 0;

		while (i < total && (strncmp(all[i].name, list, len) || all[i].name[len]))
			i++;
		if (i == total)
			return unknown_column(all, total, list, len);
		if (!(taken >> i & 1))
			which[(*count)++] = i;
		taken |= 1ull << i;
		list += len;
	}
	return *count ? 0 : unknown_column(all, total, "", 0);
}

void arrow_batch_init(struct arrow_batch *b, const struct arrow_column *columns, unsigned count)
{
	*b = (struct arrow_batch){ .columns = columns, .count = count };
	b->cells = need_new(count * sizeof(*b->cells));
	b->text = need_new(count * sizeof(*b->text));
	for (unsigned i = 0; i < count; i++) {
		if (columns[i].type == ARROW_TEXT)
			b->text[b->texts++] = i;
		new_buffers(b, i);
	}
}

void arrow_batch_free(struct arrow_batch *b)
{
	for (unsigned i = 0; i < b->count; i++) {
		free(b->cells[i].valid.p);
		free(b->cells[i].offsets.p);
		free(b->cells[i].values.p);
	}
	free(b->text);
	free(b->cells);
}

void arrow_batch_finish(struct arrow_batch *b)
{
	for (unsigned i = 0; i < b->count; i++) {
		struct arrow_cells *c = &b->cells[i];

		c->valid.len = c->given < b->rows ? (b->rows + 7) / 8 : 0;
		if (b->columns[i].type == ARROW_TEXT)
			c->offsets.len = (b->rows + 1) * sizeof(int32_t);
		else
			c->values.len = b->rows * arrow_bytes(b->columns[i].type);
	}
}

/* A cell that is not written must read as zero. */
void arrow_batch_clear(struct arrow_batch *b)
{
	for (unsigned i = 0; i < b->count; i++) {
		struct arrow_cells *c = &b->cells[i];

		if (c->valid.p)
			memset(c->valid.p, 0, (b->rows + 7) / 8);
		if (b->columns[i].type == ARROW_TEXT)
			c->values.len = 0;
		else if (c->values.p && c->given < b->rows)
			memset(c->values.p, 0, c->values.len);
		c->given = 0;
		new_buffers(b, i);
	}
	b->rows = 0;
}

static void set_valid(struct arrow_cells *c, uint64_t row)
{
	c->valid.p[row / 8] |= (uint8_t)(1u << row % 8);
	c->given++;
}

void arrow_number(struct arrow_batch *b, unsigned column, uint64_t number)
{
	struct arrow_cells *c = &b->cells[column];
	unsigned bytes = arrow_bytes(b->columns[column].type);
	uint8_t *at = c->values.p + b->rows * bytes;

	set_valid(c, b->rows);
	if (bytes == 8)
		memcpy(at, &number, 8);
	else
		memcpy(at, &number, bytes);
}

void arrow_text(struct arrow_batch *b, unsigned column, const char *s, size_t len)
{
	struct arrow_cells *c = &b->cells[column];

	set_valid(c, b->rows);
	bytes_add_text(&c->values, s, len);
}

bool arrow_row(struct arrow_batch *b)
{
	b->rows++;
	for (unsigned i = 0; i < b->texts; i++) {
		struct arrow_cells *c = &b->cells[b->text[i]];

		((int32_t *)(void *)c->offsets.p)[b->rows] = (int32_t)c->values.len;
	}
	return b->rows == ARROW_ROWS;
}

/*
 * Writes flatbuffers from front to back. A table comes first, then everything that it refers to,
 * and each reference is filled in when its target is written. Only the features that the Arrow
 * format needs.
 */

#define FLATBUFFER_FIELDS 8

/* Positions of a table's fields. */
struct flatbuffer_table {
	size_t field[FLATBUFFER_FIELDS];
};

static void flatbuffer_add_number(struct bytes *b, uint64_t value, unsigned bytes)
{
	bytes_add(b, &value, bytes);
}

static void flatbuffer_pad(struct bytes *b, unsigned align)
{
	while (b->len % align)
		flatbuffer_add_number(b, 0, 1);
}

static void flatbuffer_set(struct bytes *b, size_t at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		b->p[at + i] = (uint8_t)(value >> 8 * i);
}

/* A reference is the distance from its own position. */
static void refer(struct bytes *b, size_t at, size_t to)
{
	flatbuffer_set(b, at, to - at, 4);
}

/* The first table becomes the root. */
static void flatbuffer_start(struct bytes *b)
{
	*b = (struct bytes){ 0 };
	flatbuffer_add_number(b, 0, 4);
}

/* bytes[i]: size of field i: 1, 2, 4, 8, or 0 to leave it out. at: the reference to the table, 0
 * for the root. Writes the table of offsets, then the table: a reference to the offsets, then the
 * fields, the widest first, so that each is aligned if the first is at a multiple of 8. */
static struct flatbuffer_table flatbuffer_table(struct bytes *b, size_t at, const uint8_t *bytes,
						unsigned count)
{
	struct flatbuffer_table t = { { 0 } };
	unsigned size = 4;
	size_t offsets, start;

	flatbuffer_pad(b, 8);
	while ((b->len + 4 + 2 * count) % 8 != 4)
		flatbuffer_add_number(b, 0, 2);
	offsets = b->len;
	bytes_add(b, (const uint8_t[4 + 2 * FLATBUFFER_FIELDS]){ 0 }, 4 + 2 * count);
	start = b->len;
	refer(b, at, start);
	flatbuffer_add_number(b, start - offsets, 4);
	for (unsigned width = 8; width; width /= 2)
		for (unsigned i = 0; i < count; i++) {
			if (bytes[i] != width)
				continue;
			t.field[i] = b->len;
			flatbuffer_set(b, offsets + 4 + 2 * i, b->len - start, 2);
			flatbuffer_add_number(b, 0, width);
			size += width;
		}
	flatbuffer_set(b, offsets, 4 + 2 * count, 2);
	flatbuffer_set(b, offsets + 2, size, 2);
	return t;
}

static void flatbuffer_string(struct bytes *b, size_t at, const char *s)
{
	size_t len = strlen(s);

	flatbuffer_pad(b, 4);
	refer(b, at, b->len);
	flatbuffer_add_number(b, len, 4);
	bytes_add(b, s, len + 1);
}

/* Returns the position of the first element. Each has `each` bytes, all zero. */
static size_t flatbuffer_vector(struct bytes *b, size_t at, uint32_t count, unsigned each,
				unsigned align)
{
	size_t first;

	flatbuffer_pad(b, 4);
	while ((b->len + 4) % align)
		flatbuffer_add_number(b, 0, 1);
	refer(b, at, b->len);
	flatbuffer_add_number(b, count, 4);
	first = b->len;
	for (size_t i = 0; i < (size_t)count * each; i++)
		flatbuffer_add_number(b, 0, 1);
	return first;
}

/* Constants of Arrow's unions and versions. */
enum { HEADER_SCHEMA = 1, HEADER_BATCH = 3, TYPE_INT = 2, TYPE_UTF8 = 5, VERSION_5 = 4 };

struct arrow {
	FILE *f;
	struct arrow_batch rows;
	uint64_t at; /* bytes written */
	struct batch {
		uint64_t offset, body;
		uint32_t meta;
	} * batches;
	size_t batch_count, batch_room;
};

static void arrow_write_bytes(struct arrow *a, const void *bytes, size_t len)
{
	if (len)
		fwrite(bytes, 1, len, a->f);
	a->at += len;
}

static void pad(struct arrow *a)
{
	static const char zeros[8];

	arrow_write_bytes(a, zeros, (8 - a->at % 8) % 8);
}

static void write_meta(struct bytes *b, size_t at, const struct arrow_column *c)
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

static void write_field(struct bytes *b, size_t at, const struct arrow_column *c)
{
	bool number = c->type != ARROW_TEXT;
	struct flatbuffer_table t = flatbuffer_table(b, at,
						     (const uint8_t[]){ 4, 1, 1, 4, 0, 4, 4 }, 7),
				type;

	flatbuffer_string(b, t.field[0], c->name);
	flatbuffer_set(b, t.field[1], 1, 1);
	flatbuffer_set(b, t.field[2], number ? TYPE_INT : TYPE_UTF8, 1);
	type = flatbuffer_table(b, t.field[3], (const uint8_t[]){ 4, 1 }, number ? 2 : 0);
	if (number) {
		flatbuffer_set(b, type.field[0], 8 * arrow_bytes(c->type), 4);
		flatbuffer_set(b, type.field[1], c->type == ARROW_INT32, 1);
	}
	flatbuffer_vector(b, t.field[5], 0, 4, 4);
	write_meta(b, t.field[6], c);
}

static void write_schema(const struct arrow *a, struct bytes *b, size_t at)
{
	struct flatbuffer_table t = flatbuffer_table(b, at, (const uint8_t[]){ 2, 4 }, 2);
	size_t first = flatbuffer_vector(b, t.field[1], a->rows.count, 4, 4);

	for (unsigned i = 0; i < a->rows.count; i++)
		write_field(b, first + 4 * i, &a->rows.columns[i]);
}

/* Returns the position of the reference to the header, where the caller continues. */
static size_t message(struct bytes *b, unsigned header, uint64_t body)
{
	struct flatbuffer_table t;

	flatbuffer_start(b);
	t = flatbuffer_table(b, 0, (const uint8_t[]){ 2, 1, 4, 8 }, 4);
	flatbuffer_set(b, t.field[0], VERSION_5, 2);
	flatbuffer_set(b, t.field[1], header, 1);
	flatbuffer_set(b, t.field[3], body, 8);
	return t.field[2];
}

/* Writes the message without its body; returns its length. */
static uint32_t put_message(struct arrow *a, struct bytes *b)
{
	uint32_t head[2] = { UINT32_MAX };

	flatbuffer_pad(b, 8);
	head[1] = (uint32_t)b->len;
	arrow_write_bytes(a, head, sizeof(head));
	arrow_write_bytes(a, b->p, b->len);
	bytes_free(b);
	return head[1] + 8;
}

static unsigned buffer_count(const struct arrow *a, unsigned column)
{
	return a->rows.columns[column].type == ARROW_TEXT ? 3 : 2;
}

static struct bytes *buffer_of(struct arrow *a, unsigned column, unsigned i)
{
	struct arrow_cells *c = &a->rows.cells[column];

	if (i == 0)
		return &c->valid;
	return i == 1 && buffer_count(a, column) == 3 ? &c->offsets : &c->values;
}

/* Returns the body's bytes. Describes each padded buffer in the header b, if that is not NULL. */
static uint64_t each_buffer(struct arrow *a, struct bytes *b, size_t at)
{
	uint64_t offset = 0;

	for (unsigned c = 0; c < a->rows.count; c++)
		for (unsigned i = 0; i < buffer_count(a, c); i++) {
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
	for (unsigned c = 0; c < a->rows.count; c++)
		for (unsigned i = 0; i < buffer_count(a, c); i++) {
			struct bytes *data = buffer_of(a, c, i);

			arrow_write_bytes(a, data->p, data->len);
			pad(a);
		}
}

static void put_batch(struct arrow *a)
{
	struct batch batch = { .offset = a->at };
	struct bytes b;
	struct flatbuffer_table t;
	uint32_t buffers = 0;
	size_t nodes, at;

	for (unsigned c = 0; c < a->rows.count; c++)
		buffers += buffer_count(a, c);
	arrow_batch_finish(&a->rows);
	batch.body = each_buffer(a, NULL, 0);
	at = message(&b, HEADER_BATCH, batch.body);
	t = flatbuffer_table(&b, at, (const uint8_t[]){ 8, 4, 4 }, 3);
	flatbuffer_set(&b, t.field[0], a->rows.rows, 8);
	nodes = flatbuffer_vector(&b, t.field[1], a->rows.count, 16, 8);
	for (unsigned c = 0; c < a->rows.count; c++) {
		flatbuffer_set(&b, nodes + 16 * c, a->rows.rows, 8);
		flatbuffer_set(&b, nodes + 16 * c + 8, a->rows.rows - a->rows.cells[c].given, 8);
	}
	each_buffer(a, &b, flatbuffer_vector(&b, t.field[2], buffers, 16, 8));
	batch.meta = put_message(a, &b);
	put_body(a);
	arrow_batch_clear(&a->rows);
	*need_item(a->batches, a->batch_count, a->batch_room) = batch;
}

struct arrow *arrow_open(FILE *f, const struct arrow_column *columns, unsigned count)
{
	struct arrow *a = need_new(sizeof(*a));
	struct bytes b;

	*a = (struct arrow){ .f = f };
	arrow_batch_init(&a->rows, columns, count);
	arrow_write_bytes(a, "ARROW1\0\0", 8);
	write_schema(a, &b, message(&b, HEADER_SCHEMA, 0));
	put_message(a, &b);
	fflush(f); /* a reader of a pipe might wait for the schema */
	return a;
}

static void put_footer(struct arrow *a)
{
	static const uint32_t end[2] = { UINT32_MAX, 0 };
	struct bytes b;
	struct flatbuffer_table t;
	size_t first;
	uint32_t len;

	arrow_write_bytes(a, end, sizeof(end));
	flatbuffer_start(&b);
	t = flatbuffer_table(&b, 0, (const uint8_t[]){ 2, 4, 4, 4 }, 4);
	flatbuffer_set(&b, t.field[0], VERSION_5, 2);
	write_schema(a, &b, t.field[1]);
	flatbuffer_vector(&b, t.field[2], 0, 24, 8);
	first = flatbuffer_vector(&b, t.field[3], (uint32_t)a->batch_count, 24, 8);
	for (size_t i = 0; i < a->batch_count; i++) {
		flatbuffer_set(&b, first + 24 * i, a->batches[i].offset, 8);
		flatbuffer_set(&b, first + 24 * i + 8, a->batches[i].meta, 4);
		flatbuffer_set(&b, first + 24 * i + 16, a->batches[i].body, 8);
	}
	len = (uint32_t)b.len;
	arrow_write_bytes(a, b.p, b.len);
	arrow_write_bytes(a, &len, sizeof(len));
	arrow_write_bytes(a, "ARROW1", 6);
	bytes_free(&b);
}

struct arrow_batch *arrow_rows(struct arrow *a)
{
	return &a->rows;
}

void arrow_flush(struct arrow *a)
{
	if (a->rows.rows)
		put_batch(a);
}

void arrow_close(struct arrow *a)
{
	arrow_flush(a);
	put_footer(a);
	arrow_batch_free(&a->rows);
	free(a->batches);
	free(a);
}

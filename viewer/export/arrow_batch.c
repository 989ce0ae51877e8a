/* SPDX-License-Identifier: Apache-2.0 */
#include "arrow_batch.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

unsigned arrow_bytes(enum arrow_type type)
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "page_column.h"

#include "../base/emit.h"

void column_put_all(struct bytes *c, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes_varint(c, numbers[i]);
}

static void base64(const uint8_t *in, size_t len, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (; len; in += 3, out += 4) {
		uint32_t v =
			(uint32_t)in[0] << 16 | (len > 1 ? in[1] << 8 : 0) | (len > 2 ? in[2] : 0);

		out[0] = digits[v >> 18];
		out[1] = digits[v >> 12 & 63];
		out[2] = len > 1 ? digits[v >> 6 & 63] : '=';
		out[3] = len > 2 ? digits[v & 63] : '=';
		len -= len < 3 ? len : 3;
	}
}

void column_emit(struct bytes *c, struct emit *out, const char *key)
{
	size_t len = (c->len + 2) / 3 * 4;
	char *text = need_new(len + 1);

	base64(c->p, c->len, text);
	emit_bytes(out, key, text, len);
	free(text);
	bytes_free(c);
}

uint32_t interned_put(struct interned *t, const uint32_t *row)
{
	size_t size = t->width * sizeof(*row), used = t->count * t->width;
	uint64_t hash = map_hash(0, row, size);
	uint32_t at;

	while ((at = map_number(&t->ids, hash, t->count)) < t->count) {
		if (!memcmp(&t->rows[at * t->width], row, size))
			return at;
		hash++;
	}
	while (used + t->width > t->room)
		t->rows = need_grow(t->rows, &t->room, t->room, sizeof(*row));
	memcpy(&t->rows[used], row, size);
	t->count++;
	return at;
}

void interned_emit(const struct interned *t, struct emit *out, const char *key)
{
	struct bytes c = { 0 };

	for (size_t i = 0; i < t->count * t->width; i++)
		bytes_varint(&c, t->rows[i]);
	column_emit(&c, out, key);
}

void interned_free(struct interned *t)
{
	free(t->rows);
	map_free(&t->ids);
}

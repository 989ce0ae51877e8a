/* SPDX-License-Identifier: Apache-2.0 */
#include "page_column.h"

#include <stdlib.h>

#include "../base/emit.h"
#include "../base/need.h"

void column_put(struct column *c, uint64_t n)
{
	do {
		c->bytes = need_grow(c->bytes, &c->room, c->count, 1);
		c->bytes[c->count++] = (n & 0x7f) | (n > 0x7f ? 0x80 : 0);
		n >>= 7;
	} while (n);
}

void column_put_signed(struct column *c, int64_t n)
{
	column_put(c, (uint64_t)n << 1 ^ (uint64_t)(n >> 63));
}

void column_join(struct column *c, struct column *more)
{
	for (size_t i = 0; i < more->count; i++) {
		c->bytes = need_grow(c->bytes, &c->room, c->count, 1);
		c->bytes[c->count++] = more->bytes[i];
	}
	free(more->bytes);
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

void column_emit(struct column *c, struct emit *out, const char *key)
{
	size_t len = (c->count + 2) / 3 * 4;
	char *text = need_new(len + 1);

	base64(c->bytes, c->count, text);
	emit_bytes(out, key, text, len);
	free(text);
	free(c->bytes);
	*c = (struct column){ 0 };
}

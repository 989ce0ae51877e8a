/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"

#include "../../format/varint.h"
#include "emit_json.h"
#include "machine.h"

static void make_room(struct bytes *b, size_t more)
{
	if (b->len + more <= b->room)
		return;
	if (more > SIZE_MAX / 2 - b->len) /* a size has 32 bits in a browser */
		machine_out_of_memory();
	b->room = (b->len + more) * 2;
	b->p = need_resize(b->p, b->room);
}

void bytes_add(struct bytes *b, const void *bytes, size_t len)
{
	make_room(b, len);
	if (len)
		memcpy(b->p + b->len, bytes, len);
	b->len += len;
}

void bytes_varint(struct bytes *b, uint64_t n)
{
	make_room(b, VARINT_MOST);
	b->len = (size_t)(put_varint(b->p + b->len, n) - b->p);
}

size_t bytes_add_text(struct bytes *b, const char *s, size_t len)
{
	size_t before = b->len;

	while (len) {
		size_t n = 0;

		while (n < len && (signed char)s[n] > 0) /* char has no sign on aarch64 */
			n++;
		bytes_add(b, s, n);
		s += n;
		len -= n;
		if (!len)
			break;
		n = emit_utf8(s, len);
		bytes_add(b, n ? s : "?", n ? n : 1);
		n = n ? n : 1;
		s += n;
		len -= n;
	}
	return b->len - before;
}

void bytes_free(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){ 0 };
}

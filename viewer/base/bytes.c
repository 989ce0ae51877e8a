/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#include "emit_json.h"
#include "need.h"

void bytes_add(struct bytes *b, const void *bytes, size_t len)
{
	if (b->len + len > b->room) {
		b->room = (b->len + len) * 2;
		b->p = need_resize(b->p, b->room);
	}
	if (len)
		memcpy(b->p + b->len, bytes, len);
	b->len += len;
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

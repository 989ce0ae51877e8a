/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions <-> bytes. Pure: no allocation, no state.
 */
#include <string.h>

#include "codec.h"
#include "record.h"
#include "varint.h"

size_t gmt_encoded_def_size(const struct gmt_def *d)
{
	return varint_size(d->kind) + varint_size(d->id) + varint_size(d->len) + d->len;
}

size_t gmt_encode_def(const struct gmt_def *d, uint8_t *out)
{
	uint8_t *p = put_varint(out, d->kind);

	p = put_varint(p, d->id);
	p = put_varint(p, d->len);
	if (d->len)
		memcpy(p, d->payload, d->len);
	return (size_t)(p - out) + d->len;
}

long gmt_decode_def(const uint8_t *in, size_t len, struct gmt_def *out)
{
	struct cursor cur = { in, in + len, false };

	out->kind = get_varint32(&cur);
	out->id = get_varint32(&cur);
	out->len = get_varint32(&cur);
	out->payload = cur.p;
	if (cur.bad || out->len > (size_t)(cur.end - cur.p))
		return -GMT_ERR_BAD_RECORD;
	return (long)(cur.p - in) + out->len;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of a block as one payload: how many there are, the length of each, then their bytes.
 * Pure: no allocation, no state but the caller's.
 */
#include "codec.h"
#include "varint.h"

_Static_assert(1 + 5 * GMT_COLUMNS <= GMT_COLUMNS_HEAD, "lengths of 32 bits fit");

size_t gmt_columns_head(const size_t lengths[GMT_COLUMNS], uint8_t *out)
{
	uint8_t *p = put_varint(out, GMT_COLUMNS);

	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		p = put_varint(p, lengths[i]);
	return (size_t)(p - out);
}

bool gmt_columns_open(struct cursor *in, const uint8_t *payload, size_t len)
{
	struct cursor head = { payload, payload + len, false };
	uint64_t lengths[GMT_COLUMNS] = { 0 }, columns = get_varint(&head);

	for (uint64_t i = 0; i < columns && !head.bad; i++) {
		uint64_t length = get_varint(&head);

		if (i < GMT_COLUMNS)
			lengths[i] = length;
	}
	for (unsigned i = 0; i < GMT_COLUMNS && !head.bad; i++) {
		if (lengths[i] > (uint64_t)(head.end - head.p))
			return false;
		in[i] = (struct cursor){ head.p, head.p + lengths[i], false };
		head.p += lengths[i];
	}
	return !head.bad;
}

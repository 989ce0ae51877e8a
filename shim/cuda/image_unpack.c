/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks code. LZ4's block format is a sequence of pairs: literal bytes, then a distance back from
 * which to copy; the last pair has no copy. Application threads; the input can be any bytes.
 */
#include "image_unpack.h"

#include "../base/os.h"

#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#define LZ4_LEAST_COPY 4u
#define LZ4_LONG       15u /* of a length: the next bytes say the rest */

struct lz4 {
	const uint8_t *in, *in_end;
	uint8_t *first, *out, *out_end;
};

static bool lz4_length(struct lz4 *z, size_t *length)
{
	uint8_t byte = UINT8_MAX;

	if (*length < LZ4_LONG)
		return true;
	for (; byte == UINT8_MAX; *length += byte) {
		if (z->in == z->in_end)
			return false;
		byte = *z->in++;
	}
	return true;
}

static bool lz4_plain(struct lz4 *z, size_t length)
{
	if (!lz4_length(z, &length) || length > (size_t)(z->in_end - z->in) ||
	    length > (size_t)(z->out_end - z->out))
		return false;
	memcpy(z->out, z->in, length);
	z->in += length;
	z->out += length;
	return true;
}

static bool lz4_copy(struct lz4 *z, size_t length)
{
	size_t back;

	if (z->in_end - z->in < 2)
		return false;
	back = z->in[0] + 256u * z->in[1];
	z->in += 2;
	if (!lz4_length(z, &length))
		return false;
	length += LZ4_LEAST_COPY;
	if (!back || back > (size_t)(z->out - z->first) || length > (size_t)(z->out_end - z->out))
		return false;
	while (length--) { /* source and target may overlap: it repeats what it has just written */
		*z->out = *(z->out - back);
		z->out++;
	}
	return true;
}

static size_t unpack_lz4(uint8_t *out, size_t room, const uint8_t *in, size_t bytes)
{
	struct lz4 z = { in, in + bytes, out, out, out + room };

	while (z.in < z.in_end) {
		unsigned pair = *z.in++;

		if (!lz4_plain(&z, pair / 16) || (z.in < z.in_end && !lz4_copy(&z, pair % 16)))
			return 0;
	}
	return (size_t)(z.out - out);
}

static size_t unpack_zstd(uint8_t *out, size_t room, const uint8_t *in, size_t bytes)
{
	size_t size = ZSTD_estimateDCtxSize(), n = 0;
	void *memory = os_map(size);
	ZSTD_DCtx *z = memory ? ZSTD_initStaticDCtx(memory, size) : NULL;

	if (z)
		n = ZSTD_decompressDCtx(z, out, room, in, bytes);
	if (memory)
		os_unmap(memory, size);
	return n <= room ? n : 0; /* else an error of zstd */
}

size_t image_unpack(uint8_t *out, size_t room, const uint8_t *in, size_t bytes)
{
	uint32_t magic = 0;

	memcpy(&magic, in, bytes < sizeof(magic) ? bytes : sizeof(magic));
	return magic == ZSTD_MAGICNUMBER ? unpack_zstd(out, room, in, bytes)
					 : unpack_lz4(out, room, in, bytes);
}

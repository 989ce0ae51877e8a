/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small packed file could fill the memory when it is unpacked, so a file that grows more than a
 * thousandfold, or beyond 4 GiB, is rejected.
 */
#include "unpack.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "plain_file.h"
#include "need.h"
#include "say.h"

#define ALWAYS (64ull << 20)
#define NEVER  (4ull << 30)
#define GROWTH 1000

struct output {
	uint8_t *data;
	size_t len, room, limit;
	const char *error;
};

/* Room for more; false: there will be no more. */
static bool grow(struct output *o)
{
	if (o->len < o->room)
		return true;
	if (o->room >= o->limit) {
		o->error = "unpacks to far more than a memory snapshot would";
		return false;
	}
	o->room = o->room ? 2 * o->room : 1 << 20;
	if (o->room > o->limit)
		o->room = o->limit;
	o->data = need_resize(o->data, o->room);
	return true;
}

static void unpack_zstd(const struct unpacked *from, struct output *o)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer in = { from->data, from->len, 0 };
	size_t rc = 1;

	while (z && !o->error && grow(o)) {
		ZSTD_outBuffer out = { o->data, o->room, o->len };

		rc = ZSTD_decompressStream(z, &out, &in);
		if (ZSTD_isError(rc))
			o->error = "cannot be unpacked: its zstd data is damaged";
		else if (in.pos == in.size && out.pos == o->len && rc)
			o->error = "cannot be unpacked: its zstd data ends too early";
		o->len = out.pos;
		if (!o->error && in.pos == in.size && !rc)
			break;
	}
	ZSTD_freeDStream(z);
}

static void unpack_gzip(const struct unpacked *from, struct output *o)
{
	z_stream z = { .next_in = (Bytef *)from->data };
	size_t left = from->len;
	int rc = inflateInit2(&z, 15 + 16);

	while (rc == Z_OK && grow(o)) {
		size_t room = o->room - o->len;

		if (!z.avail_in) {
			z.avail_in = left < UINT32_MAX ? (uInt)left : UINT32_MAX;
			left -= z.avail_in;
		}
		z.next_out = o->data + o->len;
		z.avail_out = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
		rc = inflate(&z, Z_NO_FLUSH);
		o->len = (size_t)(z.next_out - o->data);
	}
	inflateEnd(&z);
	if (rc != Z_STREAM_END && !o->error)
		o->error = rc == Z_BUF_ERROR ? "cannot be unpacked: its gzip data ends too early"
					     : "cannot be unpacked: its gzip data is damaged";
}

bool unpack_is_zstd(const void *start, size_t len)
{
	return len >= 4 && !memcmp(start, "\x28\xb5\x2f\xfd", 4);
}

bool unpack_is_gzip(const void *start, size_t len)
{
	return len >= 3 && !memcmp(start, "\x1f\x8b\x08", 3);
}

static int map_file(const char *path, struct unpacked *u)
{
	struct stat st;
	int fd = file_open(path), why = errno;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0) {
		u->len = (size_t)st.st_size;
		u->data = mmap(NULL, u->len, PROT_READ, MAP_PRIVATE, fd, 0);
		why = errno;
		u->mapped = u->data != MAP_FAILED;
	}
	if (fd >= 0)
		close(fd);
	if (u->mapped)
		return 0;
	return say_error(EXIT_UNREADABLE, "%s: %s", path,
			 fd < 0 ? file_trouble(why) : "cannot be read");
}

int unpack_file(const char *path, struct unpacked *u)
{
	struct output o = { 0 };
	struct unpacked packed;
	int rc;

	*u = (struct unpacked){ 0 };
	rc = map_file(path, u);
	if (rc || (!unpack_is_zstd(u->data, u->len) && !unpack_is_gzip(u->data, u->len)))
		return rc;
	packed = *u;
	o.limit = packed.len > NEVER / GROWTH ? NEVER : packed.len * GROWTH;
	if (o.limit < ALWAYS)
		o.limit = ALWAYS;
	if (unpack_is_zstd(packed.data, packed.len))
		unpack_zstd(&packed, &o);
	else
		unpack_gzip(&packed, &o);
	unpack_free(&packed);
	*u = (struct unpacked){ o.data, o.len, false };
	if (!o.error)
		return 0;
	unpack_free(u);
	return say_error(EXIT_UNREADABLE, "%s %s", path, o.error);
}

void unpack_free(struct unpacked *u)
{
	if (u->mapped)
		munmap((void *)u->data, u->len);
	else
		free((void *)u->data);
	*u = (struct unpacked){ 0 };
}

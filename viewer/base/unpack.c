/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small packed file could fill the memory when it is unpacked, so a file that grows more than a
 * thousandfold, or beyond 4 GiB (1 GiB if size_t has 32 bits, as in a browser), is rejected.
 */
#include "unpack.h"

#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "plain_file.h"

#if SIZE_MAX > UINT32_MAX
#define NEVER	   ((size_t)4 << 30)
#define NEVER_TEXT "4 GiB"
#else /* twice this still fits into a 32-bit size_t */
#define NEVER	   ((size_t)1 << 30)
#define NEVER_TEXT "1 GiB"
#endif
#define ALWAYS	      ((size_t)64 << 20)
#define GROWTH	      1000
#define XZ_DICTIONARY (128ul << 20) /* bytes, with the decoder's tables; `xz -9` needs 65 MiB */

struct output {
	uint8_t *data;
	size_t len, room, limit;
	const char *error;
};

/* Makes room for more output. False: it has reached its limit. */
static bool grow(struct output *o)
{
	if (o->len < o->room)
		return true;
	if (o->room >= o->limit) {
		o->error = o->limit < NEVER ? "unpacks to far more than a memory snapshot would"
					    : "unpacks to more than " NEVER_TEXT
					      ", the most that is unpacked here; unpack it first";
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

/* bits: window size as in inflateInit2; at: offset of the compressed bytes. */
static void inflate_from(const struct unpacked *from, size_t at, int bits, struct output *o)
{
	z_stream z = { .next_in = (Bytef *)from->data + at };
	size_t left = from->len - at;
	int rc = inflateInit2(&z, bits);

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
		o->error = rc == Z_BUF_ERROR
				   ? "cannot be unpacked: its gzip or zip data ends too early"
				   : "cannot be unpacked: its gzip or zip data is damaged";
}

static void unpack_gzip(const struct unpacked *from, struct output *o)
{
	inflate_from(from, 0, 15 + 16, o);
}

static void unpack_xz(const struct unpacked *from, struct output *o)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret rc = lzma_stream_decoder(&z, XZ_DICTIONARY, LZMA_CONCATENATED);

	z.next_in = from->data;
	z.avail_in = from->len;
	while (rc == LZMA_OK && grow(o)) {
		z.next_out = o->data + o->len;
		z.avail_out = o->room - o->len;
		rc = lzma_code(&z, LZMA_FINISH);
		o->len = (size_t)(z.next_out - o->data);
	}
	lzma_end(&z);
	if (rc == LZMA_STREAM_END || o->error)
		return;
	o->error = rc == LZMA_BUF_ERROR ? "cannot be unpacked: its xz data ends too early"
		   : rc == LZMA_MEMLIMIT_ERROR
			   ? "has an unusually large xz dictionary; unpack it first: xz -dk"
			   : "cannot be unpacked: its xz data is damaged";
}

static void output_copy(struct output *o, const uint8_t *from, size_t len)
{
	o->data = need_resize(o->data, len + 1);
	memcpy(o->data, from, len);
	o->len = len;
}

/* Whether the archive was made by torch.save. The list of its files, at its end, has "version". */
static bool is_checkpoint(const struct unpacked *from, const uint8_t *name, size_t len)
{
	size_t end = from->len < UNPACK_START ? from->len : UNPACK_START;

	return len > 9 && !memcmp(name + len - 9, "/data.pkl", 9) &&
	       memmem((const uint8_t *)from->data + from->len - end, end, "/version", 8);
}

/* Unpacks the first file of an archive. */
static void unpack_zip(const struct unpacked *from, struct output *o)
{
	const uint8_t *p = from->data;
	struct {
		uint16_t flags, method;
		uint32_t time, sum, packed, unpacked;
		uint16_t name, more;
	} __attribute__((packed)) head;
	size_t at = 0, data;

	for (;; at = data) {
		if (from->len - at < 30 || memcmp(p + at, "PK\3\4", 4))
			break;
		memcpy(&head, p + at + 6, sizeof(head));
		data = at + 30 + head.name + head.more;
		if (data > from->len)
			break;
		if (head.name && p[at + 30 + head.name - 1] == '/')
			continue; /* a folder */
		if (is_checkpoint(from, p + at + 30, head.name)) {
			o->error = "is a checkpoint of torch.save, not a snapshot";
			return;
		}
		if (head.method == 8)
			inflate_from(from, data, -15, o);
		else if (!head.method && !(head.flags & 8) && head.packed <= from->len - data)
			output_copy(o, p + data, head.packed);
		else
			break;
		return;
	}
	o->error = "cannot be unpacked: a zip archive without a file at its start that is stored "
		   "or deflated";
}

static const char viz_before[] = "\"base64\": \"";

static const char *viz_text(const void *start, size_t len)
{
	size_t head = len < UNPACK_START ? len : UNPACK_START;

	return memmem(start, head, "MemoryViz.js", 12)
		       ? memmem(start, head, viz_before, sizeof(viz_before) - 1)
		       : NULL;
}

/* Decodes the snapshot in a page of PyTorch's memory_viz (base64). */
static void unpack_viz(const struct unpacked *from, struct output *o)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = viz_text(from->data, from->len) + sizeof(viz_before) - 1,
		   *end = (const char *)from->data + from->len;
	uint8_t values[256] = { 0 };
	uint32_t bits = 1;

	for (unsigned i = 0; i < 64; i++)
		values[(uint8_t)digits[i]] = (uint8_t)(i + 1);
	o->data = need_resize(o->data, (size_t)(end - at) + 4);
	for (; at < end && values[(uint8_t)*at]; at++) {
		bits = bits << 6 | (values[(uint8_t)*at] - 1u);
		if (!(bits >> 24))
			continue;
		o->data[o->len++] = (uint8_t)(bits >> 16);
		o->data[o->len++] = (uint8_t)(bits >> 8);
		o->data[o->len++] = (uint8_t)bits;
		bits = 1;
	}
	if (at == end)
		o->error = "cannot be read: a page of memory_viz that ends too early";
}

static const struct packing {
	const char *start;
	size_t len;
	void (*unpack)(const struct unpacked *from, struct output *o);
} packings[] = {
	{ "\x28\xb5\x2f\xfd", 4, unpack_zstd },
	{ "\x1f\x8b\x08", 3, unpack_gzip },
	{ "PK\3\4", 4, unpack_zip },
	{ "\xfd"
	  "7zXZ",
	  6, unpack_xz },
};

static const struct packing *packing_of(const void *start, size_t len)
{
	static const struct packing viz = { "", 0, unpack_viz };

	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
		if (len >= packings[i].len && !memcmp(start, packings[i].start, packings[i].len))
			return &packings[i];
	return viz_text(start, len) ? &viz : NULL;
}

bool unpack_recognises(const void *start, size_t len)
{
	return packing_of(start, len) != NULL;
}

/* Reads len bytes, or fewer if the file ends before. */
static size_t read_bytes(int fd, uint8_t *to, size_t len)
{
	size_t got = 0;
	ssize_t n = 1;

	while (got < len && n) {
		n = read(fd, to + got, len - got);
		if (n < 0 && errno != EINTR)
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	return got;
}

/* Copies the file into memory; returns an error message or NULL. */
static const char *copy_file(int fd, struct unpacked *u)
{
	struct stat st;

	if (fstat(fd, &st) || st.st_size <= 0)
		return "cannot be read";
	if ((uint64_t)st.st_size > SIZE_MAX / 2)
		return "too large to be read here";
	u->len = (size_t)st.st_size;
	u->data = need_resize(NULL, u->len);
	if (read_bytes(fd, (uint8_t *)u->data, u->len) == u->len)
		return NULL;
	unpack_free(u);
	return "it became shorter while it was read; try again when it is complete";
}

static int read_file(const char *path, struct unpacked *u)
{
	int fd = file_open(path);
	const char *error = fd < 0 ? file_trouble(errno) : copy_file(fd, u);

	if (fd >= 0)
		close(fd);
	return error ? say_unreadable("%s: %s", path, error) : 0;
}

int unpack_file(const char *path, struct unpacked *u)
{
	struct output o = { 0 };
	const struct packing *packing;
	struct unpacked packed;
	int rc;

	*u = (struct unpacked){ 0 };
	rc = read_file(path, u);
	packing = rc ? NULL : packing_of(u->data, u->len);
	if (!packing)
		return rc;
	packed = *u;
	o.limit = packed.len > NEVER / GROWTH ? NEVER : packed.len * GROWTH;
	if (o.limit < ALWAYS)
		o.limit = ALWAYS;
	packing->unpack(&packed, &o);
	unpack_free(&packed);
	if (!o.error && o.len > 8 && !memcmp(o.data, "\x89GMTREC", 7))
		o.error = "is a packed recording; unpack it first (gzip -dk, xz -dk, zstd -d, "
			  "unzip)";
	*u = (struct unpacked){ o.data, o.len };
	if (!o.error)
		return 0;
	unpack_free(u);
	return say_unreadable("%s %s", path, o.error);
}

void unpack_free(struct unpacked *u)
{
	free((void *)u->data);
	*u = (struct unpacked){ 0 };
}

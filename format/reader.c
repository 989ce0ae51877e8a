/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a recording, its live file, or both, and passes their records on. One thread per reader,
 * plus those of reader_ahead.c. Prints nothing, and checks every length against the bytes that are
 * there before it uses it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "reader_parts.h"
#include "record.h"

#define LIVE_SUFFIX ".live"
#define NOT_A_FILE  EINVAL /* a device, a pipe */

/* Opens a regular file for reading. Returns its descriptor, or -1 with errno. */
static int open_file(const char *path, uint64_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = { 0 };
	int saved;

	*size = 0;
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		*size = (uint64_t)st.st_size;
		return fd;
	}
	saved = S_ISDIR(st.st_mode) ? EISDIR : NOT_A_FILE;
	close(fd);
	errno = saved;
	return -1;
}

static bool has_suffix(const char *path)
{
	size_t n = strlen(path), m = strlen(LIVE_SUFFIX);

	return n > m && strcmp(path + n - m, LIVE_SUFFIX) == 0;
}

/* Opens the other file of the pair: FILE.live for FILE, FILE for FILE.live. -1 if there is none. */
static int open_sibling(const char *path, bool is_live, uint64_t *size)
{
	size_t n = strlen(path) + sizeof(LIVE_SUFFIX);
	char *other = reader_memory(NULL, n);
	int fd = -1;

	*size = 0;
	if (!other)
		return -1;
	snprintf(other, n, "%s%s", path, is_live ? "" : LIVE_SUFFIX);
	if (is_live && has_suffix(path))
		other[strlen(path) - strlen(LIVE_SUFFIX)] = 0;
	if (!is_live || has_suffix(path))
		fd = open_file(other, size);
	reader_memory(other, 0);
	return fd;
}

struct pair {
	int fd, live;
	uint64_t size, live_size;
	struct gmt_live_header live_head;
	struct gmt_file_header head;
	bool head_valid;
};

/* Opens those files of the pair that exist. 0 or -GMT_ERR_*. */
static int open_pair(struct pair *p, const char *path)
{
	int saved;

	p->fd = open_file(path, &p->size);
	saved = errno;
	if (p->fd >= 0 && reader_live_header(p->fd, p->size, &p->live_head)) {
		p->live = p->fd;
		p->live_size = p->size;
		p->fd = open_sibling(path, true, &p->size);
		return 0;
	}
	if (p->fd < 0 && saved != ENOENT) {
		errno = saved;
		return saved == NOT_A_FILE ? -GMT_ERR_NOT_A_RECORDING : -GMT_ERR_SYS;
	}
	p->live = open_sibling(path, false, &p->live_size);
	if (p->live >= 0 && !reader_live_header(p->live, p->live_size, &p->live_head)) {
		close(p->live);
		p->live = -1;
	}
	errno = saved;
	return p->fd < 0 && p->live < 0 ? -GMT_ERR_SYS : 0;
}

/* A process measures the clocks' difference once, so it is equal in both files. A file from before
 * version 4 does not have the start time of its process. */
static bool same_process(const struct gmt_file_header *f, const struct gmt_live_header *l)
{
	bool both_say = f->version >= 4 && l->version >= 4;

	return f->pid == l->pid &&
	       f->realtime_minus_monotonic_ns == l->realtime_minus_monotonic_ns &&
	       (!both_say || f->origin.start == l->origin.start);
}

/* Drops the live file if it is of another process than the recording. */
static void match_pair(struct pair *p)
{
	p->head_valid = p->fd >= 0 &&
			reader_read(p->fd, 0, &p->head, sizeof(p->head)) == sizeof(p->head) &&
			gmt_file_header_valid(&p->head);
	if (p->live >= 0 && p->head_valid && !same_process(&p->head, &p->live_head)) {
		close(p->live);
		p->live = -1;
	}
}

static void *zstd_take(void *opaque, size_t bytes)
{
	(void)opaque;
	return reader_memory(NULL, bytes);
}

static void zstd_give(void *opaque, void *p)
{
	(void)opaque;
	reader_memory(p, 0);
}

bool reader_take_room(struct gmt_reader *r)
{
	static const ZSTD_customMem memory = { zstd_take, zstd_give, NULL };

	r->stored = reader_memory(NULL, GMT_BLOCK_STORED_MAX);
	r->raw = reader_memory(NULL, GMT_BLOCK_RAW_MAX);
	r->codec = reader_memory(NULL, sizeof(*r->codec));
	r->past = reader_memory(NULL, sizeof(*r->past));
	r->zstd = ZSTD_createDCtx_advanced(memory);
	r->group_zstd = ZSTD_createDCtx_advanced(memory);
	return r->stored && r->raw && r->codec && r->past && r->zstd && r->group_zstd;
}

void reader_free_room(struct gmt_reader *r)
{
	ZSTD_freeDCtx(r->zstd);
	ZSTD_freeDCtx(r->group_zstd);
	reader_memory(r->stored, 0);
	reader_memory(r->raw, 0);
	r->codec = reader_memory(r->codec, 0);
	r->past = reader_memory(r->past, 0);
	r->stored = r->raw = NULL;
	r->zstd = r->group_zstd = NULL;
}

static struct gmt_reader *new_reader(int fd, uint64_t size)
{
	struct gmt_reader *r = reader_memory(NULL, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct gmt_reader){ 0 };
	r->fd = fd;
	r->size = size;
	r->info.file_bytes = size;
	if (reader_take_room(r))
		return r;
	gmt_reader_close(r);
	return NULL;
}

/* The error for a file without a valid header and without blocks. */
static int why_refused(int fd, uint64_t size)
{
	uint64_t magic = GMT_FILE_MAGIC, found = 0;
	size_t n = fd < 0 ? 0 : reader_read(fd, 0, &found, sizeof(found));

	if (size == 0)
		return -GMT_ERR_EMPTY;
	return n && memcmp(&found, &magic, n) == 0 ? -GMT_ERR_DAMAGED_HEADER
						   : -GMT_ERR_NOT_A_RECORDING;
}

static int read_recording(struct gmt_reader *r, const struct pair *p)
{
	if (p->head_valid) {
		r->info.version = p->head.version;
		r->info.pid = p->head.pid;
		r->info.realtime_minus_monotonic_ns = p->head.realtime_minus_monotonic_ns;
		if (p->head.version >= 4)
			r->info.origin = p->head.origin;
	}
	if (r->fd < 0)
		return 0;
	if (p->head_valid && p->head.version > GMT_VERSION)
		return -GMT_ERR_NEWER_VERSION;
	return reader_scan(r, p->head_valid ? p->head.header_bytes : 0);
}

static int read_live(struct gmt_reader *r, const struct pair *p)
{
	const struct gmt_live_header *h = &p->live_head;

	if (p->live < 0)
		return 0;
	if (h->version > GMT_VERSION && !p->head_valid)
		return -GMT_ERR_NEWER_VERSION;
	if (!p->head_valid) {
		r->info.version = h->version;
		r->info.pid = h->pid;
		r->info.realtime_minus_monotonic_ns = h->realtime_minus_monotonic_ns;
		if (h->version >= 4)
			r->info.origin = h->origin;
	}
	return reader_live_take(r, p->live, p->live_size, h);
}

/* Reads the live file first: slots that its rings release meanwhile are in the recording when that
 * is read. */
static int read_pair(struct gmt_reader *r, struct pair *p)
{
	struct stat st;
	int rc = read_live(r, p);

	if (rc)
		return rc;
	if (r->fd >= 0 && fstat(r->fd, &st) == 0) {
		r->info.file_bytes += (uint64_t)st.st_size - r->size;
		r->size = (uint64_t)st.st_size;
	}
	rc = read_recording(r, p);
	reader_live_number(r);
	if (rc == 0 && !p->head_valid && p->live < 0 && r->info.blocks == 0)
		rc = why_refused(r->fd, r->size);
	r->info.truncated = !r->info.clean_end || r->info.skipped_bytes || r->info.damaged_blocks;
	return rc;
}

static struct gmt_reader *open_once(const char *path, int *err)
{
	struct pair p = { .fd = -1, .live = -1 };
	struct gmt_reader *r;

	*err = open_pair(&p, path);
	if (*err)
		return NULL;
	match_pair(&p);
	r = new_reader(p.fd, p.size);
	*err = r ? read_pair(r, &p) : -GMT_ERR_NO_MEMORY;
	if (!r && p.fd >= 0)
		close(p.fd);
	if (p.live >= 0)
		close(p.live);
	if (r && *err) {
		gmt_reader_close(r);
		r = NULL;
	}
	return r;
}

/* Whether a bounded recording was replaced by a new file while its process runs. */
static bool was_replaced(const struct gmt_reader *r, const char *path)
{
	struct stat now, open;

	return r && r->fd >= 0 && !r->info.clean_end && !stat(path, &now) && !fstat(r->fd, &open) &&
	       (now.st_ino != open.st_ino || now.st_dev != open.st_dev);
}

struct gmt_reader *gmt_reader_open(const char *path, int *err)
{
	struct gmt_reader *r = open_once(path, err);

	for (int tries = 0; tries < 3 && was_replaced(r, path); tries++) {
		gmt_reader_close(r);
		r = open_once(path, err);
	}
	return r;
}

void gmt_reader_writer(const char *path, char text[GMT_WRITER_TEXT + 1])
{
	struct pair p = { .fd = -1, .live = -1 };
	int why = errno;

	text[GMT_WRITER_TEXT] = 0;
	memset(text, 0, GMT_WRITER_TEXT);
	if (open_pair(&p, path) == 0)
		match_pair(&p);
	if (p.head_valid && p.head.version >= 4)
		memcpy(text, p.head.origin.writer, GMT_WRITER_TEXT);
	else if (!p.head_valid && p.live >= 0 && p.live_head.version >= 4)
		memcpy(text, p.live_head.origin.writer, GMT_WRITER_TEXT);
	for (char *c = text; *c; c++)
		*c = *c > ' ' && *c < 127 ? *c : '?';
	if (p.fd >= 0)
		close(p.fd);
	if (p.live >= 0)
		close(p.live);
	errno = why;
}

void gmt_reader_close(struct gmt_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	reader_live_free(&r->live);
	reader_free_room(r);
	reader_memory(r->blocks, 0);
	reader_memory(r->places, 0);
	reader_memory(r, 0);
}

const struct gmt_reader_info *gmt_reader_info(const struct gmt_reader *r)
{
	return &r->info;
}

static int check_def(const struct gmt_def *d)
{
	bool ok = gmt_def_is_known(d->kind) || gmt_kind_is_extra(d->kind);

	return ok ? 0 : -GMT_ERR_UNKNOWN_KIND;
}

static int tell_defs(struct gmt_reader *r, struct reader_block *b, const struct gmt_tool *tool,
		     void *ctx)
{
	const uint8_t *p = r->raw, *end = p + b->head.raw_bytes;
	int rc = 0;

	if (!reader_load(r, b)) {
		reader_count_damage(r, b);
		return 0;
	}
	for (uint32_t i = 0; i < b->head.count && rc == 0; i++) {
		struct gmt_def d;
		long n = gmt_decode_def(p, (size_t)(end - p), &d);

		if (n < 0) {
			reader_count_damage(r, b);
			break;
		}
		p += n;
		rc = check_def(&d);
		if (rc == 0)
			rc = tool->def(ctx, &d);
	}
	return rc;
}

int gmt_reader_run(struct gmt_reader *r, uint64_t from_ns, uint64_t to_ns,
		   const struct gmt_tool *tool, void *ctx)
{
	size_t i = 0;
	int rc = 0;

	for (; i < r->blocks_used && r->blocks[i].head.type == GMT_BLOCK_DEFS; i++) {
		if (rc == 0 && tool->def)
			rc = tell_defs(r, &r->blocks[i], tool, ctx);
	}
	for (size_t k = 0; k < r->live.defs_used && rc == 0 && tool->def; k++) {
		rc = check_def(&r->live.defs[k]);
		if (rc == 0)
			rc = tool->def(ctx, &r->live.defs[k]);
	}
	return rc ? rc : reader_merge(r, i, from_ns, to_ns, tool, ctx);
}

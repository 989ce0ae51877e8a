/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends a recording to a file descriptor. Runs on the drain's thread; no malloc: everything is in
 * the caller's workspace. Written bytes never change, and a block is one write. Events that cannot
 * be written are counted, and the writer goes on, because a reader skips a half-written block.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "block.h"
#include "record.h"
#include "codec.h"
#include "group.h"
#include "version.h"
#include "writer.h"

#define LEVEL_DEFAULT 3
#define LEVEL_MAX     9
#define ALIGN	      64u

/* A block of definitions being filled. */
struct pending {
	uint8_t *raw;
	struct gmt_block_header head;
};

struct gmt_writer {
	int fd, level;
	uint32_t blocks;
	uint64_t bytes, lost, events_written, defs_written;
	uint32_t notes; /* DROPPED and END in the block being filled: they do not count as lost */
	uint64_t index_offset, index_count;
	bool index_lost; /* an INDEX block could not be written: the file has no index */
	struct pending defs;
	struct gmt_block_header events; /* of the block being filled */
	struct gmt_group *group;
	uint8_t *index_raw;
	uint8_t *out; /* block header and stored payload */
	ZSTD_CCtx *zstd;
	uint32_t index_used;
	struct gmt_index_entry index[GMT_INDEX_BLOCK_MAX];
};

_Static_assert(GMT_INDEX_BLOCK_MAX * sizeof(struct gmt_index_entry) + 8 <= GMT_BLOCK_RAW_MAX,
	       "an INDEX block holds a whole index");

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t out_bytes(void)
{
	_Static_assert(GMT_BLOCK_STORED_MAX >= ZSTD_COMPRESSBOUND(GMT_BLOCK_RAW_MAX), "all fits");
	return aligned(sizeof(struct gmt_block_header) + GMT_BLOCK_STORED_MAX);
}

static int most(int level)
{
	return level < LEVEL_MAX ? level : LEVEL_MAX;
}

/* Compression level of definitions and of the index. */
static int level_of(int level)
{
	return level ? most(level) : LEVEL_DEFAULT;
}

size_t gmt_writer_workspace(int level)
{
	return aligned(sizeof(struct gmt_writer)) + 2 * GMT_BLOCK_RAW_MAX + out_bytes() +
	       gmt_group_workspace(most(level)) + aligned(ZSTD_estimateCCtxSize(level_of(level)));
}

static int write_all(struct gmt_writer *w, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(w->fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -GMT_ERR_SYS;
		p += n;
		len -= (size_t)n;
		w->bytes += (uint64_t)n;
	}
	return 0;
}

/* Puts the payload into w->out after the header's place; compressed if that makes it smaller. */
static void store(struct gmt_writer *w, struct gmt_block_header *h, const void *raw, bool compress)
{
	uint8_t *to = w->out + sizeof(*h);
	size_t n = 0;

	if (compress)
		n = ZSTD_compressCCtx(w->zstd, to, ZSTD_compressBound(GMT_BLOCK_RAW_MAX), raw,
				      h->raw_bytes, w->level);
	if (!compress || ZSTD_isError(n) || n >= h->raw_bytes) {
		h->codec = GMT_CODEC_STORED;
		h->stored_bytes = h->raw_bytes;
		memcpy(to, raw, h->raw_bytes);
		return;
	}
	h->codec = GMT_CODEC_ZSTD;
	h->stored_bytes = (uint32_t)n;
}

/* Writes the block whose payload is already in w->out. */
static int append_stored(struct gmt_writer *w, struct gmt_block_header *h)
{
	h->number = w->blocks;
	gmt_block_seal(h, w->out + sizeof(*h));
	memcpy(w->out, h, sizeof(*h));
	if (write_all(w, w->out, sizeof(*h) + h->stored_bytes) < 0)
		return -GMT_ERR_SYS;
	w->blocks++;
	return 0;
}

static int append(struct gmt_writer *w, struct gmt_block_header *h, const void *raw)
{
	store(w, h, raw, h->type != GMT_BLOCK_END);
	return append_stored(w, h);
}

/* Writes the index so far as a block: the offset of the INDEX block before it, then the entries. */
static int append_index(struct gmt_writer *w)
{
	struct gmt_block_header h = { .type = GMT_BLOCK_INDEX, .count = w->index_used };
	uint8_t *raw = w->index_raw;
	uint64_t offset = w->bytes;
	int rc;

	h.raw_bytes = (uint32_t)(8 + w->index_used * sizeof(w->index[0]));
	memcpy(raw, &w->index_offset, 8);
	memcpy(raw + 8, w->index, h.raw_bytes - 8);
	w->index_used = 0;
	rc = append(w, &h, raw);
	if (rc < 0)
		w->index_lost = true;
	w->index_offset = w->index_lost ? 0 : offset;
	w->index_count = w->index_lost ? 0 : w->index_count + 1;
	return rc;
}

static void note(struct gmt_writer *w, const struct gmt_block_header *h, uint64_t offset)
{
	w->index[w->index_used++] = (struct gmt_index_entry){
		.offset = offset,
		.first_seq = h->first_seq,
		.last_seq = h->last_seq,
		.first_ns = h->first_ns,
		.last_ns = h->last_ns,
		.type = h->type,
		.count = h->count,
	};
}

/* A failed DEFS block stays pending: later events need it. */
static int flush_defs(struct gmt_writer *w)
{
	struct gmt_block_header *h = &w->defs.head;
	uint64_t offset = w->bytes;

	if (h->count == 0)
		return 0;
	if (append(w, h, w->defs.raw) < 0)
		return -GMT_ERR_SYS;
	note(w, h, offset);
	w->defs_written += h->count;
	w->defs.head = (struct gmt_block_header){ .type = GMT_BLOCK_DEFS };
	return 0;
}

static int append_events(struct gmt_writer *w)
{
	struct gmt_block_header *h = &w->events;
	uint64_t offset = w->bytes;

	if (!gmt_group_pack(w->group, h, w->out + sizeof(*h)))
		return -GMT_ERR_RANGE;
	if (append_stored(w, h) < 0) {
		gmt_group_break(w->group);
		return -GMT_ERR_SYS;
	}
	note(w, h, offset);
	return 0;
}

static int flush_events(struct gmt_writer *w)
{
	int rc = 0;

	if (w->events.count) {
		rc = append_events(w);
		if (rc == 0)
			w->events_written += w->events.count;
		else
			w->lost += w->events.count - w->notes;
		w->notes = 0;
		w->events = (struct gmt_block_header){ .type = GMT_BLOCK_EVENTS };
	}
	return rc;
}

int gmt_writer_flush(struct gmt_writer *w)
{
	int defs = flush_defs(w);
	int events = flush_events(w);
	int index = w->index_used + 2 > GMT_INDEX_BLOCK_MAX ? append_index(w) : 0;

	return defs ? defs : events ? events : index;
}

static void widen(struct gmt_block_header *h, const struct gmt_event *e)
{
	if (h->count == 0 || e->seq < h->first_seq)
		h->first_seq = e->seq;
	if (h->count == 0 || e->seq > h->last_seq)
		h->last_seq = e->seq;
	if (h->count == 0 || e->time_ns < h->first_ns)
		h->first_ns = e->time_ns;
	if (h->count == 0 || e->time_ns > h->last_ns)
		h->last_ns = e->time_ns;
}

int gmt_writer_event(struct gmt_writer *w, const struct gmt_event *e)
{
	int rc = 0;

	if (gmt_group_is_full(w->group))
		rc = gmt_writer_flush(w);
	widen(&w->events, e);
	gmt_group_add(w->group, e);
	w->events.count++;
	if (e->kind == GMT_DROPPED || e->kind == GMT_END)
		w->notes++;
	return rc;
}

void gmt_writer_expect(const struct gmt_writer *w, const struct gmt_event *e)
{
	gmt_group_expect(w->group, e);
}

int gmt_writer_def(struct gmt_writer *w, const struct gmt_def *d)
{
	struct gmt_block_header *h = &w->defs.head;
	size_t n = gmt_encoded_def_size(d);
	int rc = 0;

	if (n > GMT_BLOCK_RAW_MAX)
		return -GMT_ERR_RANGE;
	if (h->raw_bytes + n > GMT_BLOCK_RAW_MAX)
		rc = gmt_writer_flush(w);
	if (h->raw_bytes + n > GMT_BLOCK_RAW_MAX)
		return rc ? rc : -GMT_ERR_FULL;
	h->raw_bytes += (uint32_t)gmt_encode_def(d, w->defs.raw + h->raw_bytes);
	h->count++;
	return rc;
}

void gmt_writer_break(struct gmt_writer *w)
{
	gmt_group_break(w->group);
}

int gmt_writer_append(struct gmt_writer *w, const struct gmt_block_header *from, const void *stored)
{
	struct gmt_block_header h = *from;
	uint64_t offset = w->bytes;

	if (h.type != GMT_BLOCK_DEFS && h.type != GMT_BLOCK_EVENTS)
		return 0;
	memcpy(w->out + sizeof(h), stored, h.stored_bytes);
	if (append_stored(w, &h) < 0)
		return -GMT_ERR_SYS;
	note(w, &h, offset);
	*(h.type == GMT_BLOCK_DEFS ? &w->defs_written : &w->events_written) += h.count;
	return w->index_used + 2 > GMT_INDEX_BLOCK_MAX ? append_index(w) : 0;
}

int gmt_writer_finish(struct gmt_writer *w)
{
	struct gmt_block_header h = { .type = GMT_BLOCK_END, .count = 1 };
	int rc = gmt_writer_flush(w);
	int index = w->index_used ? append_index(w) : 0;
	struct gmt_end end = {
		.index_offset = w->index_offset,
		.index_count = w->index_count,
		.events = w->events_written,
		.defs = w->defs_written,
		.lost = w->lost,
	};

	h.raw_bytes = sizeof(end);
	if (append(w, &h, &end) < 0)
		return -GMT_ERR_SYS;
	return rc ? rc : index;
}

static int write_header(struct gmt_writer *w, const struct gmt_writer_info *info)
{
	struct gmt_file_header h = {
		.version = GMT_VERSION,
		.header_bytes = sizeof(h),
		.pid = info->pid,
		.realtime_minus_monotonic_ns = info->realtime_minus_monotonic_ns,
		.origin = { info->start, GMT_TOOL_VERSION },
	};

	gmt_file_header_seal(&h);
	return write_all(w, &h, sizeof(h));
}

struct gmt_writer *gmt_writer_open(void *workspace, size_t bytes, int fd,
				   const struct gmt_writer_info *info, int *err)
{
	struct gmt_writer *w = workspace;
	uint8_t *p = (uint8_t *)workspace + aligned(sizeof(*w));
	size_t zstd_bytes = aligned(ZSTD_estimateCCtxSize(level_of(info->level)));

	*err = -GMT_ERR_NO_MEMORY;
	if ((uintptr_t)workspace % ALIGN || bytes < gmt_writer_workspace(info->level))
		return NULL;
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->level = level_of(info->level);
	w->defs.raw = p;
	w->index_raw = p + GMT_BLOCK_RAW_MAX;
	w->out = p + 2 * GMT_BLOCK_RAW_MAX;
	w->zstd = ZSTD_initStaticCCtx(w->out + out_bytes(), zstd_bytes);
	w->group = gmt_group_new(w->out + out_bytes() + zstd_bytes, most(info->level));
	if (!w->zstd || !w->group)
		return NULL;
	w->events.type = GMT_BLOCK_EVENTS;
	w->defs.head.type = GMT_BLOCK_DEFS;
	*err = write_header(w, info);
	return *err ? NULL : w;
}

uint64_t gmt_writer_bytes(const struct gmt_writer *w)
{
	return w->bytes;
}

uint64_t gmt_writer_lost(const struct gmt_writer *w)
{
	return w->lost;
}

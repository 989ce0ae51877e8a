/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the blocks by their headers alone, from one to the next. Where no valid header follows, the
 * next one is searched for by its magic and checksum, so that damage costs only the blocks it hit.
 * Reads with pread: a file that shrinks meanwhile gives short reads, never a signal.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "reader_parts.h"
#include "record.h"

#define HEAD   sizeof(struct gmt_block_header)
#define FIRST  4096u	      /* bytes searched first: the next block is usually near */
#define WINDOW (256u * 1024u) /* bytes searched at a time after that */

size_t reader_read(int fd, uint64_t at, void *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)to + done, len - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

bool reader_grow(void **array, size_t *room, size_t used, size_t size)
{
	size_t more = *room ? *room * 2 : 64;
	void *p;

	if (used < *room)
		return true;
	p = reader_memory(*array, more * size);
	if (!p)
		return false;
	*array = p;
	*room = more;
	return true;
}

static bool read_head(struct gmt_reader *r, uint64_t at, struct gmt_block_header *h)
{
	return reader_read(r->fd, at, h, HEAD) == HEAD && gmt_block_header_valid(h);
}

/* Offset of the next data from `at` on. A file that was extended can have terabytes of holes. */
static uint64_t past_hole(const struct gmt_reader *r, uint64_t at)
{
#ifdef SEEK_DATA
	off_t data = lseek(r->fd, (off_t)at, SEEK_DATA);

	if (data >= 0)
		return (uint64_t)data;
	if (errno == ENXIO)
		return r->size;
#endif
	return at;
}

/* Offset of the next valid header at or behind `at`, or the end of the file. */
static uint64_t find_head(struct gmt_reader *r, uint64_t at, uint8_t *window)
{
	static const uint32_t magic = GMT_BLOCK_MAGIC;
	size_t want = FIRST;

	while (at + HEAD <= r->size) {
		size_t n = reader_read(r->fd, at, window, want);
		uint8_t *p = window, *end = window + n;

		while ((p = memmem(p, (size_t)(end - p), &magic, sizeof(magic)))) {
			struct gmt_block_header h;

			if ((size_t)(end - p) < HEAD)
				break;
			memcpy(&h, p, HEAD);
			if (gmt_block_header_valid(&h))
				return at + (uint64_t)(p - window);
			p++;
		}
		if (n < HEAD)
			break;
		at = past_hole(r, at + n - HEAD + 1);
		want = WINDOW;
	}
	return r->size;
}

bool reader_payload(struct gmt_reader *r, const struct reader_block *b)
{
	return reader_read(r->fd, b->offset + HEAD, r->stored, b->head.stored_bytes) ==
		       b->head.stored_bytes &&
	       gmt_block_payload_valid(&b->head, r->stored);
}

static void widen(struct gmt_reader_info *info, const struct gmt_block_header *h)
{
	if (info->last_seq == 0 || h->first_seq < info->first_seq)
		info->first_seq = h->first_seq;
	if (h->last_seq > info->last_seq)
		info->last_seq = h->last_seq;
	if (info->last_ns == 0 || h->first_ns < info->first_ns)
		info->first_ns = h->first_ns;
	if (h->last_ns > info->last_ns)
		info->last_ns = h->last_ns;
}

/* reader_payload for the scan, with a limit, because a forged file could cause it at every byte. */
static bool try_payload(struct gmt_reader *r, const struct reader_block *b)
{
	if (r->read_in_vain / 4 > r->size || reader_payload(r, b))
		return r->read_in_vain / 4 <= r->size;
	r->read_in_vain += b->head.stored_bytes;
	return false;
}

/* Reads an INDEX or END block at once, which is small. */
static void take_trailer(struct gmt_reader *r, struct reader_block *b)
{
	struct gmt_end end;

	if (!reader_payload(r, b)) {
		reader_count_damage(r, b);
		return;
	}
	if (b->head.type == GMT_BLOCK_INDEX) {
		r->index_blocks++;
	} else if (b->head.stored_bytes >= sizeof(end)) {
		memcpy(&end, r->stored, sizeof(end));
		r->info.clean_end = true;
		r->info.has_index = end.index_count && end.index_count == r->index_blocks;
	}
}

/* Sets b->before. A block of a group continues the EVENTS block before it in the file. */
static void find_before(struct gmt_reader *r, struct reader_block *b)
{
	const struct reader_block *last = r->last_events ? &r->blocks[r->last_events - 1] : NULL;

	b->before = NO_BLOCK;
	if (b->head.type != GMT_BLOCK_EVENTS)
		return;
	if (last && gmt_block_in_group(&b->head) && last->head.codec == b->head.codec &&
	    gmt_block_place(&b->head) && last->head.group + 1 == b->head.group)
		b->before = last->offset;
	r->last_events = r->blocks_used + 1;
}

/* Whether the block can be read or skipped. If not, a later version wrote it: its checksum fits. */
static bool is_known(const struct gmt_block_header *h)
{
	return h->type && (h->type <= GMT_BLOCK_END || gmt_kind_is_extra(h->type)) &&
	       h->codec <= GMT_CODEC_COPIES;
}

static int take_block(struct gmt_reader *r, struct reader_block *b)
{
	if (!is_known(&b->head))
		return -GMT_ERR_UNKNOWN_KIND;
	r->info.blocks++;
	find_before(r, b);
	if (b->head.type == GMT_BLOCK_INDEX || b->head.type == GMT_BLOCK_END)
		take_trailer(r, b);
	if (b->head.type != GMT_BLOCK_DEFS && b->head.type != GMT_BLOCK_EVENTS)
		return 0;
	if (!reader_grow((void **)&r->blocks, &r->blocks_room, r->blocks_used, sizeof(*b)))
		return -GMT_ERR_NO_MEMORY;
	r->blocks[r->blocks_used++] = *b;
	if (b->head.type == GMT_BLOCK_EVENTS && b->head.count)
		widen(&r->info, &b->head);
	return 0;
}

static int by_type_and_seq(const void *a, const void *b)
{
	const struct reader_block *x = a, *y = b;
	uint64_t u = x->head.type == GMT_BLOCK_EVENTS ? x->head.first_seq : 0;
	uint64_t v = y->head.type == GMT_BLOCK_EVENTS ? y->head.first_seq : 0;

	if (x->head.type != y->head.type)
		return x->head.type < y->head.type ? -1 : 1;
	if (u != v)
		return u < v ? -1 : 1;
	return x->offset < y->offset ? -1 : 1;
}

/* Whether a kill cut the block at `at` off (h = NULL: its header). If so, the rings still hold
 * it. */
static bool is_cut(const struct gmt_reader *r, uint64_t at, const struct gmt_block_header *h)
{
	return r->live.open && (h ? at + HEAD + h->stored_bytes : at + HEAD) > r->size;
}

/* A block counts as whole if another or the end of the file follows it, or if its payload fits its
 * checksum. Else it is half a block, and the search goes on inside the length that it claims. */
static int scan_blocks(struct gmt_reader *r, uint64_t at, uint8_t *window)
{
	struct reader_block b = { 0 }, next = { 0 };
	bool here = read_head(r, at, &b.head);
	int rc = 0;

	while (at < r->size && rc == 0) {
		bool there;

		b.offset = at;
		next.offset = at + HEAD + b.head.stored_bytes;
		there = here && read_head(r, next.offset, &next.head);
		if (here && next.offset <= r->size &&
		    (there || next.offset == r->size || try_payload(r, &b))) {
			rc = take_block(r, &b);
			b = next;
			here = there;
		} else {
			bool cut = is_cut(r, at, here ? &b.head : NULL);

			b.offset = find_head(r, at + 1, window);
			if (!cut || b.offset < r->size)
				reader_count_skipped(r, at, b.offset - at, false);
			here = read_head(r, b.offset, &b.head);
		}
		at = b.offset;
	}
	return rc;
}

int reader_scan(struct gmt_reader *r, uint64_t at)
{
	uint8_t *window = reader_memory(NULL, WINDOW);
	int rc = window ? scan_blocks(r, at, window) : -GMT_ERR_NO_MEMORY;

	reader_memory(window, 0);
	if (r->blocks_used)
		reader_sort(r->blocks, r->blocks_used, sizeof(r->blocks[0]), by_type_and_seq);
	return rc;
}

/* Adjacent damage is merged into one piece. */
static void note_damage(struct gmt_reader_info *info, struct gmt_damage d)
{
	struct gmt_damage *last =
		info->damages_used ? &info->damages[info->damages_used - 1] : NULL;

	if (last && !d.block && !last->block && d.live == last->live &&
	    d.offset == last->offset + last->bytes)
		last->bytes += d.bytes;
	else if (info->damages_used < GMT_DAMAGES)
		info->damages[info->damages_used++] = d;
}

void reader_count_skipped(struct gmt_reader *r, uint64_t offset, uint64_t bytes, bool live)
{
	r->info.skipped_bytes += bytes;
	note_damage(&r->info, (struct gmt_damage){ offset, bytes, live, false });
}

void reader_count_damage(struct gmt_reader *r, struct reader_block *b)
{
	if (!b->counted) {
		r->info.damaged_blocks++;
		note_damage(&r->info, (struct gmt_damage){ b->offset, HEAD + b->head.stored_bytes,
							   false, true });
	}
	b->counted = true;
	r->info.truncated = true;
}

static bool unpack(struct gmt_reader *r, const struct gmt_block_header *h)
{
	if (h->codec == GMT_CODEC_STORED && h->stored_bytes == h->raw_bytes) {
		memcpy(r->raw, r->stored, h->raw_bytes);
		return true;
	}
	return h->codec == GMT_CODEC_ZSTD &&
	       ZSTD_decompressDCtx(r->zstd, r->raw, GMT_BLOCK_RAW_MAX, r->stored,
				   h->stored_bytes) == h->raw_bytes;
}

bool reader_load(struct gmt_reader *r, const struct reader_block *b)
{
	return reader_payload(r, b) && unpack(r, &b->head);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a block. One of a group goes on where the block before it ended: read in order that
 * costs nothing; to begin in the middle of a group, those before it are read first.
 */
#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "reader_parts.h"

#define NEAR 64 /* places, by seq, that a block of the same group may be away: a forged file */

static bool unpack(struct gmt_reader *r, const struct gmt_block_header *h)
{
	ZSTD_inBuffer in = { r->stored, h->stored_bytes, 0 };
	ZSTD_outBuffer out = { r->raw, GMT_BLOCK_RAW_MAX, 0 };
	size_t before;

	do {
		before = in.pos + out.pos;
		if (ZSTD_isError(ZSTD_decompressStream(r->group_zstd, &out, &in)))
			return false;
	} while (in.pos + out.pos != before);
	return in.pos == in.size && out.pos == h->raw_bytes;
}

/* Of a group, given that all before it in the group was read. */
static bool go_on(struct gmt_reader *r, const struct reader_block *b)
{
	r->group_at = NULL;
	r->in_columns = true;
	return reader_payload(r, b) && unpack(r, &b->head) &&
	       gmt_columns_open(r->columns, r->raw, b->head.raw_bytes);
}

static bool pass_over(struct gmt_reader *r, const struct reader_block *b)
{
	struct gmt_event e;
	bool ok = go_on(r, b);

	for (uint32_t i = 0; i < b->head.count && ok; i++)
		ok = reader_event(r, &e) == 0;
	return ok;
}

static const struct reader_block *block_before(const struct gmt_reader *r,
					       const struct reader_block *b)
{
	size_t at = (size_t)(b - r->blocks);

	for (size_t i = 1; i <= NEAR; i++) {
		if (i <= at && r->blocks[at - i].offset == b->before)
			return &r->blocks[at - i];
		if (at + i < r->blocks_used && r->blocks[at + i].offset == b->before)
			return &r->blocks[at + i];
	}
	return NULL;
}

static bool begin_group(struct gmt_reader *r)
{
	r->group_at = NULL;
	memset(r->codec, 0, sizeof(*r->codec));
	return !ZSTD_isError(ZSTD_DCtx_reset(r->group_zstd, ZSTD_reset_session_only)) &&
	       !ZSTD_isError(ZSTD_DCtx_setParameter(r->group_zstd, ZSTD_d_windowLogMax,
						    GMT_GROUP_WINDOW));
}

/* Everything in the group that comes before b. */
static bool catch_up(struct gmt_reader *r, const struct reader_block *b)
{
	const struct reader_block *path[GMT_GROUP_BLOCKS];
	unsigned n = 0;
	bool ok = true;

	for (; b->head.group % GMT_GROUP_BLOCKS; path[n++] = b)
		if (n == GMT_GROUP_BLOCKS || !(b = block_before(r, b)))
			return false;
	for (ok = begin_group(r); n > 0 && ok; n--)
		ok = pass_over(r, path[n - 1]);
	return ok;
}

static bool load_group(struct gmt_reader *r, const struct reader_block *b)
{
	bool follows =
		r->group_at && b->head.group % GMT_GROUP_BLOCKS && r->group_at->offset == b->before;

	return (follows || catch_up(r, b)) && go_on(r, b);
}

bool reader_events_begin(struct gmt_reader *r, struct reader_block *b)
{
	if (b->head.codec == GMT_CODEC_GROUP) {
		if (load_group(r, b))
			return true;
		reader_count_damage(r, b);
		return false;
	}
	r->group_at = NULL;
	r->in_columns = false;
	if (!reader_load(r, b))
		return false;
	memset(r->codec, 0, sizeof(*r->codec));
	r->records = (struct cursor){ r->raw, r->raw + b->head.raw_bytes, false };
	return true;
}

int reader_event(struct gmt_reader *r, struct gmt_event *e)
{
	long n;

	if (r->in_columns)
		n = gmt_decode_columns(r->codec, r->columns, e);
	else
		n = gmt_decode_event(r->codec, r->records.p,
				     (size_t)(r->records.end - r->records.p), e);
	if (n == -GMT_ERR_UNKNOWN_KIND)
		r->refused = (int)n;
	if (n < 0)
		return (int)n;
	r->records.p += n;
	return 0;
}

void reader_events_end(struct gmt_reader *r, const struct reader_block *b)
{
	r->group_at = r->in_columns && !b->counted ? b : NULL;
}

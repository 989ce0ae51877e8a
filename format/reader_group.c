/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the events of a block. A block of a group continues where the one before it ended: in
 * order that costs nothing; to start in the middle of a group, the blocks before are decoded first.
 */
#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "reader_parts.h"
#include "record.h"

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

/* Unpacks the next block of a group; all blocks before it must have been read. */
static bool go_on(struct gmt_reader *r, const struct reader_block *b)
{
	r->group_at = NULL;
	r->in_columns = true;
	r->past->copy.left = 0; /* a copy ends with its block */
	return reader_payload(r, b) && unpack(r, &b->head) &&
	       gmt_columns_open(r->columns, r->raw, b->head.raw_bytes);
}

static int next_event(struct gmt_reader *r, struct gmt_event *e)
{
	long n;

	if (r->with_copies)
		n = gmt_decode_copies(r->past, r->codec, r->columns, e);
	else if (r->in_columns)
		n = gmt_decode_columns(r->codec, r->columns, e);
	else
		n = gmt_decode_event(r->codec, r->records.p,
				     (size_t)(r->records.end - r->records.p), e);
	if (n == -GMT_ERR_UNKNOWN_KIND)
		r->refused = (int)n;
	if (n > 0 && !r->in_columns)
		r->records.p += n;
	return n < 0 ? (int)n : 0;
}

static bool pass_over(struct gmt_reader *r, const struct reader_block *b)
{
	struct gmt_event e;
	bool ok = go_on(r, b);

	for (uint32_t i = 0; i < b->head.count && ok; i++)
		ok = next_event(r, &e) == 0;
	return ok;
}

static int by_offset(const void *a, const void *b)
{
	const struct reader_place *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Sorts the blocks by offset, once. r->blocks is in order of first seq, where the predecessor of a
 * block in its group can be anywhere. False: out of memory. */
bool reader_find_places(struct gmt_reader *r)
{
	if (r->places)
		return true;
	r->places = reader_memory(NULL, r->blocks_used * sizeof(*r->places));
	for (size_t i = 0; r->places && i < r->blocks_used; i++)
		r->places[i] = (struct reader_place){ r->blocks[i].offset, i };
	if (r->places)
		reader_sort(r->places, r->blocks_used, sizeof(*r->places), by_offset);
	return r->places != NULL;
}

static const struct reader_block *block_before(struct gmt_reader *r, const struct reader_block *b)
{
	size_t first = 0, end = reader_find_places(r) ? r->blocks_used : 0;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (r->places[middle].offset < b->before)
			first = middle + 1;
		else
			end = middle;
	}
	if (!r->places || first == r->blocks_used || r->places[first].offset != b->before)
		return NULL;
	return &r->blocks[r->places[first].block];
}

static bool begin_group(struct gmt_reader *r)
{
	r->group_at = NULL;
	memset(r->codec, 0, sizeof(*r->codec));
	r->past->count = 0;
	return !ZSTD_isError(ZSTD_DCtx_reset(r->group_zstd, ZSTD_reset_session_only)) &&
	       !ZSTD_isError(ZSTD_DCtx_setParameter(r->group_zstd, ZSTD_d_windowLogMax,
						    GMT_GROUP_WINDOW));
}

/* Decodes all blocks of the group that come before b. */
static bool catch_up(struct gmt_reader *r, const struct reader_block *b)
{
	const struct reader_block *path[GMT_GROUP_BLOCKS];
	unsigned n = 0;
	bool ok = true;

	for (; gmt_block_place(&b->head); path[n++] = b)
		if (n == GMT_GROUP_BLOCKS || !(b = block_before(r, b)))
			return false;
	for (ok = begin_group(r); n > 0 && ok; n--)
		ok = pass_over(r, path[n - 1]);
	return ok;
}

static bool load_group(struct gmt_reader *r, const struct reader_block *b)
{
	bool follows = r->group_at && gmt_block_place(&b->head) && r->group_at->offset == b->before;

	return (follows || catch_up(r, b)) && go_on(r, b);
}

static bool events_begin(struct gmt_reader *r, const struct reader_block *b)
{
	r->in_columns = gmt_block_in_group(&b->head);
	r->with_copies = b->head.codec == GMT_CODEC_COPIES;
	if (r->in_columns)
		return load_group(r, b);
	r->group_at = NULL;
	memset(r->codec, 0, sizeof(*r->codec));
	r->records = (struct cursor){ r->raw, r->raw + b->head.raw_bytes, false };
	return reader_load(r, b);
}

static int by_seq_and_time(const void *a, const void *b)
{
	const struct gmt_event *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* Notes that e is one of a stretch that repeats. False: out of memory. */
static bool note_repeat(const struct gmt_copy *c, const struct gmt_event *e,
			struct reader_events *out)
{
	if (c->run > 1 && out->repeats_used) {
		out->repeats[out->repeats_used - 1].count++;
		return true;
	}
	if (!reader_grow((void **)&out->repeats, &out->repeats_room, out->repeats_used,
			 sizeof(out->repeats[0])))
		return false;
	out->repeats[out->repeats_used++] = (struct gmt_repeat){ .first_seq = e->seq,
								 .of_seq = c->of_seq,
								 .more_range = c->more_range,
								 .count = 1,
								 .more_scope = c->more_scope };
	return true;
}

static void decode_events(struct gmt_reader *r, const struct reader_block *b,
			  const struct reader_times *t, struct reader_events *out)
{
	bool sorted = true, all = r->with_copies && t->from == 0 && t->to == UINT64_MAX;

	for (uint32_t i = 0; i < b->head.count && !out->damaged; i++) {
		struct gmt_event *e;

		if (!reader_grow((void **)&out->items, &out->room, out->used, sizeof(*e))) {
			out->rc = -GMT_ERR_NO_MEMORY;
			return;
		}
		e = &out->items[out->used];
		out->damaged = next_event(r, e) < 0;
		if (out->damaged || !reader_wants(t, e))
			continue;
		if (out->used != 0 && e[-1].seq > e->seq)
			sorted = false;
		out->used++;
		if (all && r->past->copy.run && !note_repeat(&r->past->copy, e, out)) {
			out->rc = -GMT_ERR_NO_MEMORY;
			return;
		}
	}
	if (!sorted)
		out->repeats_used = 0;
	if (!sorted)
		reader_sort(out->items, out->used, sizeof(out->items[0]), by_seq_and_time);
}

void reader_decode(struct gmt_reader *r, const struct reader_block *b, const struct reader_times *t,
		   struct reader_events *out)
{
	const struct gmt_block_header *h = &b->head;

	out->used = out->repeats_used = out->rc = 0;
	out->damaged = false;
	if (!h->count || h->last_ns < t->from || h->first_ns > t->to)
		return;
	if (events_begin(r, b))
		decode_events(r, b, t, out);
	else
		out->damaged = true;
	r->group_at = r->in_columns && !out->damaged && !out->rc ? b : NULL;
	if (!r->refused)
		return;
	out->rc = r->refused;
	out->damaged = false;
}

bool reader_begins_run(const struct gmt_reader *r, size_t block)
{
	const struct reader_block *b = &r->blocks[block];

	return !block || !gmt_block_in_group(&b->head) || b->before == NO_BLOCK ||
	       b->before != b[-1].offset;
}

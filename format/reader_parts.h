/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the reader's files: reader.c opens and runs, reader_scan.c finds the blocks,
 * reader_live.c reads the live file, reader_merge.c orders events. One thread per reader, but for
 * reader_ahead.c.
 */
#pragma once

#include "block.h"
#include "codec.h"
#include "codec_copies.h"
#include "reader.h"
#include "reader_memory.h"
#include "ring.h"
#include "varint.h"

struct ZSTD_DCtx_s;

/* A whole block that the scan found. */
struct reader_block {
	uint64_t offset;
	struct gmt_block_header head;
	uint64_t before; /* in a group: offset of the block that this one needs; NO_BLOCK = none */
	bool counted;	 /* its damage is already in info */
};

#define NO_BLOCK UINT64_MAX

/* Entry of an index of the blocks by offset. */
struct reader_place {
	uint64_t offset;
	size_t block;
};

/* Events of the live file by seq, and its definitions; payloads lie in `bytes`. */
struct reader_live {
	struct gmt_event *events;
	size_t events_used, events_room;
	struct gmt_def *defs; /* payload = offset into bytes, in the end an address */
	size_t defs_used, defs_room;
	uint8_t *bytes;
	size_t bytes_used, bytes_room;
	uint64_t dropped; /* events, by the rings or by the recorder's last count */
	bool open;	  /* not closed: its rings still hold the events of a cut last block */
};

struct gmt_reader {
	int fd;	       /* -1 = only a live file */
	uint64_t size; /* of the recording when it was opened; what grows later is not read */
	struct gmt_reader_info info;
	struct reader_block *blocks; /* DEFS in order of the file, then EVENTS by first_seq */
	size_t blocks_used, blocks_room;
	struct reader_place *places; /* of all blocks, made when first needed; NULL before */
	size_t last_events;    /* while scanning: 1 + index of the last EVENTS block; 0 = none */
	uint32_t index_blocks; /* undamaged INDEX blocks */
	uint64_t read_in_vain; /* bytes of payloads that the scan found damaged */
	struct reader_live live;
	struct ZSTD_DCtx_s *zstd;
	uint8_t *stored, *raw; /* one block, as in the file and decompressed */
	struct gmt_codec *codec;
	struct gmt_past *past;

	/* events of the block that was loaded last */
	struct cursor records, columns[GMT_COLUMNS];
	bool in_columns, with_copies;
	int refused; /* -GMT_ERR_UNKNOWN_KIND once such an event was met, else 0 */
	const struct reader_block *group_at; /* the block that codec and group_zstd decoded last */
	struct ZSTD_DCtx_s *group_zstd;
};

/* The requested events of a block, by seq. */
struct reader_events {
	struct gmt_event *items;
	size_t used, room;
	struct gmt_repeat *repeats; /* in order of first_seq; none if not all events are wanted */
	size_t repeats_used, repeats_room;
	bool damaged; /* the block is damaged, wholly or from some event on */
	int rc;	      /* 0 or -GMT_ERR_* */
};

/* The requested range: from <= time_ns <= to, nanoseconds. */
struct reader_times {
	uint64_t from, to;
};

static inline bool reader_wants(const struct reader_times *t, const struct gmt_event *e)
{
	return e->time_ns >= t->from && e->time_ns <= t->to;
}

static inline void reader_events_free(struct reader_events *e)
{
	reader_memory(e->items, 0);
	reader_memory(e->repeats, 0);
}

/* Reads up to len bytes at offset `at`. Returns their number, less at the end or on an error. */
size_t reader_read(int fd, uint64_t at, void *to, size_t len);

/* Makes room for one more of `size` bytes in a growing array; false if there is no memory. */
bool reader_grow(void **array, size_t *room, size_t used, size_t size);

/* Finds all blocks from offset `at` on and fills r->blocks and info. 0 or -GMT_ERR_*. */
int reader_scan(struct gmt_reader *r, uint64_t at);

/* Reads the block's payload into r->raw, checked and decompressed; false if it is damaged. */
bool reader_load(struct gmt_reader *r, const struct reader_block *b);
bool reader_payload(struct gmt_reader *r, const struct reader_block *b); /* into r->stored */

/* Decodes the block's events up to the first bad record (sets out->damaged). Counts no damage. */
void reader_decode(struct gmt_reader *r, const struct reader_block *b, const struct reader_times *t,
		   struct reader_events *out);
/* False if the block continues the group of the block before it in r->blocks. */
bool reader_begins_run(const struct gmt_reader *r, size_t block);
bool reader_find_places(struct gmt_reader *r);
/* Allocates a reader's buffers. False: out of memory; call reader_free_room for the rest. */
bool reader_take_room(struct gmt_reader *r);
void reader_free_room(struct gmt_reader *r);

void reader_count_damage(struct gmt_reader *r, struct reader_block *b);
/* Counts skipped bytes and notes where they are. */
void reader_count_skipped(struct gmt_reader *r, uint64_t offset, uint64_t bytes, bool live);

/* Reads the whole live file into r->live and info. 0 or -GMT_ERR_*. */
int reader_live_take(struct gmt_reader *r, int fd, uint64_t size, const struct gmt_live_header *h);
bool reader_live_header(int fd, uint64_t size, struct gmt_live_header *h);
/* Numbers the events that count dropped ones, after all other events. Call it after the scan. */
void reader_live_number(struct gmt_reader *r);
void reader_live_free(struct reader_live *l);

/* Calls tool->event for blocks[first..] and the live events, by seq. */
int reader_merge(struct gmt_reader *r, size_t first, uint64_t from_ns, uint64_t to_ns,
		 const struct gmt_tool *tool, void *ctx);

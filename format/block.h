/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing: the file header, block headers and their checksums, as they lie in the file (FORMAT.md).
 * Little-endian. Pure; any thread. Shared by the writer and the reader.
 */
#pragma once

#include "event.h"

#define GMT_VERSION	     5u
#define GMT_FILE_MAGIC	     0x0a434552544d4789ULL /* bytes 89 "GMTREC" 0a */
#define GMT_BLOCK_MAGIC	     0xa7424d47u	   /* bytes "GMB" a7 */
#define GMT_BLOCK_RAW_MAX    (256u * 1024u)
#define GMT_BLOCK_STORED_MAX (GMT_BLOCK_RAW_MAX + 2048u) /* zstd's worst case */
#define GMT_INDEX_BLOCK_MAX  4096u			 /* entries in one INDEX block */

struct gmt_file_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* 64: offset of the first block */
	uint32_t pid;
	uint32_t reserved0;
	int64_t realtime_minus_monotonic_ns;
	struct gmt_origin origin; /* since version 4; 0 before */
	uint32_t reserved1;
	uint32_t checksum; /* crc32c of the 60 bytes before it */
};

enum gmt_block_type {
	GMT_BLOCK_DEFS = 1,
	GMT_BLOCK_EVENTS = 2,
	GMT_BLOCK_INDEX = 3,
	GMT_BLOCK_END = 4,
};

enum gmt_block_codec {
	GMT_CODEC_STORED = 0,
	GMT_CODEC_ZSTD = 1,
	GMT_CODEC_GROUP = 2,  /* EVENTS in columns; a part of the zstd frame of its group */
	GMT_CODEC_COPIES = 3, /* as GROUP, with copies of earlier events (codec_copies.h) */
};

/* A group of EVENTS blocks, each of which needs those before it. */
#define GMT_GROUP_BLOCKS 32u	/* most blocks in a group; with GMT_CODEC_GROUP half as many */
#define GMT_GROUP_EVENTS 16384u /* most events that a block gets */
#define GMT_GROUP_WINDOW 18	/* log2 of the compression's window in bytes */

struct gmt_block_header {
	uint32_t magic;
	uint8_t type;	       /* enum gmt_block_type */
	uint8_t codec;	       /* enum gmt_block_codec */
	uint16_t group;	       /* number of the group x its most blocks + place in it; else 0 */
	uint32_t raw_bytes;    /* of the payload, decompressed */
	uint32_t stored_bytes; /* of the payload, as it lies in the file after this header */
	uint32_t count;	       /* records in it */
	uint32_t number;       /* of this block in the file, from 0 */
	uint64_t first_seq, last_seq; /* least and greatest in it; 0 without events */
	uint64_t first_ns, last_ns;   /* same for time */
	uint32_t payload_checksum;    /* crc32c of the stored payload */
	uint32_t checksum;	      /* crc32c of the 60 bytes before it */
};

static inline bool gmt_block_in_group(const struct gmt_block_header *h)
{
	return h->codec == GMT_CODEC_GROUP || h->codec == GMT_CODEC_COPIES;
}

/* Place of a block in its group, from 0. */
static inline unsigned gmt_block_place(const struct gmt_block_header *h)
{
	return h->group % (h->codec == GMT_CODEC_GROUP ? GMT_GROUP_BLOCKS / 2 : GMT_GROUP_BLOCKS);
}

/* An INDEX block's payload: u64 offset of the INDEX block before it, then `count` of these. */
struct gmt_index_entry {
	uint64_t offset; /* of the block's header in the file */
	uint64_t first_seq, last_seq;
	uint64_t first_ns, last_ns;
	uint32_t type, count;
};

/* Payload of the END block, which is stored uncompressed and closes the file. */
struct gmt_end {
	uint64_t index_offset; /* of the last INDEX block; 0 = none */
	uint64_t index_count;  /* INDEX blocks */
	uint64_t events, defs; /* in the file */
	uint64_t lost;	       /* events that could not be written */
};

uint32_t gmt_crc32c(const void *data, size_t len);
uint32_t gmt_crc32c_by_table(const void *data, size_t len);

void gmt_file_header_seal(struct gmt_file_header *h);
bool gmt_file_header_valid(const struct gmt_file_header *h);

/* Fills in the magic and both checksums. `stored` is the payload that will follow the header. */
void gmt_block_seal(struct gmt_block_header *h, const void *stored);
/* True if magic and checksum match and no length is out of range. Does not check the payload. */
bool gmt_block_header_valid(const struct gmt_block_header *h);
bool gmt_block_payload_valid(const struct gmt_block_header *h, const void *stored);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealing and checking of file and block headers. Pure; any thread.
 */
#include "block.h"

_Static_assert(sizeof(struct gmt_file_header) == 64, "file header layout");
_Static_assert(sizeof(struct gmt_block_header) == 64, "block header layout");
_Static_assert(sizeof(struct gmt_index_entry) == 48, "index entry layout");
_Static_assert(sizeof(struct gmt_end) == 40, "end layout");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are written as they are");

void gmt_file_header_seal(struct gmt_file_header *h)
{
	h->magic = GMT_FILE_MAGIC;
	h->checksum = gmt_crc32c(h, offsetof(struct gmt_file_header, checksum));
}

bool gmt_file_header_valid(const struct gmt_file_header *h)
{
	return h->magic == GMT_FILE_MAGIC &&
	       h->checksum == gmt_crc32c(h, offsetof(struct gmt_file_header, checksum));
}

void gmt_block_seal(struct gmt_block_header *h, const void *stored)
{
	h->magic = GMT_BLOCK_MAGIC;
	h->payload_checksum = gmt_crc32c(stored, h->stored_bytes);
	h->checksum = gmt_crc32c(h, offsetof(struct gmt_block_header, checksum));
}

bool gmt_block_header_valid(const struct gmt_block_header *h)
{
	return h->magic == GMT_BLOCK_MAGIC && h->raw_bytes <= GMT_BLOCK_RAW_MAX &&
	       h->stored_bytes <= GMT_BLOCK_STORED_MAX &&
	       h->checksum == gmt_crc32c(h, offsetof(struct gmt_block_header, checksum));
}

bool gmt_block_payload_valid(const struct gmt_block_header *h, const void *stored)
{
	return h->payload_checksum == gmt_crc32c(stored, h->stored_bytes);
}

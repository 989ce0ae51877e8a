/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event <-> bytes. Pure functions over a small state of last values (deltas), which starts at
 * zero in each block, so that every block can be read alone.
 */
#ifndef GMT_CODEC_H
#define GMT_CODEC_H

#include "record.h"

#define GMT_EVENT_MAX	 128u /* no event takes more bytes */
#define GMT_CODEC_GROUPS 64u
#define GMT_CODEC_PLACES 4096u

/* Last values; zero-initialised at the start of a block (80 KB: not for small stacks). */
struct gmt_codec {
	uint64_t seq, time_ns; /* of the last event */
	uint32_t thread;
	struct gmt_event last[GMT_CODEC_GROUPS]; /* last values of each group of kinds */
	struct {
		uint64_t addr, size;
	} place[GMT_CODEC_PLACES]; /* recent addresses, by hash */
};

/* Returns bytes written (<= GMT_EVENT_MAX; room for that many is required). */
size_t gmt_encode_event(struct gmt_codec *c, const struct gmt_event *e, uint8_t *out);

/* Returns bytes read, or -GMT_ERR_*. Never reads past len. Unknown kinds come back with their seq,
 * time, thread, flags and kind; their fields are skipped by the record's length. */
long gmt_decode_event(struct gmt_codec *c, const uint8_t *in, size_t len, struct gmt_event *out);

/* Definitions: kind, id, length, payload. Same return values. A decoded payload points into `in`.
 */
size_t gmt_encoded_def_size(const struct gmt_def *d);
size_t gmt_encode_def(const struct gmt_def *d, uint8_t *out);
long gmt_decode_def(const uint8_t *in, size_t len, struct gmt_def *out);

#endif

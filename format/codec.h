/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts one event to bytes and back, as a record or spread over columns (codec_columns.c). Pure
 * functions over a state of previous values, which is zero wherever a reader can start.
 */
#pragma once

#include "event.h"

#define GMT_EVENT_MAX	  128u /* no event takes more bytes */
#define GMT_CODEC_GROUPS  64u
#define GMT_CODEC_LATER	  16u /* groups of the kinds from GMT_KIND_EXTRA on: kind modulo this */
#define GMT_CODEC_PLACES  4096u
#define GMT_CODEC_OBJECTS 4096u

struct cursor;

/* The columns of a block of events. Numbers are part of the format. */
enum gmt_column {
	GMT_COL_KIND,  /* kind, mask */
	GMT_COL_OTHER, /* seq, thread, flags, stream, name, scope, device */
	GMT_COL_ADDR,
	GMT_COL_SIZE,
	GMT_COL_ARG0,
	GMT_COL_ARG1,
	GMT_COL_STACK,
	GMT_COL_OBJECT, /* which object arg0 of a tag is */
	GMT_COL_NEW,	/* addresses of new objects */
	GMT_COL_TIME,	/* low byte of the time difference */
	GMT_COL_LATER,	/* other bits of the time difference */
	GMT_COLUMNS,
};

/* Last values. Zero at the start of a block or of a group of blocks. About 120 KB: not for small
 * stacks. */
struct gmt_codec {
	uint64_t seq, time_ns; /* of the last event */
	uint32_t thread;
	struct gmt_event last[GMT_CODEC_GROUPS]; /* last values of each group of kinds */
	struct gmt_event later[GMT_CODEC_LATER];
	struct {
		uint64_t addr, size;
	} place[GMT_CODEC_PLACES] __attribute__((aligned(16))); /* recent addresses, by hash */

	unsigned fields; /* columns only: enum gmt_field of the last event */

	/* columns only: the objects that tags name, numbered in order of appearance */
	uint64_t object[GMT_CODEC_OBJECTS], last_object;
	uint32_t number[GMT_CODEC_OBJECTS]; /* of an object, by address hash; for the encoder */
	uint32_t objects, last_made, last_named;
};

/* Returns bytes written (<= GMT_EVENT_MAX; room for that many is required). */
size_t gmt_encode_event(struct gmt_codec *c, const struct gmt_event *e, uint8_t *out);

/* Returns bytes read, or -GMT_ERR_*. Never reads past len. A kind that the tables lack is decoded
 * as it was written if readers may skip it (gmt_kind_is_extra). Any other unknown kind returns
 * -GMT_ERR_UNKNOWN_KIND, and nothing after it can be read. */
long gmt_decode_event(struct gmt_codec *c, const uint8_t *in, size_t len, struct gmt_event *out);

/* The same with each field in its column. at[]: write position of each column, with GMT_EVENT_MAX
 * bytes of room; in[]: read position of each. Decoding returns 0 or -GMT_ERR_*. */
void gmt_encode_columns(struct gmt_codec *c, const struct gmt_event *e, uint8_t *at[GMT_COLUMNS]);
int gmt_decode_columns(struct gmt_codec *c, struct cursor *in, struct gmt_event *out);

/* Only what a copy of an earlier event has of its own: its time, and the object of a tag. For
 * decoding, *e is the earlier event with the new seq, scope and number of a range. */
void gmt_encode_copy(struct gmt_codec *c, unsigned fields, const struct gmt_event *e,
		     uint8_t *at[GMT_COLUMNS]);
int gmt_decode_copy(struct gmt_codec *c, unsigned fields, struct cursor *in, struct gmt_event *e);

/* Prefetches the memory that encoding this event will use. */
void gmt_encode_expect(const struct gmt_codec *c, const struct gmt_event *e);

/* A block's payload: a head (the columns' lengths), then the columns. Returns the head's size. */
#define GMT_COLUMNS_HEAD 64u /* no head takes more bytes */
size_t gmt_columns_head(const size_t lengths[GMT_COLUMNS], uint8_t *out);
/* Sets in[] to the columns that this version knows. False if the lengths exceed `len`. */
bool gmt_columns_open(struct cursor *in, const uint8_t *payload, size_t len);

/* Definitions: kind, id, length, payload. Same return values. A decoded payload points into
 * `in`. */
size_t gmt_encoded_def_size(const struct gmt_def *d);
size_t gmt_encode_def(const struct gmt_def *d, uint8_t *out);
long gmt_decode_def(const uint8_t *in, size_t len, struct gmt_def *out);

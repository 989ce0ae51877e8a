/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a recorded process from outside, through the first page of its live file. The tool
 * writes one request at a time, and the drain carries it out. The page also has the recorder's own
 * figures, written by the drain. Its layout is part of the format (FORMAT.md, section 7). All
 * fields are atomic. Whoever writes a request holds a lock (flock) on the live file.
 */
#pragma once

#include "ring.h"

#define GMT_CONTROL_AT	    1024u /* offset in the page, bytes */
#define GMT_CONTROL_VERSION 1u
#define GMT_CONTROL_TEXT    1024u

enum gmt_request {
	GMT_REQUEST_NONE = 0,
	GMT_REQUEST_PAUSE = 1,
	GMT_REQUEST_RESUME = 2,
	GMT_REQUEST_MARK = 3, /* text = its name */
};

struct gmt_control {
	uint32_t version; /* 0: the recorder takes no requests */
	uint32_t what;	 /* enum gmt_request; the drain sets it to NONE when it takes the request */
	uint32_t done;	 /* requests carried out, ever */
	uint32_t length; /* of text */
	uint32_t paused; /* 1 = paused by a request */
	uint32_t program; /* the program's own pauses that have not ended */
	uint64_t time_ns; /* when the drain wrote the figures */
	uint64_t events;  /* events numbered so far */
	uint64_t bytes;	  /* of the recording */
	uint64_t dropped; /* events that could not be kept */
	uint64_t memory;  /* bytes that the recorder holds, live file included */
	uint64_t nodes;	  /* of the tree of stacks */
	uint64_t cut;	  /* stacks that were cut because the tree was full */
	uint8_t text[GMT_CONTROL_TEXT];
};

static inline struct gmt_control *gmt_control_of(void *live_page)
{
	return (struct gmt_control *)((char *)live_page + GMT_CONTROL_AT);
}

_Static_assert(GMT_CONTROL_AT + sizeof(struct gmt_control) <= GMT_LIVE_PAGE, "in the first page");
_Static_assert(sizeof(struct gmt_control) == 80 + GMT_CONTROL_TEXT, "part of the format");

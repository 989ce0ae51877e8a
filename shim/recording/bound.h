/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording within GPUMEMTRACE_MAX_SIZE. The drain says how far the file has grown and what
 * passes; when it is time, the recording is written anew without what came and went in its middle,
 * and takes the place of the old one at once.
 */
#pragma once

#include "../../format/writer.h"

/* What the drain lends for the time of a thinning. */
struct bound_drain {
	struct gmt_writer *writer; /* of the recording; nothing is pending */
	struct gmt_writer_info info;
	bool (*serve)(bool flush); /* a round of the drain; false: stop */
};

/* The writer that goes on, with its memory. */
struct bound_result {
	struct gmt_writer *writer; /* NULL: the one before goes on */
	void *workspace;
	uint64_t workspace_bytes;
};

/* The event is being written behind that length of the file. */
void bound_event(const struct gmt_event *e, uint64_t bytes);
bool bound_is_due(uint64_t bytes);
uint64_t bound_pause_at(void);	    /* a file of that length takes no events for now */
bool bound_is_full(uint64_t bytes); /* nothing more may be written */
struct bound_result bound_thin(struct bound_drain *d);
void bound_forget(void); /* in a forked child */

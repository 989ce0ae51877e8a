/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a recording within GPUMEMTRACE_MAX_SIZE. The drain reports the file's length and each
 * event. When a thinning is due, the recording is rewritten without short-lived events of its
 * middle, and the new file replaces the old one atomically.
 */
#pragma once

#include "../../format/writer.h"

/* The drain's part in a thinning. */
struct bound_drain {
	struct gmt_writer *writer; /* of the recording; nothing is pending */
	struct gmt_writer_info info;
	bool (*serve)(bool flush); /* a round of the drain; false: stop */
};

/* The writer to go on with, and its memory. */
struct bound_result {
	struct gmt_writer *writer; /* NULL: go on with the old one */
	void *workspace;
	uint64_t workspace_bytes;
};

/* Call it before an event is written to a file of `bytes`. */
void bound_event(const struct gmt_event *e, uint64_t bytes);
bool bound_is_due(uint64_t bytes);
uint64_t bound_pause_at(void);	    /* from that length on events stay in the rings for now */
bool bound_is_full(uint64_t bytes); /* nothing more may be written */
struct bound_result bound_thin(struct bound_drain *d);
void bound_forget(void); /* in a forked child */

/* SPDX-License-Identifier: Apache-2.0 */
/* What a lake keeps of a recording: its rows in every table that the writer has. */
#ifndef VIEWER_LAKE_RECORDING_H
#define VIEWER_LAKE_RECORDING_H

#include "../answers/peak.h"
#include "../recording/recording.h"
#include "lake.h"

/* What is said of the recording where it is collected. */
struct lake_said {
	uint64_t peak_bytes;
	long device; /* -1: it has no device memory */
	bool less;   /* the lake has more of this process, and kept that */
};

/* The rows of the recording at `path` into these tables of a lake: bits. What the lake has already
 * stays if it has more. 0, or a sentence was said and the exit code; then nothing is left. */
int lake_collect(struct lake_writer *w, const char *path, unsigned tables, int level,
		 struct lake_said *said);

/* ---- its parts ---- */

struct lake_rows {
	struct lake_writer *w;
	struct recording *recording;
	struct timeline
		*timeline;  /* of the device with the highest peak; its device -1: none had */
	bool out_of_memory; /* and nothing was allocated afterwards */
	uint64_t refusals;
	char module[512]; /* of the stack that was asked last */
};

/* Classes and modules around the innermost forward methods: "Net/Block", "" outside of any. */
const char *lake_module(struct lake_rows *x, uint32_t stack);

void lake_device_rows(struct lake_rows *x); /* devices, classes */
void lake_step_rows(struct lake_rows *x);
void lake_refusal_rows(struct lake_rows *x);
void lake_rank_row(struct lake_rows *x, struct peak_answer *peak); /* and the rows of growth */
/* Of the large tables. */
int lake_allocation_rows(struct lake_writer *w, struct recording *r);
int lake_event_rows(struct lake_writer *w, struct recording *r);

#endif

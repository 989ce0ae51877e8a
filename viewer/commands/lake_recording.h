/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a recording's rows into every table that the writer has. */
#pragma once

#include "../answers/peak.h"
#include "../recording/recording.h"
#include "lake.h"

/* 0, or an exit code after one error message; the rows are not whole then. */
int lake_recording_rows(struct lake_writer *w, const char *path);

/* ---- parts ---- */

struct lake_rows {
	struct lake_writer *w;
	struct recording *recording;
	struct timeline
		*timeline;  /* of the device with the highest peak; its device -1: none had */
	bool out_of_memory; /* and no later allocation succeeded */
	uint64_t refusals;
	char module[512]; /* result for the last stack */
};

/* Classes and modules around the innermost forward methods: "Net/Block", or "" outside of all. */
const char *lake_module(struct lake_rows *x, uint32_t stack);

void lake_device_rows(struct lake_rows *x);			   /* devices, classes */
void lake_rank_row(struct lake_rows *x, struct peak_answer *peak); /* and the rows of growth */

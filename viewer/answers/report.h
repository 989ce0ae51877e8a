/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a report, for its text and its JSON. */
#pragma once

#include "../base/human.h"
#include "../moments/moments.h"
#include "../moments/snapshot.h"
#include "document.h"
#include "engine.h"
#include "holders.h"
#include "private_pools.h"
#include "used.h"
#include "values.h"

#define FIGURE 22 /* columns for the name of a figure */

struct report {
	struct timeline timeline;	       /* of the device with the highest peak */
	struct snapshot shots[MODEL_DEVICES];  /* the peak of each device that was seen */
	struct pool_sums pools[MODEL_DEVICES]; /* of each, at the reserved peak */
	struct used_up used_up[MODEL_DEVICES]; /* of each peak */
	size_t count;
	struct engine engine;
	struct values values; /* values that the simulated device did not compute */
	long top;	      /* lines of a table */
	struct instant at;    /* of the peak of the current step */
	bool each_step;
	uint64_t (*step_bytes)[CATEGORIES]; /* at the peak of each step; with each_step */
};

void report_text(struct report *r, struct emit *out); /* all except its head */
void report_classes(struct report *r, const struct snapshot *s, struct emit *out);
void report_steps_find(struct report *r); /* fills step_bytes */
void report_steps(struct report *r, struct emit *out);
struct rows_report_step report_steps_rows(struct report *r);
void report_head(const struct report *r, struct emit *out); /* text: the run in one line */

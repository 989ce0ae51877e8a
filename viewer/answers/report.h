/* SPDX-License-Identifier: Apache-2.0 */
/* What a report is made from, for its two faces. */
#ifndef VIEWER_REPORT_H
#define VIEWER_REPORT_H

#include "../classes/classify.h"
#include "../documents/document.h"
#include "../moments/instant.h"
#include "../moments/moments.h"
#include "../moments/timeline.h"
#include "holders.h"
#include "values.h"

struct report {
	struct timeline timeline;	      /* of the device with the highest peak */
	struct moment moments[MODEL_DEVICES]; /* the peak of each device that was seen */
	size_t count;
	struct classifier *classifier;
	struct values values; /* that were not computed */
	long top;	      /* lines of a table */
	uint64_t by_class[CATEGORIES];
	struct instant at; /* of the peak of the step that is being written */
	bool each_step;
	uint64_t (*step_bytes)[CATEGORIES]; /* of each of steps.items at its peak; with each_step */
};

void report_text(struct report *r, struct emit *out);
/* Most of the device in one piece. */
void report_pools(struct report *r, const struct moment *mo, struct emit *out);
void report_classes(struct report *r, const struct moment *mo, struct emit *out);
/* Bytes of each class at that moment; until the next call. */
const uint64_t *report_by_class(struct report *r, const struct moment *mo);
void report_steps_find(struct report *r); /* fills step_bytes */
void report_steps(struct report *r, struct emit *out);
struct rows_report_step report_steps_rows(struct report *r);
void report_head(const struct report *r, struct emit *out); /* text: the run in one line */

#endif

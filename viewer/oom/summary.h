/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of a report, most bytes first: one line for each finding that another command
 * explains in full. */
#pragma once

#include "../answers/values.h"
#include "oom.h"

#define SUMMARY_MOST 5
#define SUMMARY_TEXT 700

struct matter {
	const char *kind; /* as in documents.def */
	uint64_t bytes;
	uint64_t seq, time_ns; /* its moment; zeros = the whole run */
	struct owner owner;
	char text[SUMMARY_TEXT], action[SUMMARY_TEXT];
};

/* Findings about the timeline's device, with the answers of `leaks` and `oom` that they come from:
 * the page prints these too. */
struct summary {
	struct matter *items;
	size_t count, room;
	const struct leaks *leaks; /* NULL = the recording is a state at one moment */
	struct oom oom;
	struct oom_answer answer; /* of the latest refusal; answer.oom NULL = none on this device */
};

/* *s must be all zeros. file: the recording's name in suggested commands. */
void summary_find(struct summary *s, struct timeline *t, const struct values *v, const char *file);
/* Adds only the refusal that ended the recording, if it is on the timeline's device; else false. */
bool summary_find_end(struct summary *s, struct timeline *t, const char *file);
void summary_free(struct summary *s);
struct rows_summary summary_rows(struct summary *s);
void summary_print(struct summary *s, struct emit *out);

/* SPDX-License-Identifier: Apache-2.0 */
/* Findings that matter about a run, most bytes first: one line of each that other commands say at
 * length. */
#pragma once

#include "../answers/values.h"
#include "oom.h"

#define SUMMARY_MOST 5
#define SUMMARY_TEXT 700

struct matter {
	const char *kind; /* as in documents.def */
	uint64_t bytes;
	uint64_t seq, time_ns; /* its moment; zeros if it is of the whole run */
	struct owner owner;
	char text[SUMMARY_TEXT], action[SUMMARY_TEXT];
};

/* Findings about the timeline's device, with the answers of `leaks` and `oom` that they come from:
 * the page prints these too. */
struct summary {
	struct matter *items;
	size_t count, room;
	const struct leaks *leaks; /* NULL: the recording has a state only */
	struct oom oom;
	struct oom_answer answer; /* of the latest refusal; answer.oom NULL: none on this device */
};

/* *s is empty. file: the recording, as the commands in its actions name it. */
void summary_find(struct summary *s, struct timeline *t, const struct values *v, const char *file);
/* Only how the recording ended: false if not with a refusal of memory. Looks at its device. */
bool summary_find_end(struct summary *s, struct timeline *t, const char *file);
void summary_free(struct summary *s);
struct rows_summary summary_rows(struct summary *s);
void summary_print(struct summary *s, struct emit *out);

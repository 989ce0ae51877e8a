/* SPDX-License-Identifier: Apache-2.0 */
/* Findings that matter about a run, most bytes first: one line of each that other commands say at
 * length. */
#ifndef VIEWER_SUMMARY_H
#define VIEWER_SUMMARY_H

#include "../answers/report.h"

#define SUMMARY_MOST 5
#define SUMMARY_TEXT 700

struct matter {
	const char *kind; /* as in documents.def */
	uint64_t bytes, time_ns;
	struct owner owner;
	char text[SUMMARY_TEXT], action[SUMMARY_TEXT];
};

struct summary {
	struct matter *items;
	size_t count, room;
};

/* Of the report's main device. */
void summary_find(struct summary *s, struct report *r);
void summary_free(struct summary *s);
struct rows_summary summary_rows(struct summary *s);
void summary_print(struct summary *s, struct emit *out);

#endif

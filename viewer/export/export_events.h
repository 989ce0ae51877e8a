/* SPDX-License-Identifier: Apache-2.0 */
/* The table of events: every event of a recording, one row each. */
#pragma once

#include "export_table.h"

enum event_column {
#define EVENT_COLUMN(name, member, type, bit, unit, meaning) EVENT_##name,
#include "export_event_columns.def"
	EVENT_COLUMNS
};

struct export_events {
	const struct defs *defs;      /* of the recording */
	unsigned what[EVENT_COLUMNS]; /* chosen columns, in order */
	unsigned count;
	/* Gets a cell for each chosen column. */
	void (*row)(void *ctx, const struct export_cell *cells);
	void *ctx;
};

extern const struct arrow_column export_event_columns[EVENT_COLUMNS];

/* For recording_run: one row for each event; ctx is a struct export_events. */
int export_event_row(void *ctx, const struct gmt_event *e);

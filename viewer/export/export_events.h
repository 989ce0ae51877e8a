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
	unsigned what[EVENT_COLUMNS]; /* these columns, in this order */
	unsigned count;
	/* A cell for each of them; numbers are as wide as their column in the exports. */
	void (*row)(void *ctx, const struct export_cell *cells);
	void *ctx;
};

extern const struct arrow_column export_event_columns[EVENT_COLUMNS];

/* One row for each event that is passed to export_event_row. */
struct export_event_rows {
	const struct defs *defs;
	const struct export_events *table;
	struct export_cell cells[EVENT_COLUMNS];
	uint32_t thread, tid; /* the last one that was looked up */
};

int export_event_row(void *rows, const struct gmt_event *e);

int export_events(struct recording *r, const struct export_events *table);

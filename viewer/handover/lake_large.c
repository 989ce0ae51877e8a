/* SPDX-License-Identifier: Apache-2.0 */
/* The large tables: every block, every event, as the exports have them. */
#include "../export/export_events.h"
#include "lake_recording.h"

struct large {
	struct lake_writer *w;
	struct export_events events;
};

static void put_cell(struct lake_writer *w, enum lake_table_id t, unsigned column,
		     const struct export_cell *cell)
{
	if (cell->null)
		return;
	if (lake_tables[t].columns[column].type == LAKE_TEXT)
		lake_bytes(w, t, column, cell->text, cell->len);
	else
		lake_int(w, t, column, (int64_t)cell->number);
}

static void block_row(void *ctx, const struct export_cell *cells)
{
	struct large *x = ctx;

	for (unsigned c = 0; c < COLUMNS; c++)
		put_cell(x->w, LAKE_allocations, c, &cells[c]);
	lake_row(x->w, LAKE_allocations);
}

int lake_allocation_rows(struct lake_writer *w, struct recording *r)
{
	struct recording again; /* events are read once more */
	struct export x = { .recording = &again, .device = -1 };
	struct large large = { .w = w };
	int rc = recording_open(&again, r->path);

	if (rc)
		return rc;
	rc = moments_read(&again, &x.facts, NULL);
	if (!rc) {
		owners_open(&x.owners, &x.stacks, &again.defs);
		x.classifier = classifier_new(&x.facts, &x.owners);
		export_table(&x, block_row, &large);
		classifier_free(x.classifier);
		owners_close(&x.owners);
	}
	model_free(&x.facts);
	recording_close(&again);
	return rc;
}

static void event_row(void *ctx, const struct export_cell *cells)
{
	struct large *x = ctx;

	for (unsigned i = 0; i < x->events.count; i++)
		put_cell(x->w, LAKE_events, x->events.what[i], &cells[i]);
	lake_row(x->w, LAKE_events);
}

int lake_event_rows(struct lake_writer *w, struct recording *r)
{
	struct large x = { .w = w, .events = { .row = event_row, .ctx = &x } };

	for (unsigned c = 0; c < EVENT_COLUMNS; c++)
		if (lake_wants(w, LAKE_events, c))
			x.events.what[x.events.count++] = (enum event_column)c;
	return export_events(r, &x.events);
}

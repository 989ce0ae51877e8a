/* SPDX-License-Identifier: Apache-2.0 */
/* Every event as a row of a table. Unlike other exports it reads the events themselves, in one pass
 * and without classes, because the model does not keep them. */
#include "export_events.h"

#include "../../format/record.h"

#include "arrow.h"

const struct arrow_column export_event_columns[EVENT_COLUMNS] = {
#define EVENT_COLUMN(name, member, type, bit, unit, meaning) { #name, ARROW_##type, unit, meaning },
#include "export_event_columns.def"
};

/* Offset of a column in an event, and the bit that its kind must have; 0 = every kind has it. */
static const struct {
	size_t offset, bytes;
	unsigned bit;
} members[EVENT_COLUMNS] = {
#define EVENT_COLUMN(name, member, type, bit, unit, meaning) \
	{ offsetof(struct gmt_event, member), sizeof(((struct gmt_event *)0)->member), bit },
#include "export_event_columns.def"
};

static uint64_t number_of(const struct export_events *x, const struct gmt_event *e,
			  enum event_column column)
{
	const struct defs_thread *t;
	uint64_t n = 0;

	if (column == EVENT_thread)
		return (t = defs_thread(x->defs, e->thread)) ? t->tid : 0;
	memcpy(&n, (const char *)e + members[column].offset, members[column].bytes);
	return n;
}

static struct defs_text text_of(const struct export_events *x, const struct gmt_event *e,
				enum event_column column)
{
	const char *s = column == EVENT_kind ? gmt_kind_name(e->kind) : gmt_mem_name(e->arg0);

	if (column == EVENT_name)
		return defs_string(x->defs, e->name);
	return (struct defs_text){ s, strlen(s) };
}

/* Whether a cell is null: device -1; thread, stack or name 0; memory of other kinds of events. */
static bool is_null(const struct gmt_event *e, enum event_column column)
{
	return (column == EVENT_device && e->device < 0) || (column == EVENT_stack && !e->stack) ||
	       (column == EVENT_name && !e->name) || (column == EVENT_thread && !e->thread) ||
	       (column == EVENT_memory && !gmt_kind_has_memory(e->kind));
}

int export_event_row(void *ctx, const struct gmt_event *e)
{
	const struct export_events *x = ctx;
	struct export_cell cells[EVENT_COLUMNS] = { 0 };
	unsigned has = gmt_kind_fields(e->kind);

	for (unsigned i = 0; i < x->count; i++) {
		enum event_column c = x->what[i];
		struct export_cell *cell = &cells[i];

		cell->null = (members[c].bit & has) != members[c].bit || is_null(e, c);
		if (cell->null)
			continue;
		if (export_event_columns[c].type == ARROW_TEXT) {
			struct defs_text t = text_of(x, e, c);

			cell->text = t.s;
			cell->len = t.len;
		} else {
			cell->number = number_of(x, e, c);
		}
	}
	x->row(x->ctx, cells);
	return 0;
}

/* ---- as Arrow ---- */

int export_event_table(struct export *x)
{
	struct export_events table = { .defs = &x->recording->defs, .row = export_arrow_add };
	struct arrow_column columns[EVENT_COLUMNS];
	struct arrow *a;
	int rc = arrow_choose(export_event_columns, EVENT_COLUMNS, x->columns, table.what,
			      &table.count);

	if (rc)
		return rc;
	for (unsigned i = 0; i < table.count; i++)
		columns[i] = export_event_columns[table.what[i]];
	table.ctx = a = arrow_open(x->f, columns, table.count);
	rc = recording_run(x->recording, export_event_row, &table);
	arrow_close(a);
	return rc;
}

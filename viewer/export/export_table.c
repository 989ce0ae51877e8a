/* SPDX-License-Identifier: Apache-2.0 */
#include "export_table.h"

#include <string.h>

const struct arrow_column export_columns[COLUMNS] = {
#define COLUMN(name, kind, unit, meaning) { #name, COLUMN_##kind, unit, meaning },
#include "export_columns.def"
#undef COLUMN
};

struct table {
	struct export *x;
	void (*row)(void *ctx, const struct export_cell *cells);
	void *ctx;
};

static struct export_cell number(uint64_t n)
{
	return (struct export_cell){ .number = n };
}

static struct export_cell number_or_null(uint64_t n)
{
	return (struct export_cell){ .null = !n, .number = n };
}

static struct export_cell text(const char *s)
{
	return (struct export_cell){ .null = !s || !*s,
				     .text = s ? s : "",
				     .len = s ? strlen(s) : 0 };
}

static void tell_row(struct table *t, uint32_t life)
{
	const struct defs *d = &t->x->recording->defs;
	struct block block, *b = &block;
	struct verdict v = export_verdict(t->x, life, b);
	const struct defs_thread *thread = defs_thread(d, b->thread);
	struct owner o = owners_find(&t->x->owners, b);
	struct export_cell cells[COLUMNS] = {
		[COLUMN_device] = number((uint64_t)b->device),
		[COLUMN_address] = number(b->addr),
		[COLUMN_size] = number(b->size),
		[COLUMN_class] = text(category_name(v.category)),
		[COLUMN_born_ns] = number(b->born_ns),
		[COLUMN_died_ns] = number_or_null(b->died_ns),
		[COLUMN_born_unix_ns] = number(export_wall(t->x, b->born_ns)),
		[COLUMN_stream] = number(b->stream),
		[COLUMN_thread] = number(thread ? thread->tid : 0),
		[COLUMN_thread_name] = text(thread ? thread->name.s : NULL),
		[COLUMN_stack] = number_or_null(b->stack),
		[COLUMN_function] = text(o.function),
		[COLUMN_file] = text(o.file),
		[COLUMN_line] = number_or_null(o.line),
		[COLUMN_node] = text(b->memory ? NULL : defs_string(d, b->name).s),
		[COLUMN_rule] = text(verdict_rule(v)),
	};

	t->row(t->ctx, cells);
}

static void on_life(void *ctx, uint32_t life, bool ended)
{
	struct table *t = ctx;

	if (ended && export_counts(t->x, life))
		tell_row(t, life);
}

void export_table(struct export *x, void (*row)(void *ctx, const struct export_cell *cells),
		  void *ctx)
{
	struct table t = { .x = x, .row = row, .ctx = ctx };
	const struct lives *l = &x->facts.lives;

	export_series(x, &(struct series_sink){ .life = on_life, .ctx = &t });
	for (uint32_t i = 0; i < l->rows.count; i++)
		if (!lives_at(l, i)->died.position && export_counts(x, i))
			tell_row(&t, i);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "export_table.h"

#include <string.h>

const struct arrow_column export_columns[COLUMNS] = {
#define COLUMN(name, kind, unit, meaning) { #name, COLUMN_##kind, unit, meaning },
#include "export_columns.def"
#undef COLUMN
};

#define IN(column) (1u << COLUMN_##column)
#define OWNERS	   (IN(function) | IN(file) | IN(line))

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

static void set_owner(struct export *x, const struct block *b, struct export_cell *cells)
{
	struct owner o = owners_find(&x->owners, b);

	cells[COLUMN_function] = text(o.function);
	cells[COLUMN_file] = text(o.file);
	cells[COLUMN_line] = number_or_null(o.line);
}

static void set_class(struct export *x, uint32_t life, struct block *b, struct export_cell *cells)
{
	struct verdict v = export_verdict(x, life, b);

	cells[COLUMN_class] = text(category_name(v.category));
	cells[COLUMN_rule] = text(verdict_rule(v));
}

void export_row(struct export *x, uint32_t life, unsigned wanted, struct export_cell cells[COLUMNS])
{
	const struct defs *d = &x->recording->defs;
	struct block block, *b = &block;
	const struct defs_thread *thread;

	model_block(&x->facts, life, b);
	if (wanted & (IN(class) | IN(rule)))
		set_class(x, life, b, cells);
	if (wanted & OWNERS)
		set_owner(x, b, cells);
	thread = defs_thread(d, b->thread);
	cells[COLUMN_device] = number((uint64_t)b->device);
	cells[COLUMN_address] = number(b->addr);
	cells[COLUMN_size] = number(b->size);
	cells[COLUMN_born_ns] = number(b->born_ns);
	cells[COLUMN_died_ns] = number_or_null(b->died_ns);
	cells[COLUMN_born_unix_ns] = number(export_wall(x, b->born_ns));
	cells[COLUMN_stream] = number(b->stream);
	cells[COLUMN_thread] = number(thread ? thread->tid : 0);
	cells[COLUMN_thread_name] = text(thread ? thread->name.s : NULL);
	cells[COLUMN_stack] = number_or_null(b->stack);
	cells[COLUMN_node] = text(b->memory ? NULL : defs_string(d, b->name).s);
}

void export_walk_first(struct export_walk *w, struct export *x)
{
	*w = (struct export_walk){ .x = x };
	lives_first(&w->ends, &x->facts.lives);
}

bool export_walk_next(struct export_walk *w, uint32_t *life)
{
	const struct lives *l = &w->x->facts.lives;

	for (; w->ends.change; lives_next(&w->ends)) {
		*life = w->ends.now.life;
		if (w->ends.change != CHANGE_DIED || !export_counts(w->x, *life))
			continue;
		lives_next(&w->ends);
		return true;
	}
	for (; w->next < l->rows.count; w->next++) {
		if (lives_at(l, w->next)->died.position || !export_counts(w->x, w->next))
			continue;
		*life = w->next++;
		return true;
	}
	return false;
}

void export_table(struct export *x, void (*row)(void *ctx, const struct export_cell *cells),
		  void *ctx)
{
	struct export_cell cells[COLUMNS];
	struct export_walk w;
	uint32_t life;

	for (export_walk_first(&w, x); export_walk_next(&w, &life);) {
		export_row(x, life, UINT32_MAX, cells);
		row(ctx, cells);
	}
}

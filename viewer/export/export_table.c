/* SPDX-License-Identifier: Apache-2.0 */
#include "export_table.h"

#include <string.h>

const struct export_column export_columns[COLUMNS] = {
#define COLUMN(name, kind, unit, meaning) { #name, COLUMN_##kind, unit, meaning },
#include "export_columns.def"
#undef COLUMN
};

struct table {
	struct export *x;
	void (*row)(void *ctx, const struct export_cell *cells);
	void *ctx;
	struct tree alive; /* by seq of the birth; handle = address, counted_as = class */
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

static void tell_row(struct table *t, const struct block *b, uint64_t addr, unsigned class,
		     uint64_t died_ns)
{
	const struct defs *d = &t->x->recording.defs;
	const struct defs_thread *thread = defs_thread(d, b->thread);
	struct owner o = owners_find(&t->x->owners, b);
	struct export_cell cells[COLUMNS] = {
		[COLUMN_device] = number((uint64_t)b->device),
		[COLUMN_address] = number(addr),
		[COLUMN_size] = number(b->size),
		[COLUMN_class] = text(category_name(class)),
		[COLUMN_born_ns] = number(b->born_ns),
		[COLUMN_died_ns] = number_or_null(died_ns),
		[COLUMN_born_unix_ns] = number(export_wall(t->x, b->born_ns)),
		[COLUMN_stream] = number(b->stream),
		[COLUMN_thread] = number(thread ? thread->tid : 0),
		[COLUMN_thread_name] = text(thread ? thread->name.s : NULL),
		[COLUMN_stack] = number_or_null(b->stack),
		[COLUMN_function] = text(o.function),
		[COLUMN_file] = text(o.file),
		[COLUMN_line] = number_or_null(o.line),
		[COLUMN_node] = text(b->memory ? NULL : defs_string(d, b->name).s),
	};

	t->row(t->ctx, cells);
}

static void on_life(void *ctx, const struct export_life *l)
{
	struct table *t = ctx;
	struct block *b = tree_find(&t->alive, l->block->seq);

	if (l->ended) {
		if (b)
			tree_remove(&t->alive, b->addr);
		tell_row(t, l->block, l->block->addr, l->born_as, l->time_ns);
		return;
	}
	if (!b)
		b = tree_insert(&t->alive, l->block->seq);
	*b = *l->block;
	b->addr = l->block->seq;
	b->handle = l->block->addr;
	b->mark = (uint16_t)l->born_as;
}

int export_table(struct export *x, void (*row)(void *ctx, const struct export_cell *cells),
		 void *ctx)
{
	struct table t = { .x = x, .row = row, .ctx = ctx };
	const struct export_walk walk = { .life = on_life, .ctx = &t };
	int rc = export_walk(x, &walk);

	TREE_EACH(&t.alive, b)
	tell_row(&t, b, b->handle, b->mark, 0);
	tree_free(&t.alive);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "export_table.h"

#include "../base/emit_json.h"
#include "../base/ending.h"

/* Comma-separated values (RFC 4180): texts in quotes if needed, null as an empty field. */

/* Control characters and bytes that are not UTF-8 become \xNN, so that a row is one line. */
static void put_text(FILE *f, const char *s, size_t len)
{
	bool quotes = memchr(s, ',', len) || memchr(s, '"', len) || memchr(s, ' ', len);

	if (quotes)
		fputc('"', f);
	if (begins_formula(s, len))
		fputc('\'', f);
	while (len) {
		const char *quote = memchr(s, '"', len);
		size_t n = quote ? (size_t)(quote - s) : len;

		emit_plain_string(f, s, n);
		if (quote)
			fputs("\"\"", f);
		n += quote != NULL;
		s += n;
		len -= n;
	}
	if (quotes)
		fputc('"', f);
}

static void csv_row(void *ctx, const struct export_cell *cells)
{
	FILE *f = ctx;

	for (unsigned i = 0; i < COLUMNS; i++) {
		if (i)
			fputc(',', f);
		if (cells[i].null)
			continue;
		if (export_columns[i].type == ARROW_TEXT)
			put_text(f, cells[i].text, cells[i].len);
		else
			fprintf(f, "%" PRIu64, cells[i].number);
	}
	fputs("\r\n", f);
}

int export_csv(struct export *x)
{
	for (unsigned i = 0; i < COLUMNS; i++)
		fprintf(x->f, "%s%s", i ? "," : "", export_columns[i].name);
	fputs("\r\n", x->f);
	export_table(x, csv_row, x->f);
	return 0;
}

/* JSON lines: one object per block, with all columns. */

static void jsonl_row(void *ctx, const struct export_cell *cells)
{
	FILE *f = ctx;

	for (unsigned i = 0; i < COLUMNS; i++) {
		fprintf(f, "%s\"%s\":", i ? "," : "{", export_columns[i].name);
		if (cells[i].null)
			fputs("null", f);
		else if (export_columns[i].type == ARROW_TEXT)
			emit_json_string(f, cells[i].text, cells[i].len);
		else
			fprintf(f, "%" PRIu64, cells[i].number);
	}
	fputs("}\n", f);
}

int export_jsonl(struct export *x)
{
	export_table(x, jsonl_row, x->f);
	return 0;
}

/* The table of blocks as an Arrow IPC file: numbers are uint64, texts utf8. */

bool export_arrow_row(struct arrow_batch *b, const struct export_cell *cells)
{
	for (unsigned c = 0; c < b->count; c++) {
		if (cells[c].null)
			continue;
		if (b->columns[c].type == ARROW_TEXT)
			arrow_text(b, c, cells[c].text, cells[c].len);
		else
			arrow_number(b, c, cells[c].number);
	}
	return arrow_row(b);
}

void export_arrow_add(void *arrow, const struct export_cell *cells)
{
	if (export_arrow_row(arrow_rows(arrow), cells))
		arrow_flush(arrow);
}

int export_arrow(struct export *x)
{
	struct arrow *a = arrow_open(x->f, export_columns, COLUMNS);

	export_table(x, export_arrow_add, a);
	arrow_close(a);
	return 0;
}

const struct arrow_column export_columns[COLUMNS] = {
#define COLUMN(name, kind, unit, meaning) { #name, COLUMN_##kind, unit, meaning },
#include "export_columns.def"
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
	struct owner o = owners_find(&x->timeline.owners, b);

	cells[COLUMN_function] = text(o.function);
	cells[COLUMN_file] = text(o.file);
	cells[COLUMN_line] = number_or_null(o.line);
}

static void set_uses(const struct model *m, uint32_t life, struct export_cell *cells)
{
	struct block_uses x;

	uses_of(m, life, &x);
	cells[COLUMN_first_use_ns] = (struct export_cell){ !x.count, x.first_ns, NULL, 0 };
	cells[COLUMN_last_use_ns] = (struct export_cell){ !x.count, x.last_ns, NULL, 0 };
	cells[COLUMN_uses] = (struct export_cell){ !x.whole, x.count, NULL, 0 };
	cells[COLUMN_longest_pause_ns] =
		(struct export_cell){ !x.whole || x.count < 2, x.pause_ns, NULL, 0 };
}

void export_row(struct export *x, uint32_t life, unsigned wanted, struct export_cell cells[COLUMNS])
{
	const struct defs *d = &x->recording->defs;
	struct block block, *b = &block;
	const struct defs_thread *thread;

	model_block(&x->timeline.model, life, b);
	if (wanted & (IN(class) | IN(rule))) {
		struct verdict v = export_verdict(x, life, b);

		cells[COLUMN_class] = text(categories[v.category].name);
		cells[COLUMN_rule] = text(verdict_rule(v));
	}
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
	set_uses(&x->timeline.model, life, cells);
	cells[COLUMN_node] = text(b->memory ? NULL : defs_string(d, b->name).s);
}

void export_walk_first(struct export_walk *w, struct export *x)
{
	*w = (struct export_walk){ .x = x };
	lives_first(&w->ends, &x->timeline.model.lives);
}

bool export_walk_next(struct export_walk *w, uint32_t *life)
{
	const struct lives *l = &w->x->timeline.model.lives;

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

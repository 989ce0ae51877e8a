/* SPDX-License-Identifier: Apache-2.0 */
#include "columns.h"

#include <stdalign.h>

#include "../base/emit_json.h"
#include "../base/human.h"
#include "../classes/classify.h"
#include "../recording/owner_words.h"

#define COLUMNS	    16
#define CELL	    1024
#define COLUMN_LEAD 80
#define LEAST	    12 /* a text is cut to no fewer columns */

struct printer {
	struct emit *out;
	const struct document *document;
	const struct text_column *columns;
	size_t count;
	size_t widths[COLUMNS];
	/* Width to which a text is cut so that the row fits the terminal; 0 = not cut. */
	size_t limits[COLUMNS];
	bool tight; /* nothing can be cut further: one space less between columns */
	char line[4 * CELL];
	size_t len, gap; /* gap: spaces before the next text */
};

static const char *owner_cell(const struct text_column *c, const struct owner *o, size_t limit,
			      char buf[CELL])
{
	size_t room = limit && (!c->room || limit < c->room) ? limit : c->room;

	if (c->style == COLUMN_CUT)
		return owner_words(o, buf, CELL, room);
	return owner_words_within(o, buf, CELL, room);
}

static const char *number_cell(const struct text_column *c, enum member_type type, uint64_t n,
			       char buf[CELL])
{
	if (c->style == COLUMN_SHARE)
		return human_share(buf, n, c->all);
	if (type == MEMBER_ADDRESS)
		snprintf(buf, CELL, "0x%" PRIx64, n);
	else if (type == MEMBER_BYTES && c->style != COLUMN_PLAIN)
		human_bytes(buf, n);
	else if (type == MEMBER_CHANGE)
		human_change(buf, (int64_t)n);
	else if (type == MEMBER_DURATION)
		human_seconds(buf, n);
	else if (type == MEMBER_COUNT && c->style != COLUMN_PLAIN)
		human_count(buf, n);
	else
		snprintf(buf, CELL, "%" PRIu64, n);
	return buf;
}

static bool has_cell(const struct printer *p, const struct text_column *c, const char *row)
{
	const struct member *m = &p->document->members[c->member];
	const struct member *when = &p->document->members[c->when];

	return !(m->has && !*(const bool *)(row + m->has - 1)) &&
	       !(c->when && !*(const bool *)(row + when->offset));
}

static const char *cell_text(const struct printer *p, const struct text_column *c, const char *row,
			     char buf[CELL])
{
	const struct member *m = &p->document->members[c->member];
	const char *at = row + m->offset;
	const struct defs_text *raw = (const void *)at;
	const struct words *words = (const void *)at;
	const char *text;

	if (!has_cell(p, c, row))
		return "";
	switch (m->type) {
	case MEMBER_FUNCTION:
		return owner_cell(c, (const void *)at, p->limits[c - p->columns], buf);
	case MEMBER_TEXT:
		memcpy(&text, at, sizeof(text));
		if (text && c->style == COLUMN_END)
			return words_end(text, buf, CELL, c->room);
		return text ? text : "";
	case MEMBER_RAW:
		snprintf(buf, CELL, "%.*s", (int)raw->len, raw->s ? raw->s : "");
		return buf;
	case MEMBER_WORDS:
		return words_at(words, c->item);
	case MEMBER_CLASS:
		return categories[*(const unsigned *)at].words;
	default:
		return m->type <= MEMBER_ADDRESS || m->type == MEMBER_CHANGE
			       ? number_cell(c, m->type, *(const uint64_t *)at, buf)
			       : ""; /* no command has a column of such a type */
	}
}

/* True if its lines are printed apart from the other columns. */
static bool is_apart(const struct text_column *c)
{
	return c->style == COLUMN_WRAP || c->style == COLUMN_BELOW;
}

static bool can_be_cut(const struct printer *p, size_t i)
{
	enum member_type type = p->document->members[p->columns[i].member].type;

	return p->columns[i].width < 0 && (type == MEMBER_FUNCTION || type == MEMBER_TEXT ||
					   type == MEMBER_RAW || type == MEMBER_WORDS);
}

/* Index of the widest text that can be cut further; p->count = none. */
static size_t widest_text(const struct printer *p)
{
	size_t widest = p->count;

	for (size_t i = 0; i < p->count && !is_apart(&p->columns[i]); i++)
		if (can_be_cut(p, i) && p->widths[i] > LEAST &&
		    (widest == p->count || p->widths[i] > p->widths[widest]))
			widest = i;
	return widest;
}

/* Cuts texts of a row that is wider than the terminal, but no figures. */
static void fit_screen(struct printer *p)
{
	size_t screen = emit_screen(), total = 0;

	for (size_t i = 0; i < p->count && !is_apart(&p->columns[i]); i++)
		total += p->columns[i].gap + p->widths[i];
	for (; screen && total > screen; total--) {
		size_t widest = widest_text(p);

		p->tight = widest == p->count;
		if (p->tight)
			return;
		p->limits[widest] = --p->widths[widest];
	}
}

/* A cell, cut to its column: a call site keeps its file and line, other text its beginning. */
static const char *shown_text(const struct printer *p, size_t i, const char *row, char cut[CELL])
{
	char buf[CELL];
	const char *text = row ? cell_text(p, &p->columns[i], row, buf) : p->columns[i].title;

	return words_of_place(text, cut, CELL, p->limits[i] ? p->limits[i] : CELL);
}

static void measure_row(struct printer *p, const char *row)
{
	char buf[CELL];

	for (size_t i = 0; i < p->count && !is_apart(&p->columns[i]); i++) {
		const char *text =
			row ? cell_text(p, &p->columns[i], row, buf) : p->columns[i].title;
		size_t width = emit_plain_width(text, strlen(text));

		p->widths[i] = width > p->widths[i] ? width : p->widths[i];
	}
}

/* Spaces are printed only when something follows them on the line. */
static void add_cell(struct printer *p, size_t i, const char *text)
{
	const struct text_column *c = &p->columns[i];
	size_t width = emit_plain_width(text, strlen(text));
	size_t pad = p->widths[i] > width ? p->widths[i] - width : 0;

	p->gap += c->gap - (p->tight && c->gap > 1) + (c->width < 0 ? 0 : pad);
	if (*text) {
		p->len += (size_t)snprintf(p->line + p->len, sizeof(p->line) - p->len, "%*s%s",
					   (int)p->gap, "", text);
		p->len = p->len < sizeof(p->line) ? p->len : sizeof(p->line) - 1;
		p->gap = 0;
	}
	p->gap += c->width < 0 ? pad : 0;
}

/* Prints a text behind the other columns, or below them. */
static void print_apart(struct printer *p, const struct text_column *c, const char *text)
{
	char next[COLUMN_LEAD];
	bool wrap = c->style == COLUMN_WRAP;
	size_t indent = c->gap + (wrap ? p->len + p->gap : 0);

	snprintf(next, sizeof(next), "%*s", (int)indent, "");
	if (wrap)
		snprintf(p->line + p->len, sizeof(p->line) - p->len, "%*s", (int)(p->gap + c->gap),
			 "");
	emit_paragraph(p->out, wrap ? p->line : next, next, text);
}

/* A name that is too wide for its column gets a line of its own. */
static bool print_key(struct printer *p, const char *row)
{
	const struct text_column *c = &p->columns[0];
	char buf[CELL];
	const char *text = cell_text(p, c, row, buf);

	if (c->style != COLUMN_KEY || !p->limits[0] ||
	    emit_plain_width(text, strlen(text)) <= p->limits[0])
		return false;
	emit_line(p->out, "%*s%s", (int)c->gap, "", text);
	p->gap = c->gap + p->widths[0];
	return true;
}

static void print_row_of_text(struct printer *p, const char *row)
{
	char buf[CELL], cut[CELL];
	size_t i = 0;

	if (!row && !ANY_OF(x, p->columns, p->count, x->title[0]))
		return;
	p->len = p->gap = 0;
	p->line[0] = 0;
	if (row && print_key(p, row))
		i = 1;
	for (; i < p->count && (!row || !is_apart(&p->columns[i])); i++)
		add_cell(p, i, shown_text(p, i, row, cut));
	if (!row)
		emit_title(p->out, "%s", p->line);
	else if (i == p->count || p->columns[i].style == COLUMN_BELOW)
		emit_line(p->out, "%s", p->line);
	for (; row && i < p->count; i++)
		print_apart(p, &p->columns[i], cell_text(p, &p->columns[i], row, buf));
}

static void print_markdown(struct printer *p, const char *row)
{
	char buf[CELL];

	emit_raw(p->out, "|");
	for (size_t i = 0; i < p->count; i++) {
		emit_raw(p->out, " ");
		emit_escaped(p->out,
			     row ? cell_text(p, &p->columns[i], row, buf) : p->columns[i].title);
		emit_raw(p->out, " |");
	}
	emit_raw(p->out, row ? "\n" : "\n|");
	for (size_t i = 0; !row && i < p->count; i++)
		emit_raw(p->out, "%s%s", p->columns[i].width < 0 ? "---|" : "---:|",
			 i + 1 < p->count ? "" : "\n");
}

/* Calls look for the titles (NULL) and each of at most `most` rows, 0 = all. Returns how many rows
 * were left out. */
static size_t each_row(struct printer *p, const void *rows, size_t most,
		       void (*look)(struct printer *p, const char *row))
{
	alignas(max_align_t) char row[ROW_MOST];
	size_t n = 0;

	look(p, NULL);
	for (size_t i = 0; p->document->next(rows, &i, row);)
		if (n++ < most || !most)
			look(p, row);
	return most && n > most ? n - most : 0;
}

size_t columns_write(struct emit *out, const struct document *d, const struct text_column *columns,
		     size_t count, const void *rows, size_t most)
{
	struct printer p = { .out = out, .document = d, .columns = columns, .count = count };

	if (emit_json(out))
		return 0;
	if (emit_is_markdown(out))
		return each_row(&p, rows, most, print_markdown);
	for (size_t i = 0; i < count; i++)
		p.widths[i] = (size_t)(columns[i].width < 0 ? -columns[i].width : columns[i].width);
	each_row(&p, rows, most, measure_row);
	fit_screen(&p);
	return each_row(&p, rows, most, print_row_of_text);
}

void emit_left_out(struct emit *out, const char *indent, size_t count)
{
	if (count)
		emit_line(out, "%s... and %zu smaller one%s (--top 0 shows all)", indent, count,
			  count == 1 ? "" : "s");
}

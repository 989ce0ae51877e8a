/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as text: the peak, the findings, tables, the two sides. On a terminal the sides come
 * first. In Markdown, for a comment on a pull request, they are folded together with the tables. */
#include "../base/human.h"
#include "diff_document.h"

#define WIDTH 79

static void side(struct emit *out, const char *name, const struct diff_side *s)
{
	struct defs_text commit = defs_meta(&s->recording.defs, "git.commit");
	char command[1024], text[1024], head[300];
	int room = WIDTH - snprintf(head, sizeof(head), "%s  %.240s  |  %s%.7s", name,
				    owners_base(s->recording.path),
				    commit.len ? "commit " : "no commit", commit.s);

	command_words(&s->recording.defs, command, sizeof(command));
	words_within(command, text, sizeof(text), room > 13 ? (size_t)room - 5 : 8);
	emit_point(out, "%s%s%s", head, command[0] ? "  |  " : "", text);
}

static void sides(const struct diff *d, struct emit *out)
{
	const char *indent = emit_is_markdown(out) ? "" : "     ";
	struct diff_ground grounds[DIFF_GROUNDS];

	side(out, "old", &d->old);
	side(out, "new", &d->new);
	FOR_EACH (const struct diff_ground, g, grounds, diff_grounds(d, grounds))
		emit_point(out, "%sbesides: %s %.30s -> %.30s", indent, g->what,
			   g->old[0] ? g->old : "none", g->new[0] ? g->new : "none");
	emit_line(out, "%s", "");
}

static void findings(const struct diff *d, struct emit *out, size_t most)
{
	char why[DIFF_NOT_COMPARED];

	if (*diff_not_compared(d, why, sizeof(why)))
		emit_paragraph(out, "", "", why);
	if (*why && !d->no_lines)
		emit_line(out, "%s", "");
	if (!d->count && !d->no_lines)
		emit_line(out, d->no_classes ? "No line differs." : "Nothing differs.");
	for (size_t i = 0; i < d->count && i < most; i++)
		emit_item(out, i + 1, d->findings[i].text);
	if (most < d->count && emit_is_markdown(out))
		emit_line(out, "%s", "");
	if (most < d->count)
		emit_left_out(out, emit_is_markdown(out) ? "" : "    ", d->count - most);
}

/* Prints that the findings add up to the whole change, if there are several. */
static void sum(const struct diff *d, struct emit *out)
{
	uint64_t compared_old = d->old.shot.total, compared_new = d->new.shot.total;
	bool peaks = compared_old == d->old.peak && compared_new == d->new.peak;
	char text[160];

	if (SUM_OF(f, d->findings, d->count,
		   f->cause != CAUSE_PEAK && f->cause != CAUSE_RESERVED &&
			   f->bytes_old != f->bytes_new) < 2)
		return;
	snprintf(text, sizeof(text), "These findings add up to %s, the change %s%s.",
		 CHANGE(compared_new - compared_old), peaks ? "of the peak" : "in the ",
		 peaks ? "" : phases[d->new.shot.phase].noun);
	emit_line(out, "%s", "");
	emit_paragraph(out, "", "", text);
}

static void tables_by_time(const struct row_diff *row, struct emit *out)
{
	static const struct text_column classes[] =
		DIFF_COLUMNS("class, each at its own peak", diff_class, class);
	static const struct text_column highest_in[] =
		DIFF_COLUMNS("highest in", diff_phase, words);

	emit_line(out, "%s", "");
	emit_columns(out, diff_class, &row->classes, classes, 0);
	emit_line(out, "%s", "");
	emit_columns(out, diff_phase, &row->phases, highest_in, 0);
}

/* Tables of the greatest changes; none if nothing changed. */
static void tables_by_place(const struct diff_document *doc, struct emit *out, size_t most)
{
	static const struct text_column modules[] =
		DIFF_COLUMNS("module", diff_module, module, .room = DIFF_NAME, .style = COLUMN_END);
	static const struct text_column lines[] = DIFF_COLUMNS("line", diff_line, words);
	const struct diff_group *m = doc->modules.items, *l = doc->lines.items;

	if (doc->diff->no_lines)
		return;
	if (doc->modules.count && m->bytes_old != m->bytes_new) {
		emit_line(out, "%s", "");
		emit_columns(out, diff_module, &doc->row.modules, modules, most);
	}
	if (doc->lines.count && l->bytes_old != l->bytes_new) {
		emit_line(out, "%s", "");
		emit_columns(out, diff_line, &doc->row.lines, lines, most);
	}
}

void diff_print(const struct diff_document *doc, struct emit *out, long top)
{
	bool comment = emit_is_markdown(out);
	size_t most = top > 0 ? (size_t)top : 0;
	char text[400];

	if (!comment)
		sides(doc->diff, out);
	diff_headline(doc->diff, text, sizeof(text));
	if (comment) /* a comment among others needs a title */
		emit_title(out, "GPU memory: %c%s", tolower((unsigned char)*text), text + 1);
	else
		emit_title(out, "%s", text);
	emit_line(out, "%s", "");
	findings(doc->diff, out, most ? most : SIZE_MAX);
	sum(doc->diff, out);
	emit_fold(out, "By class, phase, module and line");
	tables_by_time(&doc->row, out);
	tables_by_place(doc, out, most);
	if (comment) {
		emit_line(out, "%s", "");
		sides(doc->diff, out);
	}
	emit_fold_end(out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for a terminal: the two sides, the peak, the findings, then tables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../answers/parts.h"
#include "../base/human.h"
#include "diff_document.h"

#define WIDTH 79

static void side(struct emit *out, const char *name, const struct diff_side *s)
{
	char commit[32], command[1024], text[1024], head[300];
	int room = WIDTH - snprintf(head, sizeof(head), "%s  %.240s  |  %s", name,
				    owners_base(s->recording.path),
				    diff_commit(s, commit, sizeof(commit)));

	command_words(&s->recording.defs, command, sizeof(command));
	words_within(command, text, sizeof(text), room > 13 ? (size_t)room - 5 : 8);
	emit_line(out, "%s%s%s", head, command[0] ? "  |  " : "", text);
}

static void head(const struct diff *d, struct emit *out)
{
	struct diff_ground g;
	char text[400];

	side(out, "old", &d->old);
	side(out, "new", &d->new);
	for (size_t at = 0; diff_ground(d, &at, &g);)
		emit_line(out, "     besides: %s %.30s -> %.30s", g.what, g.old[0] ? g.old : "none",
			  g.new[0] ? g.new : "none");
	emit_line(out, "%s", "");
	emit_title(out, "%s", diff_headline(d, text, sizeof(text)));
	emit_line(out, "%s", "");
}

/* Words of the text on lines of WIDTH columns, the first with its number. */
static void wrap(struct emit *out, const char *mark, const char *text)
{
	const char *lead = mark;

	while (*text) {
		size_t room = WIDTH - 4, len = strlen(text), cut = len < room ? len : room;

		while (len > room && cut && text[cut] != ' ')
			cut--;
		cut = cut ? cut : room;
		emit_line(out, "%3s %.*s", lead, (int)cut, text);
		text += cut;
		text += strspn(text, " ");
		lead = "";
	}
}

static void findings(const struct diff *d, struct emit *out, size_t most)
{
	char mark[24];

	if (!d->count) {
		emit_line(out, "Nothing differs.");
		return;
	}
	for (size_t i = 0; i < d->count && i < most; i++) {
		snprintf(mark, sizeof(mark), "%zu.", i + 1);
		wrap(out, mark, d->findings[i].text);
	}
	if (most < d->count)
		emit_left_out(out, "    ", d->count - most);
}

static void tables_by_time(const struct row_diff *row, struct emit *out)
{
	static const struct text_column classes[] =
		DIFF_COLUMNS("class, each at its own peak", diff_class, class);
	static const struct text_column phases[] = DIFF_COLUMNS("highest in", diff_phase, words);

	emit_line(out, "%s", "");
	emit_columns(out, diff_class, &row->classes, classes, 0);
	emit_line(out, "%s", "");
	emit_columns(out, diff_phase, &row->phases, phases, 0);
}

/* What changed most; nothing if nothing did. */
static void tables_by_place(const struct diff_document *doc, struct emit *out, size_t most)
{
	static const struct text_column modules[] =
		DIFF_COLUMNS("module", diff_module, module, .room = DIFF_NAME, .style = COLUMN_END);
	static const struct text_column lines[] = DIFF_COLUMNS("line", diff_line, words);
	const struct diff_module *m = doc->modules.items;
	const struct diff_line *l = doc->lines.items;

	if (doc->modules.count && m->bytes_old != m->bytes_new) {
		emit_line(out, "%s", "");
		emit_columns(out, diff_module, &doc->row.modules, modules, most);
	}
	if (doc->lines.count && l->bytes_old != l->bytes_new) {
		emit_line(out, "%s", "");
		emit_columns(out, diff_line, &doc->row.lines, lines, most);
	}
}

void diff_text(const struct diff_document *doc, struct emit *out, long top)
{
	size_t most = top > 0 ? (size_t)top : 0;

	head(doc->diff, out);
	findings(doc->diff, out, most ? most : SIZE_MAX);
	tables_by_time(&doc->row, out);
	tables_by_place(doc, out, most);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for a terminal: the two sides, the peak, the findings, then tables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../answers/parts.h"
#include "../base/human.h"
#include "diff.h"

#define WIDTH 79
#define NAME  38 /* columns of the first column of a table */

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

static void title(struct emit *out, const char *what)
{
	emit_line(out, "%s", "");
	emit_title(out, "  %-*s %11s %11s %12s", NAME, what, "old", "new", "change");
}

static void row(struct emit *out, const char *name, uint64_t before, uint64_t after)
{
	char a[HUMAN_MAX], b[HUMAN_MAX], c[48];

	emit_line(out, "  %-*s %11s %11s %12s", NAME, name, human_bytes(a, before),
		  human_bytes(b, after), diff_change(c, before, after));
}

static void tables_by_time(const struct diff *d, struct emit *out)
{
	title(out, "class, each at its own peak");
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (d->old_peak.bytes[c] || d->new_peak.bytes[c])
			row(out, category_words(c), d->old_peak.bytes[c], d->new_peak.bytes[c]);
	title(out, "highest in");
	for (int p = 0; p < PHASES; p++) {
		const struct span *old = diff_highest(&d->old, p), *new = diff_highest(&d->new, p);

		if (old || new)
			row(out, phase_text(p), old ? old->extent.peak : 0,
			    new ? new->extent.peak : 0);
	}
}

static void table_of_modules(const struct diff *d, struct emit *out, size_t most)
{
	struct diff_modules m = diff_modules(d);
	char name[1024];

	for (size_t i = 0; i < m.count && i < most; i++) {
		if (m.items[i].bytes_old == m.items[i].bytes_new)
			break;
		if (!i)
			title(out, "module");
		row(out, words_end(m.items[i].path, name, sizeof(name), NAME), m.items[i].bytes_old,
		    m.items[i].bytes_new);
	}
	diff_modules_free(&m);
}

static void table_of_lines(const struct diff *d, struct emit *out, size_t most)
{
	struct diff_lines l = diff_lines(d);

	for (size_t i = 0; i < l.count && i < most; i++) {
		const struct diff_line *x = &l.items[i];
		const struct owner *o = diff_line_owner(x);
		char name[OWNER_WORDS + 48], who[OWNER_WORDS];
		const char *class = category_words(x->category);
		size_t left = NAME - 1 - strlen(class);

		if (x->bytes_old == x->bytes_new)
			break;
		if (!i)
			title(out, "line");
		if (o->file[0])
			owner_place(o, who, sizeof(who), left);
		else
			words_within(o->function[0] ? o->function : "(no stack)", who, sizeof(who),
				     left);
		snprintf(name, sizeof(name), "%s %s", who, class);
		row(out, name, x->bytes_old, x->bytes_new);
	}
	diff_lines_free(&l);
}

void diff_text(const struct diff *d, struct emit *out, long top)
{
	size_t most = top > 0 ? (size_t)top : SIZE_MAX;

	head(d, out);
	findings(d, out, most);
	tables_by_time(d, out);
	table_of_modules(d, out, most);
	table_of_lines(d, out, most);
}

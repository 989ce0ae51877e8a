/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for a terminal: the two sides, the peak, the findings, then tables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/human.h"
#include "diff.h"

#define WIDTH 79
#define NAME  38 /* columns of the first column of a table */

static void side(struct emit *out, const char *name, const struct diff_side *s)
{
	char commit[32], command[200];

	diff_command(s, command, sizeof(command));
	emit_line(out, "%s  %.30s  |  %s  |  %.40s", name, owners_base(s->recording.path),
		  diff_commit(s, commit, sizeof(commit)), command);
}

static void head(const struct diff *d, struct emit *out)
{
	enum phase before = diff_phase_at(&d->old, d->old.peak_seq);
	enum phase after = diff_phase_at(&d->new, d->new.peak_seq);
	char a[HUMAN_MAX], b[HUMAN_MAX], c[48], p[48];

	side(out, "old", &d->old);
	side(out, "new", &d->new);
	emit_line(out, "%s", "");
	diff_percent(p, d->old.peak, d->new.peak);
	emit_title(out, "Peak %s -> %s: %s%s%s%s, in the %s%s%s", human_bytes(a, d->old.peak),
		   human_bytes(b, d->new.peak), diff_change(c, d->old.peak, d->new.peak),
		   d->old.peak && d->old.peak != d->new.peak ? " (" : "",
		   d->old.peak && d->old.peak != d->new.peak ? p : "",
		   d->old.peak && d->old.peak != d->new.peak ? ")" : "", phase_text(before),
		   before == after ? "" : ", now in the ",
		   before == after ? "" : phase_text(after));
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
		emit_line(out, "    ... and %zu smaller ones (--top 0 shows all)", d->count - most);
}

static void title(struct emit *out, const char *what)
{
	emit_line(out, "%s", "");
	emit_title(out, "  %-*s %11s %11s %12s", NAME, what, "old", "new", "change");
}

static void row(struct emit *out, const char *name, uint64_t before, uint64_t after)
{
	char a[HUMAN_MAX], b[HUMAN_MAX], c[48];

	emit_line(out, "  %-*.*s %11s %11s %12s", NAME, NAME, name, human_bytes(a, before),
		  human_bytes(b, after), diff_change(c, before, after));
}

static void tables_by_time(const struct diff *d, struct emit *out)
{
	title(out, "class, each at its own peak");
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (d->old_classes[c] || d->new_classes[c])
			row(out, category_words(c), d->old_classes[c], d->new_classes[c]);
	title(out, "highest in");
	for (int p = 0; p < PHASES; p++) {
		const struct span *old = diff_highest(&d->old, p), *new = diff_highest(&d->new, p);

		if (old || new)
			row(out, phase_text(p), old ? old->extent.peak : 0,
			    new ? new->extent.peak : 0);
	}
}

static void tables_by_place(const struct diff *d, struct emit *out, size_t most)
{
	struct diff_modules m = diff_modules(d);
	size_t count, *lines = diff_lines(d, &count);

	if (m.count)
		title(out, "module");
	for (size_t i = 0; i < m.count && i < most; i++)
		row(out, m.items[i].path, m.items[i].bytes_old, m.items[i].bytes_new);
	if (count)
		title(out, "line");
	for (size_t i = 0; i < count && i < most; i++) {
		const struct diff_pair *p = &d->pairs[lines[i]];
		const struct owner *o = diff_owner(p);
		char name[160];

		if (o->file[0])
			snprintf(name, sizeof(name), "%.22s:%u %.40s", owners_base(o->file),
				 o->line, category_words(p->category));
		else
			snprintf(name, sizeof(name), "%.22s %.40s", o->function,
				 category_words(p->category));
		row(out, name, p->bytes_old, p->bytes_new);
	}
	free(lines);
	diff_modules_free(&m);
}

void diff_text(const struct diff *d, struct emit *out, long top)
{
	size_t most = top > 0 ? (size_t)top : SIZE_MAX;

	head(d, out);
	findings(d, out, most);
	tables_by_time(d, out);
	tables_by_place(d, out, most);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as a comment of a pull request: the peak, the findings, the classes folded away.
 * Names of the program stand there as text: what Markdown or HTML would take for markup is escaped.
 */
#include <string.h>

#include "../base/human.h"
#include "../stacks/owner_words.h"
#include "diff_document.h"

static void side(struct emit *out, const char *name, const struct diff_side *s)
{
	char commit[32], command[200];

	emit_raw(out, "- %s: %s, ", name, diff_commit(s, commit, sizeof(commit)));
	emit_markdown(out, command_words(&s->recording.defs, command, sizeof(command)));
	emit_raw(out, ", in ");
	emit_markdown(out, owners_base(s->recording.path));
	emit_raw(out, "\n");
}

static void besides(struct emit *out, const struct diff *d)
{
	struct diff_ground g;

	for (size_t at = 0; diff_ground(d, &at, &g);) {
		emit_raw(out, "- besides: ");
		emit_markdown(out, g.what);
		emit_raw(out, " ");
		emit_markdown(out, g.old[0] ? g.old : "none");
		emit_raw(out, " -> ");
		emit_markdown(out, g.new[0] ? g.new : "none");
		emit_raw(out, "\n");
	}
}

static void head(const struct diff *d, struct emit *out)
{
	enum phase before = diff_phase_at(&d->old, d->old.peak_seq);
	enum phase after = diff_phase_at(&d->new, d->new.peak_seq);
	char a[HUMAN_MAX], b[HUMAN_MAX], c[48], p[48] = "";
	const char *percent = diff_percent(p, d->old.peak, d->new.peak);

	emit_raw(out, "### GPU memory: peak %s -> %s, %s%s%s%s\n\n", human_bytes(a, d->old.peak),
		 human_bytes(b, d->new.peak), diff_change(c, d->old.peak, d->new.peak),
		 percent[0] ? " (" : "", percent, percent[0] ? ")" : "");
	if (before != after)
		emit_raw(out, "The peak was in the %s and is in the %s.\n\n", phase_noun(before),
			 phase_noun(after));
}

static void findings(const struct diff *d, struct emit *out, size_t most)
{
	if (!d->count)
		emit_raw(out, "Nothing differs.\n");
	for (size_t i = 0; i < d->count && i < most; i++) {
		emit_raw(out, "%zu. ", i + 1);
		emit_markdown(out, d->findings[i].text);
		emit_raw(out, "\n");
	}
	if (most < d->count)
		emit_raw(out, "\nSmaller ones that are left out: %zu.\n", d->count - most);
}

void diff_markdown(const struct diff_document *doc, struct emit *out, long top)
{
	static const struct text_column classes[] =
		DIFF_COLUMNS("class, each at its own peak", diff_class, class);
	static const struct text_column phases[] = DIFF_COLUMNS("highest in", diff_phase, words);
	const struct diff *d = doc->diff;

	head(d, out);
	findings(d, out, top > 0 ? (size_t)top : SIZE_MAX);
	emit_raw(out, "\n<details><summary>By class and phase</summary>\n\n");
	emit_markdown_columns(out, diff_class, &doc->row.classes, classes, 0);
	emit_raw(out, "\n");
	emit_markdown_columns(out, diff_phase, &doc->row.phases, phases, 0);
	emit_raw(out, "\n");
	side(out, "old", &d->old);
	side(out, "new", &d->new);
	besides(out, d);
	emit_raw(out, "\n</details>\n");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as a comment of a pull request: the peak, the findings, the classes folded away.
 * Names of the program stand there as text: what Markdown or HTML would take for markup is escaped.
 */
#include <string.h>

#include "../base/emit_json.h"
#include "../base/human.h"
#include "../stacks/owner_words.h"
#include "diff.h"

/* Escaped, a character at a time; what cannot be shown becomes a space. */
static void plain(struct emit *out, const char *text)
{
	for (size_t left = strlen(text), n; left; text += n, left -= n) {
		size_t shown = emit_plain_char(text, left);

		n = shown ? shown : 1;
		if (strchr("<>&@", *text))
			emit_raw(out, "&#%u;", (unsigned)*text);
		else if (strchr("\\`*_{}[]#|~$!", *text))
			emit_raw(out, "\\%c", *text);
		else
			emit_raw(out, "%.*s", (int)n, shown ? text : " ");
	}
}

static void row(struct emit *out, const char *name, uint64_t before, uint64_t after)
{
	char a[HUMAN_MAX], b[HUMAN_MAX], c[48];

	emit_raw(out, "| %s | %s | %s | %s |\n", name, human_bytes(a, before),
		 human_bytes(b, after), diff_change(c, before, after));
}

static void side(struct emit *out, const char *name, const struct diff_side *s)
{
	char commit[32], command[200];

	emit_raw(out, "- %s: %s, ", name, diff_commit(s, commit, sizeof(commit)));
	plain(out, command_words(&s->recording.defs, command, sizeof(command)));
	emit_raw(out, ", in ");
	plain(out, owners_base(s->recording.path));
	emit_raw(out, "\n");
}

static void besides(struct emit *out, const struct diff *d)
{
	struct diff_ground g;

	for (size_t at = 0; diff_ground(d, &at, &g);) {
		emit_raw(out, "- besides: ");
		plain(out, g.what);
		emit_raw(out, " ");
		plain(out, g.old[0] ? g.old : "none");
		emit_raw(out, " -> ");
		plain(out, g.new[0] ? g.new : "none");
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
		plain(out, d->findings[i].text);
		emit_raw(out, "\n");
	}
	if (most < d->count)
		emit_raw(out, "\nSmaller ones that are left out: %zu.\n", d->count - most);
}

static void table(struct emit *out, const char *what)
{
	emit_raw(out, "\n| %s | old | new | change |\n|---|---:|---:|---:|\n", what);
}

void diff_markdown(const struct diff *d, struct emit *out, long top)
{
	head(d, out);
	findings(d, out, top > 0 ? (size_t)top : SIZE_MAX);
	emit_raw(out, "\n<details><summary>By class and phase</summary>\n");
	table(out, "class, each at its own peak");
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (d->old_peak.bytes[c] || d->new_peak.bytes[c])
			row(out, category_words(c), d->old_peak.bytes[c], d->new_peak.bytes[c]);
	table(out, "highest in");
	for (int p = 0; p < PHASES; p++) {
		const struct span *old = diff_highest(&d->old, p), *new = diff_highest(&d->new, p);

		if (old || new)
			row(out, phase_text(p), old ? old->extent.peak : 0,
			    new ? new->extent.peak : 0);
	}
	emit_raw(out, "\n");
	side(out, "old", &d->old);
	side(out, "new", &d->new);
	besides(out, d);
	emit_raw(out, "\n</details>\n");
}

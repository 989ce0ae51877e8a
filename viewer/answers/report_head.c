/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a report: program, duration, commit, framework and device. */
#include "../base/human.h"
#include "parts.h"
#include "report.h"

#define WIDTH 79

/* A line that is filled part by part; a part that does not fit begins the next line. */
struct line {
	struct emit *out;
	char text[512];
	size_t len;
};

static void flush(struct line *l)
{
	if (l->len)
		emit_line(l->out, "%s", l->text);
	l->len = 0;
}

__attribute__((format(printf, 2, 3))) static void put_part(struct line *l, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (l->len && l->len + 5 + strlen(text) > WIDTH)
		flush(l);
	l->len += snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s",
			   l->len ? "  |  " : "", text);
	if (l->len >= sizeof(l->text))
		l->len = sizeof(l->text) - 1;
}

/* A command longer than a line gets lines of its own. */
static void command_part(struct line *l, const struct defs *d)
{
	char text[2048], shown[2048];

	command_words(d, text, sizeof(text));
	if (strlen(text) <= WIDTH) {
		if (text[0])
			put_part(l, "%s", text);
		return;
	}
	words_within(text, shown, sizeof(shown), 4 * WIDTH);
	emit_paragraph(l->out, "", "  ", shown);
}

static void git_part(struct line *l, const struct defs *d)
{
	struct defs_text commit = defs_meta(d, "git.commit");
	struct defs_text folder = defs_meta(d, "git.cwd_commit");

	if (commit.len || folder.len)
		put_part(l, "%s%.7s%s%.7s", commit.len ? "commit " : "no commit", commit.s,
			 folder.len ? ", folder at " : "", folder.s);
}

static void versions_part(struct line *l, const struct report *r)
{
	const struct defs *d = &r->timeline.recording->defs;
	struct defs_text torch = defs_meta(d, "torch.version");
	char device[80];

	device_words(d, r->timeline.device, device, sizeof(device));
	if (torch.len || device[0])
		put_part(l, "%s%.20s%s%s", torch.len ? "torch " : "", torch.s,
			 torch.len && device[0] ? ", " : "", device);
}

void report_head(const struct report *r, struct emit *out)
{
	struct line l = { .out = out };
	const struct model *m = &r->timeline.model;
	struct defs_text source = defs_meta(&r->timeline.recording->defs, "source");
	char t[HUMAN_MAX];

	command_part(&l, &r->timeline.recording->defs);
	human_seconds(t, m->last_ns - m->first_ns);
	if (steps_number(&r->timeline.steps))
		put_part(&l, "%s in %s%s", MANY(steps_number(&r->timeline.steps), "step"), t,
			 r->timeline.steps.basis == STEPS_FORWARD ? " (each one call of a module)"
								  : "");
	else
		put_part(&l, "%s", moments_state_only(m) ? "a state at one moment" : t);
	git_part(&l, &r->timeline.recording->defs);
	versions_part(&l, r);
	if (source.len)
		put_part(&l, "a %.*s: gpumemtrace info says what it lacks",
			 (int)(source.len < 40 ? source.len : 40), source.s);
	flush(&l);
	emit_line(out, "%s", "");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as JSON. */
#include <stdlib.h>
#include <string.h>

#include "../answers/parts.h"
#include "../base/need.h"
#include "diff.h"

/* argv as recorded: each argument ends with a zero. */
static void command(const struct diff_side *s, struct emit *out)
{
	struct defs_text argv = defs_meta(&s->recording.defs, "argv");
	const char *from = argv.len ? owners_base(argv.s) : argv.s;
	size_t len = (size_t)(argv.s + argv.len - from);
	char *text = need_copy(from, len);

	while (len && !text[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		text[i] = text[i] ? text[i] : ' ';
	emit_bytes(out, "command", text, len);
	free(text);
}

static void json_side(struct emit *out, const char *key, const struct diff_side *s,
		      const struct diff_shot *shot)
{
	const struct defs *defs = &s->recording.defs;
	struct defs_text commit = defs_meta(defs, "git.commit");
	struct defs_text branch = defs_meta(defs, "git.branch");

	emit_object(out, key);
	emit_text(out, "file", s->recording.path);
	emit_bytes(out, "commit", commit.s, commit.len);
	emit_bytes(out, "branch", branch.s, branch.len);
	command(s, out);
	emit_signed(out, "device", s->timeline.device);
	emit_number(out, "steps", steps_number(&s->timeline.steps));
	emit_number(out, "peak_bytes", s->peak);
	emit_object(out, "compared");
	emit_number(out, "time_ns", shot->time_ns);
	emit_number(out, "step", shot->step);
	emit_text(out, "phase", phase_name(shot->phase));
	emit_number(out, "bytes", shot->total);
	emit_end(out);
	emit_end(out);
}

static void json_bytes(struct emit *out, uint64_t before, uint64_t after)
{
	emit_number(out, "bytes_old", before);
	emit_number(out, "bytes_new", after);
	emit_signed(out, "delta", (int64_t)(after - before));
}

static void json_owner(struct emit *out, unsigned category, const struct owner *o)
{
	emit_text(out, "class", category_name(category));
	emit_owner(out, o);
}

static void json_pair(struct emit *out, const struct diff_pair *p)
{
	const struct diff_site *site = p->new_site ? p->new_site : p->old_site;

	emit_object(out, NULL);
	json_owner(out, p->category, diff_owner(p));
	emit_text(out, "module", site->module);
	json_bytes(out, p->bytes_old, p->bytes_new);
	emit_number(out, "blocks_old", p->blocks_old);
	emit_number(out, "blocks_new", p->blocks_new);
	emit_end(out);
}

static void json_finding(struct emit *out, const struct diff *d, const struct diff_finding *f)
{
	emit_object(out, NULL);
	emit_text(out, "kind", diff_kind_name(f->kind));
	json_owner(out, f->category, &f->owner);
	json_bytes(out, f->bytes_old, f->bytes_new);
	emit_text(out, "text", f->text);
	emit_text(out, "cause", diff_cause_name(f->cause));
	emit_array(out, "parts");
	for (size_t i = 0; f->kind != DIFF_MOVED && i < d->pair_count; i++)
		if (d->pairs[i].finding == f->id)
			json_pair(out, &d->pairs[i]);
	emit_end(out);
	emit_end(out);
}

static void json_classes(struct emit *out, const struct diff *d)
{
	emit_array(out, "classes");
	for (unsigned c = 0; c < CATEGORIES; c++) {
		if (!d->old_peak.bytes[c] && !d->new_peak.bytes[c])
			continue;
		emit_object(out, NULL);
		emit_text(out, "class", category_name(c));
		json_bytes(out, d->old_peak.bytes[c], d->new_peak.bytes[c]);
		emit_end(out);
	}
	emit_end(out);
}

static void json_phases(struct emit *out, const struct diff *d)
{
	emit_array(out, "phases");
	for (int p = 0; p < PHASES; p++) {
		const struct span *old = diff_highest(&d->old, p), *new = diff_highest(&d->new, p);

		if (!old && !new)
			continue;
		emit_object(out, NULL);
		emit_text(out, "phase", phase_name(p));
		json_bytes(out, old ? old->extent.peak : 0, new ? new->extent.peak : 0);
		emit_end(out);
	}
	emit_end(out);
}

static void json_modules(struct emit *out, const struct diff *d)
{
	struct diff_modules m = diff_modules(d);

	emit_array(out, "modules");
	for (size_t i = 0; i < m.count; i++) {
		if (m.items[i].bytes_old == m.items[i].bytes_new)
			break;
		emit_object(out, NULL);
		emit_text(out, "module", m.items[i].path);
		json_bytes(out, m.items[i].bytes_old, m.items[i].bytes_new);
		emit_end(out);
	}
	emit_end(out);
	diff_modules_free(&m);
}

static void json_lines(struct emit *out, const struct diff *d)
{
	struct diff_lines l = diff_lines(d);

	emit_array(out, "lines");
	for (size_t i = 0; i < l.count; i++) {
		const struct diff_line *x = &l.items[i];

		if (x->bytes_old == x->bytes_new)
			break;
		emit_object(out, NULL);
		json_owner(out, x->category, diff_line_owner(x));
		json_bytes(out, x->bytes_old, x->bytes_new);
		emit_number(out, "blocks_old", x->blocks_old);
		emit_number(out, "blocks_new", x->blocks_new);
		emit_end(out);
	}
	emit_end(out);
	diff_lines_free(&l);
}

/* What differs besides the program. */
static void json_grounds(struct emit *out, const struct diff *d)
{
	struct diff_ground g;

	emit_array(out, "besides");
	for (size_t at = 0; diff_ground(d, &at, &g);) {
		emit_object(out, NULL);
		emit_text(out, "what", g.what);
		emit_text(out, "old", g.old);
		emit_text(out, "new", g.new);
		emit_end(out);
	}
	emit_end(out);
}

void diff_json(const struct diff *d, struct emit *out)
{
	emit_object(out, NULL);
	emit_number(out, "peak_old", d->old.peak);
	emit_number(out, "peak_new", d->new.peak);
	emit_signed(out, "delta", (int64_t)(d->new.peak - d->old.peak));
	emit_text(out, "peak_phase_old", phase_name(diff_phase_at(&d->old, d->old.peak_seq)));
	emit_text(out, "peak_phase_new", phase_name(diff_phase_at(&d->new, d->new.peak_seq)));
	json_side(out, "old", &d->old, &d->old_shot);
	json_side(out, "new", &d->new, &d->new_shot);
	json_grounds(out, d);
	emit_array(out, "findings");
	for (size_t i = 0; i < d->count; i++)
		json_finding(out, d, &d->findings[i]);
	emit_end(out);
	json_classes(out, d);
	json_phases(out, d);
	json_modules(out, d);
	json_lines(out, d);
	emit_end(out);
}

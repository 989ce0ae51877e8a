/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as the document of a page: both runs over time, the findings, the tables. Call paths
 * are in diff_page_stacks.c. Every part has a limit; rows beyond it are counted and reported.
 */

#include "diff_page.h"

enum { MODULE_ROWS = 2000, LINE_ROWS = 5000 };

static void emit_shot(struct page *p, const char *key, const struct diff_shot *shot)
{
	emit_object(p->out, key);
	emit_number(p->out, "seq", shot->seq);
	emit_number(p->out, "time_ns", shot->time_ns);
	emit_number(p->out, "bytes", shot->total);
	emit_number(p->out, "step", shot->step);
	emit_number(p->out, "phase", shot->phase);
	emit_end(p->out);
}

static void emit_besides(struct page *p, const struct diff *d)
{
	struct diff_ground grounds[DIFF_GROUNDS];

	emit_array(p->first, "besides");
	FOR_EACH (const struct diff_ground, g, grounds, diff_grounds(d, grounds)) {
		emit_array(p->first, NULL);
		emit_text(p->first, NULL, g->what);
		emit_number(p->first, NULL, names_word(&p->words, g->old));
		emit_number(p->first, NULL, names_word(&p->words, g->new));
		emit_end(p->first);
	}
	emit_end(p->first);
}

static void emit_findings(struct page *p, const struct diff *d)
{
	size_t rows = d->count < DIFF_PAGE_FINDINGS ? d->count : DIFF_PAGE_FINDINGS;

	emit_array(p->first, "findings");
	FOR_EACH (const struct diff_finding, f, d->findings, rows) {
		emit_object(p->first, NULL);
		emit_text(p->first, "kind", diff_kind_name(f->kind));
		emit_number(p->first, "category", f->category);
		emit_number(p->first, "text", names_word(&p->words, f->text));
		emit_number(p->first, "old", f->bytes_old);
		emit_number(p->first, "new", f->bytes_new);
		emit_end(p->first);
	}
	emit_end(p->first);
	emit_number(p->first, "findings_left_out", d->count - rows);
}

/* The most important parts are in the first document, which is drawn before the rest is read. */
static void emit_head(struct page *p, const struct diff *d)
{
	char text[DIFF_NOT_COMPARED];

	emit_object(p->first, "head");
	emit_number(p->first, "headline",
		    names_word(&p->words, diff_headline(d, text, sizeof(text))));
	emit_number(p->first, "not_compared",
		    names_word(&p->words, diff_not_compared(d, text, sizeof(text))));
	emit_besides(p, d);
	emit_findings(p, d);
	emit_end(p->first);
}

static void emit_times(struct page *p, const struct diff *d)
{
	struct bytes classes = { 0 }, highest = { 0 };

	for (unsigned c = 0; c < CATEGORIES; c++)
		if (d->old.at_peak.bytes[c] || d->new.at_peak.bytes[c])
			column_row(&classes, c, d->old.at_peak.bytes[c], d->new.at_peak.bytes[c]);
	for (int i = 0; i < PHASES; i++) {
		const struct span *old = diff_highest(&d->old, i), *new = diff_highest(&d->new, i);

		if (old || new)
			column_row(&highest, (uint64_t)i, old ? old->extent.peak : 0,
				   new ? new->extent.peak : 0);
	}
	column_emit(&classes, p->out, "classes");
	column_emit(&highest, p->out, "phases");
}

static void emit_modules(struct page *p, const struct diff *d)
{
	struct diff_groups m = diff_group(d, DIFF_BY_MODULE);
	size_t rows = m.count < MODULE_ROWS ? m.count : MODULE_ROWS;
	struct bytes c = { 0 };

	FOR_EACH (const struct diff_group, x, m.items, rows)
		column_row(&c, names_word(&p->names, x->module), x->bytes_old, x->bytes_new);
	column_emit(&c, p->out, "modules");
	emit_number(p->out, "modules_left_out", m.count - rows);
	diff_groups_free(&m);
}

static void put_owner(struct page *p, struct bytes *c, const struct diff_site *site)
{
	static const struct owner no_owner = { .function = "", .file = "" };
	const struct owner *o = site ? &site->owner : &no_owner;

	uint64_t function = names_word(&p->names, o->function);

	column_row(c, function, names_path(&p->names, o->file), o->line, o->backward);
}

static void emit_all_lines(struct page *p, const struct diff *d)
{
	struct diff_groups l = diff_group(d, DIFF_BY_LINE);
	size_t room = page_room(p, LINE_ROWS, 100), rows = l.count < room ? l.count : room;
	struct bytes c = { 0 };

	FOR_EACH (const struct diff_group, x, l.items, rows) {
		bytes_varint(&c, x->category);
		put_owner(p, &c, x->old_site);
		put_owner(p, &c, x->new_site);
		column_row(&c, x->bytes_old, x->bytes_new, x->blocks_old, x->blocks_new);
	}
	column_emit(&c, p->out, "lines");
	emit_number(p->out, "lines_left_out", l.count - rows);
	diff_groups_free(&l);
}

static void write_tracks(struct page *p, struct diff *d)
{
	p->tracks = 2;
	emit_array(p->first, "tracks");
	emit_array(p->out, "tracks");
	track_write(p, &d->old.timeline, TRACK_CURVE);
	track_write(p, &d->new.timeline, TRACK_CURVE);
	emit_end(p->first);
	emit_end(p->out);
}

static void write_document(struct page *p, void *ctx)
{
	struct diff *d = ctx;

	write_tracks(p, d);
	emit_head(p, d);
	emit_object(p->out, "diff");
	emit_shot(p, "old", &d->old.shot);
	emit_shot(p, "new", &d->new.shot);
	emit_flag(p->out, "below_peak", d->below_peak);
	emit_times(p, d);
	emit_modules(p, d);
	emit_all_lines(p, d);
	diff_stacks_emit(p, d);
	emit_end(p->out);
}

static void redact_side(struct diff_side *s, struct redact *r)
{
	struct owners *known = &s->timeline.owners;

	redact_recording(r, &s->recording);
	for (size_t i = 0; i < known->found.count; i++)
		known->found.items[i].file = redact_path(r, known->found.items[i].file);
	for (size_t i = 0; i < s->function_count; i++)
		s->functions[i].file = redact_path(r, s->functions[i].file);
	for (size_t i = 0; i < s->site_count; i++)
		s->sites[i].owner.file = redact_path(r, s->sites[i].owner.file);
	for (size_t i = 0; i < s->leaks.count; i++)
		s->leaks.items[i].owner.file = redact_path(r, s->leaks.items[i].owner.file);
}

/* Replaces the names of files, and makes the findings' sentences again with the new names. */
static void redact_all(struct diff *d, struct redact *r)
{
	redact_side(&d->old, r);
	redact_side(&d->new, r);
	for (size_t i = 0; i < d->count; i++) {
		d->findings[i].owner.file = redact_path(r, d->findings[i].owner.file);
		diff_say(d, &d->findings[i]);
	}
}

void diff_page(struct diff *d, struct page_text *text, struct redact *redact)
{
	if (redact)
		redact_all(d, redact);
	page_make(text, redact, write_document, d);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The findings that `report` prints first, on top of the page. */
#include "page.h"

void page_summary_find(struct track *t)
{
	const char *file = t->page->redact ? "FILE" : t->recording->path;
	struct values v;

	values_find(&v, &t->timeline->model.reads, &t->timeline->owners);
	summary_find(&t->summary, t->timeline, &v, file);
	values_free(&v);
	FOR_EACH (const struct matter, m, t->summary.items, t->summary.count)
		if (m->seq) /* the page has all blocks of this moment */
			t->blocks.keys[t->blocks.key_count++] = (struct key_moment){
				.seq = m->seq, .time_ns = m->time_ns, .name = "finding"
			};
}

/* Emits texts in full: they are never cut. */
void page_summary_emit(struct track *t)
{
	struct emit *out = t->page->first;

	emit_array(out, "summary");
	FOR_EACH (const struct matter, m, t->summary.items, t->summary.count) {
		emit_object(out, NULL);
		emit_text(out, "kind", m->kind);
		emit_number(out, "bytes", m->bytes);
		emit_text(out, "text", m->text);
		emit_text(out, "action", m->action);
		names_owner(&t->page->words, out, &m->owner);
		emit_number(out, "seq", m->seq);
		emit_number(out, "time_ns", m->time_ns);
		emit_end(out);
	}
	emit_end(out);
}

/* Growth from step to step, as reported by `leaks`. */

enum { LINES = 40 };

static void emit_leak(struct track *t, const struct leak *l)
{
	struct emit *out = t->page->out;

	emit_object(out, NULL);
	emit_number(out, "category", l->category);
	names_owner(&t->page->names, out, &l->owner);
	emit_number(out, "bytes_per_step", l->bytes_per_step);
	emit_number(out, "bytes", l->bytes);
	emit_number(out, "blocks", l->blocks);
	if (l->blocks) {
		emit_number(out, "first_step", l->first_step);
		emit_number(out, "latest_step", l->latest_step);
		emit_number(out, "latest", l->latest.seq);
	}
	emit_end(out);
}

void page_leaks_emit(struct track *t)
{
	struct emit *out = t->page->out;
	const struct leaks *leaks = t->summary.leaks;

	if (!leaks || t->timeline->steps.count < 4)
		return;
	emit_object(out, "leaks");
	emit_number(out, "from_step", leaks->from_step);
	emit_number(out, "to_step", leaks->to_step);
	emit_number(out, "bytes_per_step", leaks->bytes_per_step);
	emit_number(out, "left_out", leaks->count > LINES ? leaks->count - LINES : 0);
	emit_array(out, "lines");
	for (size_t i = 0; i < leaks->count && i < LINES; i++)
		emit_leak(t, &leaks->items[i]);
	emit_end(out);
	emit_end(out);
}

/* The last time that memory ran out, and what would have made room, as in `oom`. */

static void emit_remedies(struct track *t, const struct oom_answer *a)
{
	struct emit *out = t->page->out;

	emit_array(out, "remedies");
	FOR_EACH (const struct oom_remedy, r, a->remedies, a->count) {
		emit_object(out, NULL);
		emit_number(out, "what", names_word(&t->page->names, r->what));
		emit_number(out, "how", names_word(&t->page->names, r->how));
		emit_number(out, "saves", r->saves);
		emit_flag(out, "atMost", r->at_most);
		emit_flag(out, "enough", r->enough);
		emit_end(out);
	}
	emit_end(out);
}

void page_oom_emit(struct track *t)
{
	const struct oom_answer *a = &t->summary.answer;
	const struct oom *o = a->oom;
	struct emit *out = t->page->out;

	if (!o)
		return;
	emit_object(out, "oom");
	emit_number(out, "seq", o->refusal.event.seq);
	emit_text(out, "cause", oom_cause_name(a->cause));
	emit_number(out, "asked", o->asked);
	emit_number(out, "block", o->block);
	emit_text(out, "request", oom_request_words(o));
	page_apart_emit(out, &t->page->names, &o->pools, &o->room);
	emit_remedies(t, a);
	emit_end(out);
}

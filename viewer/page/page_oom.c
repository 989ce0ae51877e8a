/* SPDX-License-Identifier: Apache-2.0 */
/* The last time that memory ran out, and what would have made room, as `oom` says it. */
#include "page.h"

static void emit_remedies(struct track *t, const struct oom_answer *a)
{
	struct emit *out = t->page->out;

	emit_array(out, "remedies");
	for (size_t i = 0; i < a->count; i++) {
		const struct oom_remedy *r = &a->remedies[i];

		emit_object(out, NULL);
		emit_number(out, "what", names_word(&t->page->names, r->what));
		emit_number(out, "how", names_word(&t->page->names, r->how));
		emit_number(out, "saves", r->saves);
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
	page_apart_emit(out, &t->page->names, &o->pools, &o->room);
	emit_remedies(t, a);
	emit_end(out);
}

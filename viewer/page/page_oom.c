/* SPDX-License-Identifier: Apache-2.0 */
/* Why memory ran out the last time, and what would have made room, as `oom` says it. */
#include "../oom/oom.h"
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
	struct refusal refusal;
	struct emit *out = t->page->out;
	struct oom_answer a;
	struct oom o = { 0 };

	if (!t->ooms || !refusals_find(&refusal, &t->timeline->model.lives, 0) ||
	    refusal.event.device != t->timeline->device)
		return;
	oom_look(&o, t->timeline, &refusal);
	oom_answer(&a, &o);
	emit_object(out, "oom");
	emit_number(out, "seq", refusal.event.seq);
	emit_text(out, "cause", oom_cause_name(a.cause));
	emit_number(out, "asked", o.asked);
	emit_number(out, "block", o.block);
	emit_number(out, "why", names_word(&t->page->names, a.why));
	page_apart_emit(out, &t->page->names, &o.pools, &o.room);
	emit_remedies(t, &a);
	emit_end(out);
	oom_close(&o);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Why memory ran out the last time, and what would have made room, as `oom` says it. */
#include "../oom/oom.h"
#include "page.h"

static void emit_remedies(struct track *t, const struct oom *o, enum oom_cause cause)
{
	struct oom_remedy remedies[OOM_REMEDIES];
	size_t count = oom_remedies(o, cause, remedies);
	struct emit *out = t->page->out;

	emit_array(out, "remedies");
	for (size_t i = 0; i < count; i++) {
		emit_object(out, NULL);
		emit_number(out, "what", names_word(&t->page->names, remedies[i].what));
		emit_number(out, "how", names_word(&t->page->names, remedies[i].how));
		emit_number(out, "saves", remedies[i].saves);
		emit_flag(out, "enough", remedies[i].enough);
		emit_end(out);
	}
	emit_end(out);
}

void page_oom_emit(struct track *t)
{
	struct refusal refusal;
	struct emit *out = t->page->out;
	char why[OOM_TEXT];
	enum oom_cause cause;
	struct oom o = { 0 };

	if (!t->ooms || !refusals_find(&refusal, &t->timeline->model.lives, 0) ||
	    refusal.event.device != t->timeline->device)
		return;
	oom_look(&o, t->timeline, &refusal);
	cause = oom_cause(&o, why);
	emit_object(out, "oom");
	emit_number(out, "seq", refusal.event.seq);
	emit_text(out, "cause", oom_cause_name(cause));
	emit_number(out, "asked", o.asked);
	emit_number(out, "block", o.block);
	emit_number(out, "why", names_word(&t->page->names, why));
	emit_remedies(t, &o, cause);
	emit_end(out);
	oom_close(&o);
}

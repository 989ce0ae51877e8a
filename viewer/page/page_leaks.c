/* SPDX-License-Identifier: Apache-2.0 */
/* Growth from step to step, as reported by `leaks`. */
#include "page.h"

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

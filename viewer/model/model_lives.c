/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a life, and of all events. */
#include "model_parts.h"

void model_note_death(struct model *m, struct history *b, const struct gmt_event *e)
{
	/* a birth at its address without a free: where it ended is not known */
	if (e->kind != GMT_BLOCK_ALLOC && e->kind != GMT_MEM_ALLOC) {
		b->died_stage = m->spans.now.stage;
		b->died_signs = m->spans.now.signs;
	}
	b->block.died_seq = e->seq;
	b->block.died_ns = e->time_ns;
	b->died_forward = m->spans.forwards;
	b->died_backward = m->spans.backwards;
	if (m->watch)
		m->watch->died(m->watcher, b, e);
	model_row_died(m, b, e);
}

void model_settle(struct model *m)
{
	if (m->watch)
		m->watch->settled(m->watcher);
	model_rows_settle(m);
}

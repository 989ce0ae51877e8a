/* SPDX-License-Identifier: Apache-2.0 */
/* Events that change no life, and are shown all the same. */
#include "model_parts.h"

void model_note_mark(struct model *m, const struct gmt_event *e)
{
	const struct lives_mark mark = { .seq = e->seq,
					 .ns = e->time_ns,
					 .number = e->arg0,
					 .size = e->size,
					 .stream = e->stream,
					 .name = e->name,
					 .thread = e->thread,
					 .stack = e->stack,
					 .device = e->device,
					 .kind = e->kind,
					 .stage = m->spans.now.stage };

	lives_add_mark(&m->lives, &mark);
}

bool model_is_mark(uint16_t kind)
{
	return kind == GMT_RANGE_BEGIN || kind == GMT_RANGE_END || kind == GMT_MARK ||
	       kind == GMT_BLOCK_OOM || kind == GMT_MEM_FAIL || kind == GMT_CTX_DESTROY;
}

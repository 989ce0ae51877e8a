/* SPDX-License-Identifier: Apache-2.0 */
/* Events that change no life, and are shown all the same. */
#include "model_parts.h"

void model_note_mark(struct model *m, const struct gmt_event *e)
{
	const struct model_device *d = e->kind == GMT_BLOCK_OOM ? model_device(m, e->device) : NULL;
	struct lives_mark *mark = lives_add_mark(&m->lives, e, m->spans.now.stage);

	if (e->kind == GMT_BLOCK_OOM)
		mark->number = m->spans.now.thread->step;
	if (d)
		mark->pool = (uint16_t)pools_of(&d->pools, e);
}

bool model_is_mark(uint16_t kind)
{
	return kind == GMT_RANGE_BEGIN || kind == GMT_RANGE_END || kind == GMT_MARK ||
	       kind == GMT_BLOCK_OOM || kind == GMT_MEM_FAIL || kind == GMT_CTX_DESTROY;
}

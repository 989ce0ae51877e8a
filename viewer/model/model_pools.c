/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which private pool a segment of the framework's cache lies in: the pool of the first block in it,
 * since a segment is made for a block and all its blocks are of one pool; or what the recording
 * says of it. A mapping of an expandable segment likewise.
 */
#include "model_parts.h"

enum { EXPECTS_BLOCK = 1 };

void model_expect_block(struct model_device *d, struct history *segment)
{
	segment->block.mark = EXPECTS_BLOCK;
	d->unplaced++;
}

void model_drop_segment(struct model_device *d, const struct history *segment)
{
	d->unplaced -= segment->block.mark == EXPECTS_BLOCK;
}

static void place(struct model_device *d, struct history *segment, uint32_t pool)
{
	model_drop_segment(d, segment);
	segment->block.mark = 0;
	segment->facts.pool = pool;
}

void model_place_block(struct model *m, struct model_device *d, const struct gmt_event *e)
{
	uint32_t pool = pools_of(&d->pools, e);
	struct history *segment = live_enclosing(&m->memory, e->addr);

	if (segment && segment->block.mark == EXPECTS_BLOCK)
		place(d, segment, pool);
	segment = m->mapped.count ? live_enclosing(&m->mapped, e->addr) : NULL;
	while (segment && segment->block.addr < e->addr + e->size) {
		if (segment->block.mark == EXPECTS_BLOCK)
			place(d, segment, pool);
		segment = live_after(&m->mapped, segment);
	}
}

void model_graph(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);

	if (d)
		pools_event(&d->pools, e);
}

void model_segment_pool(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);
	uint32_t pool = d ? pools_number(&d->pools, e->arg0, e->arg1) : 0;
	struct tree *trees[] = { &m->memory, &m->mapped };

	for (int t = 0; t < 2 && d; t++)
		for (struct history *h = live_from(trees[t], e->addr);
		     h && h->block.addr - e->addr < e->size; h = live_after(trees[t], h))
			if (h->block.device == e->device && h->block.flags & GMT_FLAG_FRAMEWORK)
				place(d, h, pool);
}

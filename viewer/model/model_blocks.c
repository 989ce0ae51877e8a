/* SPDX-License-Identifier: Apache-2.0 */
/* The framework's blocks: what its allocator hands out and takes back. */
#include "model_parts.h"

/* What the framework itself says it holds is the truth at that moment. */
static void say_reserved(struct model *m, struct model_device *d, const struct gmt_event *e)
{
	d->framework = d->self_reported = true;
	if (e->arg1)
		model_set(m, &d->reserved, e->arg1, e);
}

static void note_change(struct model *m, const struct gmt_event *e)
{
	if (e->seq > m->state_seq && !(e->flags & GMT_FLAG_LATE))
		m->changed_seq = e->seq;
}

void model_block_alloc(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);
	struct history *old = d ? live_find(&d->live, e->addr) : NULL, *b;

	if (!d)
		return;
	if (old) {
		model_fall(&d->blocks, old->block.size);
		model_note_death(m, old, e);
	}
	note_change(m, e);
	b = model_birth(m, &d->live, e);
	say_reserved(m, d, e);
	model_rise(m, &d->blocks, e->size, e);
	model_row_born(m, b, LIFE_BLOCK);
	d->block_allocs++;
	if (d->retry == RETRY_FREED) {
		d->retries++;
		model_note_mark(m, e);
	}
	d->retry = RETRY_NONE;
}

void model_block_free(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);
	struct history *b = d ? live_find(&d->live, e->addr) : NULL;

	if (!d)
		return;
	say_reserved(m, d, e);
	if (!b) {
		m->unknown_frees++;
		return;
	}
	note_change(m, e);
	model_fall(&d->blocks, b->block.size);
	model_note_death(m, b, e);
	tree_remove(&d->live, e->addr);
	d->block_frees++;
}

void model_block_oom(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);

	if (!d)
		return;
	say_reserved(m, d, e);
	d->block_ooms++;
	d->oom_asked = e->size;
	d->retry = RETRY_NONE;
}

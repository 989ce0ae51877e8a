/* SPDX-License-Identifier: Apache-2.0 */
/* The framework's blocks: allocated, freed, or out of memory. */
#include "model_parts.h"
#include "../../format/record.h"

void model_note_mark(struct model *m, const struct gmt_event *e)
{
	const struct model_device *d = e->kind == GMT_BLOCK_OOM ? model_device(m, e->device) : NULL;
	struct lives_mark *mark = lives_add_mark(&m->lives, e, m->spans.now.stage);

	if (e->kind == GMT_BLOCK_OOM)
		mark->number = m->spans.now.thread->step;
	if (d)
		mark->pool = (uint16_t)pools_of(&d->pools, e);
}

/* Sets the reserved bytes to the framework's own figure, less its segments that sleep. */
static void say_reserved(struct model *m, struct model_device *d, const struct gmt_event *e)
{
	d->framework = d->self_reported = true;
	if (e->arg1)
		model_set(m, &d->reserved,
			  e->arg1 > d->reserved_asleep ? e->arg1 - d->reserved_asleep : 0, e);
}

static void leave(struct model_device *d, const struct history *b)
{
	if (b->asleep)
		d->asleep -= b->block.size;
	else
		model_fall(&d->blocks, b->block.size);
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
		leave(d, old);
		model_note_death(m, old, e);
	}
	note_change(m, e);
	b = model_birth(m, &d->live, e);
	b->facts.pool = pools_of(&d->pools, e);
	if (d->unplaced)
		model_place_block(m, d, e);
	say_reserved(m, d, e);
	model_rise(m, &d->blocks, e->size, e);
	model_row_born(m, b, LIFE_BLOCK);
	if (e->size <= LIVES_SMALL)
		m->small_seq = e->seq;
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
	leave(d, b);
	model_note_death(m, b, e);
	tree_remove(&d->live, e->addr);
	d->block_frees++;
	m->freed_addr = e->addr;
	m->freed_seq = e->seq;
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

#define LATE 256 /* waits that might be recorded late */

/*
 * A wait begins when its block is freed, which is normally the latest free. The recorder writes the
 * first waits late, when it knows that the CUDA events are the allocator's. They begin with the
 * latest end of a life at their address.
 */
static uint64_t freed_with(const struct model *m, const struct gmt_event *e)
{
	const struct lives *l = &m->lives;
	uint64_t latest = 0, died;

	if (m->freed_addr == e->addr)
		return m->freed_seq;
	if (m->waits.count > LATE)
		return e->seq;
	for (uint32_t i = l->rows.count; i-- > 0;) {
		const struct life *life = lives_at(l, i);

		died = life->addr == e->addr ? lives_seq(l, &life->died) : 0;
		latest = died > latest ? died : latest;
	}
	return latest ? latest : e->seq;
}

void model_reuse(struct model *m, const struct gmt_event *e)
{
	waits_event(&m->waits, e, e->kind == GMT_REUSE_WAIT ? freed_with(m, e) : 0);
}

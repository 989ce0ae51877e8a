/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lives begin and end. Half of a life's row is written at its birth, the rest at its end or after
 * the last event.
 */
#include "model_parts.h"
#include "../../format/mem_traits.h"

/* A new block, in place of one that is still recorded at that address. */
struct history *model_birth(struct model *m, struct tree *t, const struct gmt_event *e)
{
	struct history *b = live_insert(t, e->addr);

	b->block.size = e->size;
	b->block.seq = e->seq;
	b->block.born_ns = e->time_ns;
	b->block.stream = e->stream;
	b->step = m->spans.now.thread->step;
	b->block.stack = e->stack;
	b->block.thread = e->thread;
	b->block.name = e->name;
	b->in_node = e->scope;
	b->block.device = e->device;
	b->block.flags = e->flags;
	if (e->kind == GMT_MEM_ALLOC && !gmt_is_framework_block(e))
		b->block.memory = e->arg0;
	if (e->kind == GMT_MEM_ALLOC)
		b->context = gmt_mem_context(e->arg0, m->spans.now.thread->context);
	b->stage = m->spans.now.stage;
	b->signs = m->spans.now.signs;
	if (m->spans.asked && b->stage == STAGE_BACKWARD)
		b->signs |= STACK_ASKED;
	b->born_forward = m->spans.forwards;
	b->after_forward = m->spans.forwards > m->spans.forwards_before;
	b->after_step = m->spans.stepped;
	b->born_backward = m->spans.backwards;
	b->born_steps = (uint32_t)m->spans.steps;
	if (m->watch)
		m->watch->born(m->watcher, b);
	return b;
}

void model_row_born(struct model *m, struct history *b, enum life_layer layer)
{
	struct position p = { .seq = b->block.seq,
			      .ns = b->block.born_ns,
			      .step = b->step,
			      .stream = b->block.stream,
			      .thread = b->block.thread,
			      .forwards = b->born_forward,
			      .backwards = b->born_backward,
			      .steps = b->born_steps,
			      .device = b->block.device,
			      .flags = b->block.flags,
			      .memory = b->block.memory,
			      .stage = b->stage,
			      .layer = layer,
			      .after_forward = b->after_forward,
			      .after_step = b->after_step,
			      .in_node = b->in_node,
			      .asked = m->spans.asked && b->stage == STAGE_BACKWARD };
	const struct life_request request = { b->block.size, b->block.stack, b->block.name };
	struct life *life;

	p.counts = layer == LIFE_BLOCK ||
		   (layer != LIFE_MAPPED && b->block.device >= 0 &&
		    b->block.device < MODEL_DEVICES && gmt_mem_is_on_device(b->block.memory));
	b->block.life = lives_add(&m->lives, &request) + 1;
	life = rows_change(&m->lives.rows, b->block.life - 1);
	life->addr = b->block.addr;
	life->born = lives_moment(&m->lives, &p);
	if (p.counts && b->signs & STACK_BUCKET)
		model_add_bucket(m, b, layer);
}

static void write_facts_of_life(struct model *m, struct history *b)
{
	struct life *life = rows_change(&m->lives.rows, b->block.life - 1);

	b->facts.handle = b->block.handle;
	lives_put_facts(&m->lives, life, &b->facts);
	uses_keep(&m->uses, b, &life->uses);
}

void model_row_died(struct model *m, struct history *b, const struct gmt_event *e)
{
	const struct position p = { .seq = e->seq,
				    .ns = e->time_ns,
				    .stage = b->died_stage,
				    .forwards = m->spans.forwards,
				    .backwards = m->spans.backwards };

	if (!b->block.life)
		return;
	lives_end(&m->lives, b->block.life - 1, &p, e->stack);
	write_facts_of_life(m, b);
	lives_note(&m->lives, CHANGE_DIED, b->block.life - 1, e->seq, e->time_ns);
	model_drop_bucket(m, b);
	b->block.life = 0;
}

static void settle_lives(struct model *m, struct tree *t)
{
	tree_tidy(t);
	LIVE_EACH (t, b)
		if (b->block.life)
			write_facts_of_life(m, b);
}

void model_rows_settle(struct model *m)
{
	for (int d = 0; d < MODEL_DEVICES; d++)
		settle_lives(m, &m->devices[d].live);
	settle_lives(m, &m->memory);
	settle_lives(m, &m->physical);
	settle_lives(m, &m->mapped);
	uses_settle(m);
}

void model_note_death(struct model *m, struct history *b, const struct gmt_event *e)
{
	/* if a birth at its address is all that shows its end, the stage is not known */
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

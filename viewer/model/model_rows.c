/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the replay knows of a block becomes a row of the table of lives: half of it at the birth,
 * the rest at the death or when all events were seen. And back: a row as a block.
 */
#include "../base/need.h"
#include "model_parts.h"

void model_row_born(struct model *m, struct block *b, enum life_layer layer)
{
	struct position p = { .seq = b->seq,
			      .ns = b->born_ns,
			      .step = b->step,
			      .stream = b->stream,
			      .thread = b->thread,
			      .forwards = b->born_forward,
			      .backwards = b->born_backward,
			      .steps = b->born_steps,
			      .device = b->device,
			      .flags = b->flags,
			      .memory = b->memory,
			      .stage = b->stage,
			      .layer = layer,
			      .after_forward = b->after_forward,
			      .after_step = b->after_step,
			      .in_node = b->scope,
			      .asked = m->asked && b->stage == STAGE_BACKWARD };
	struct life *life;

	if (m->bare)
		return;
	p.counts = layer == LIFE_BLOCK ||
		   (layer != LIFE_MAPPED && b->device >= 0 && b->device < MODEL_DEVICES &&
		    model_is_device_memory(b->memory));
	b->life = lives_add(&m->lives) + 1;
	life = lives_at(&m->lives, b->life - 1);
	life->addr = b->addr;
	life->size = b->size;
	life->stack = b->stack;
	life->name = b->name;
	life->born = lives_moment(&m->lives, &p);
	if (p.counts && b->signs & STACK_BUCKET)
		model_add_bucket(m, b, layer);
}

void model_row_change(struct model *m, const struct block *b, enum life_change change,
		      const struct gmt_event *e)
{
	if (b->life)
		lives_note(&m->lives, change, b->life - 1, e->seq, e->time_ns);
}

/* Tags and the storage stand with the first fact that is there. */
static void write_facts(struct model *m, const struct block *b)
{
	struct life *life = lives_at(&m->lives, b->life - 1);
	uint64_t spare = b->storage ? b->size - b->storage : UINT32_MAX;
	uint32_t unused = spare < UINT32_MAX ? (uint32_t)spare + 1 : 0;
	uint16_t tags = b->tags;
	const struct life_fact facts[] = {
		{ .kind = FACT_SAVED,
		  .ns = b->save_ns,
		  .a = b->save_backward,
		  .b = b->save_steps,
		  .c = b->save_stack },
		{ .kind = FACT_GRADIENT, .ns = b->grad_ns },
		{ .kind = FACT_LEAF, .ns = b->leaf_ns, .a = b->leaf_backward, .b = b->leaf_passes },
		{ .kind = FACT_ARRIVALS, .a = b->arrived_backward, .b = b->arrivals },
		{ .kind = FACT_SUCCESSOR, .a = b->heir_stack, .b = b->heir_signs },
		{ .kind = FACT_NEXT, .a = b->next_stack, .b = b->piled, .c = b->walked },
		{ .kind = FACT_STORAGE, .ns = b->storage && spare >= UINT32_MAX ? b->storage : 0 },
		{ .kind = FACT_PLACE,
		  .ns = b->handle,
		  .a = b->rank,
		  .b = b->refs > 1 ? b->refs : 0 },
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		struct life_fact f = facts[i];

		if (!f.ns && !f.a && !f.b && !f.c)
			continue;
		f.tags = tags;
		f.unused = unused;
		tags = 0;
		unused = 0;
		lives_put_fact(&m->lives, life, &f);
	}
	if (tags || unused)
		lives_put_fact(&m->lives, life,
			       &(struct life_fact){ .tags = tags, .unused = unused });
}

void model_row_died(struct model *m, struct block *b, const struct gmt_event *e)
{
	const struct position p = { .seq = e->seq,
				    .ns = e->time_ns,
				    .stage = b->died_stage,
				    .forwards = m->forwards,
				    .backwards = m->backwards };

	if (!b->life)
		return;
	lives_at(&m->lives, b->life - 1)->died = lives_moment(&m->lives, &p);
	write_facts(m, b);
	lives_note(&m->lives, CHANGE_DIED, b->life - 1, e->seq, e->time_ns);
	model_drop_bucket(m, b);
	b->life = 0;
}

static void settle(struct model *m, struct tree *t)
{
	TREE_EACH(t, b)
	if (b->life)
		write_facts(m, b);
}

void model_rows_settle(struct model *m)
{
	for (int d = 0; d < MODEL_DEVICES; d++)
		settle(m, &m->devices[d].live);
	settle(m, &m->memory);
	settle(m, &m->physical);
	settle(m, &m->mapped);
}

static void read_fact(struct block *b, const struct life_fact *f)
{
	b->tags |= f->tags;
	if (f->unused && b->size - f->unused + 1 > b->storage)
		b->storage = b->size - f->unused + 1;
	switch (f->kind) {
	case FACT_SAVED:
		b->save_ns = f->ns;
		b->save_backward = f->a;
		b->save_steps = f->b;
		b->save_stack = f->c;
		break;
	case FACT_GRADIENT:
		b->grad_ns = f->ns;
		break;
	case FACT_LEAF:
		b->leaf_ns = f->ns;
		b->leaf_backward = f->a;
		b->leaf_passes = f->b;
		break;
	case FACT_ARRIVALS:
		b->arrived_backward = f->a;
		b->arrivals = f->b;
		break;
	case FACT_SUCCESSOR:
		b->heir_stack = f->a;
		b->heir_signs = f->b;
		break;
	case FACT_NEXT:
		b->next_stack = f->a;
		b->piled = f->b;
		b->walked = f->c;
		break;
	case FACT_STORAGE:
		b->storage = f->ns;
		break;
	case FACT_PLACE:
		b->handle = f->ns;
		b->rank = f->a;
		b->refs = (uint16_t)f->b;
		break;
	default:
		break;
	}
}

static void read_birth(struct block *b, const struct position *p)
{
	b->step = p->step;
	b->stream = p->stream;
	b->thread = p->thread;
	b->born_forward = p->forwards;
	b->born_backward = p->backwards;
	b->born_steps = p->steps;
	b->device = p->device;
	b->flags = p->flags;
	b->memory = p->memory;
	b->stage = p->stage;
	b->after_forward = p->after_forward;
	b->after_step = p->after_step;
	b->scope = p->in_node;
}

void model_block(struct model *m, uint32_t i, struct block *b)
{
	const struct life *life = lives_at(&m->lives, i);
	const struct position *born = lives_position(&m->lives, life->born.position);
	const struct position *died = lives_position(&m->lives, life->died.position);

	*b = (struct block){ .addr = life->addr,
			     .size = life->size,
			     .seq = born->seq + life->born.seq,
			     .born_ns = born->ns + life->born.ns,
			     .stack = life->stack,
			     .name = life->name,
			     .life = i + 1 };
	read_birth(b, born);
	b->signs = signs_find(&m->signs, b->stack) | (born->asked ? STACK_ASKED : 0);
	if (b->stage == STAGE_FORWARD && !m->tags && born->layer != LIFE_MEMORY)
		b->stem = signs_stem(&m->signs, b->stack);
	if (life->died.position) {
		b->died_seq = lives_seq(&m->lives, &life->died);
		b->died_ns = lives_ns(&m->lives, &life->died);
		b->died_stage = died->stage;
		b->died_forward = died->forwards;
		b->died_backward = died->backwards;
	}
	for (const struct life_fact *f = lives_fact(&m->lives, life->facts); f;
	     f = lives_fact(&m->lives, f->next))
		read_fact(b, f);
}

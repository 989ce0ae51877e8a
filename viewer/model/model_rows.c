/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the replay knows of a block becomes a row of the table of lives: half of it at the birth,
 * the rest at the death or when all events were seen. And back: a row as a block.
 */
#include "../base/need.h"
#include "model_parts.h"

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
		    b->block.device < MODEL_DEVICES && model_is_device_memory(b->block.memory));
	b->block.life = lives_add(&m->lives, &request) + 1;
	life = lives_at(&m->lives, b->block.life - 1);
	life->addr = b->block.addr;
	life->born = lives_moment(&m->lives, &p);
	if (p.counts && b->signs & STACK_BUCKET)
		model_add_bucket(m, b, layer);
}

void model_change(struct model *m, const struct history *b, enum life_change change,
		  const struct gmt_event *e)
{
	if (b->block.life)
		lives_note(&m->lives, change, b->block.life - 1, e->seq, e->time_ns);
}

static void write_facts(struct model *m, struct history *b)
{
	b->facts.handle = b->block.handle;
	lives_put_facts(&m->lives, lives_at(&m->lives, b->block.life - 1), &b->facts);
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
	write_facts(m, b);
	lives_note(&m->lives, CHANGE_DIED, b->block.life - 1, e->seq, e->time_ns);
	model_drop_bucket(m, b);
	b->block.life = 0;
}

static void settle(struct model *m, struct tree *t)
{
	LIVE_EACH(t, b)
	if (b->block.life)
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

/* They are only remembered, what they are stands in the recording's definitions. */
uint32_t model_signs(const struct model *m, uint32_t stack)
{
	return signs_find((struct signs *)&m->signs, stack);
}

const struct position *model_born(const struct model *m, const struct block *b)
{
	return lives_position(&m->lives, lives_at(&m->lives, b->life - 1)->born.position);
}

const struct position *model_died(const struct model *m, const struct block *b)
{
	return lives_position(&m->lives, lives_at(&m->lives, b->life - 1)->died.position);
}

void model_block(const struct model *m, uint32_t i, struct block *b)
{
	const struct lives *l = &m->lives;
	const struct life *life = lives_at(l, i);
	const struct life_request *request = lives_request(l, life);
	const struct position *born = lives_position(l, life->born.position);

	*b = (struct block){ .addr = life->addr,
			     .size = request->size,
			     .seq = born->seq + life->born.seq,
			     .born_ns = born->ns + life->born.ns,
			     .died_seq = lives_seq(l, &life->died),
			     .died_ns = lives_ns(l, &life->died),
			     .stream = born->stream,
			     .stack = request->stack,
			     .thread = born->thread,
			     .name = request->name,
			     .life = i + 1,
			     .device = born->device,
			     .flags = born->flags,
			     .memory = born->memory };
	if (born->layer == LIFE_MAPPED)
		b->handle = lives_facts(l, life).handle;
}

static void read_birth(struct history *h, const struct position *p)
{
	h->step = p->step;
	h->born_forward = p->forwards;
	h->born_backward = p->backwards;
	h->born_steps = p->steps;
	h->stage = p->stage;
	h->after_forward = p->after_forward;
	h->after_step = p->after_step;
	h->in_node = p->in_node;
}

static void read_death(struct history *h, const struct position *p)
{
	h->died_stage = p->stage;
	h->died_forward = p->forwards;
	h->died_backward = p->backwards;
}

void model_history(const struct model *m, const struct block *b, struct history *h)
{
	const struct life *life = lives_at(&m->lives, b->life - 1);
	const struct position *born = lives_position(&m->lives, life->born.position);

	*h = (struct history){ .block = *b, .facts = lives_facts(&m->lives, life) };
	read_birth(h, born);
	h->signs = model_signs(m, b->stack) | (born->asked ? STACK_ASKED : 0);
	if (h->stage == STAGE_FORWARD && !m->tags && born->layer != LIFE_MEMORY)
		h->module_path = signs_stem((struct signs *)&m->signs, b->stack);
	if (b->died_seq)
		read_death(h, lives_position(&m->lives, life->died.position));
	h->backward_over = b->state & LIFE_BACKWARD_OVER;
	h->holds_gradients = b->state & LIFE_HOLDS_GRADIENTS;
}

static struct life_facts facts_of(const struct model *m, const struct block *b)
{
	return lives_facts(&m->lives, lives_at(&m->lives, b->life - 1));
}

bool model_is_leaf(const struct model *m, const struct block *b)
{
	return facts_of(m, b).leaf_ns;
}

uint64_t model_first_saved(const struct model *m, const struct block *b)
{
	return facts_of(m, b).save_ns;
}

uint64_t model_storage(const struct model *m, const struct block *b)
{
	uint64_t unused = facts_of(m, b).unused;

	return unused ? b->size - unused + 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rows of the table of lives as blocks and histories, and writes changes of lives. */
#include "model_parts.h"

void model_change(struct model *m, const struct history *b, enum life_change change,
		  const struct gmt_event *e)
{
	if (b->block.life)
		lives_note(&m->lives, change, b->block.life - 1, e->seq, e->time_ns);
}

/* Signs follow from the recording's definitions. Writing to m only caches them. */
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
	const struct lived x = lives_read(l, i);

	*b = (struct block){ .addr = x.row->addr,
			     .size = x.size,
			     .seq = x.from,
			     .born_ns = lives_ns(l, &x.row->born),
			     .died_seq = lives_seq(l, &x.row->died),
			     .died_ns = lives_ns(l, &x.row->died),
			     .stream = x.born->stream,
			     .stack = x.stack,
			     .thread = x.born->thread,
			     .name = x.name,
			     .life = i + 1,
			     .device = x.born->device,
			     .flags = x.born->flags,
			     .memory = x.born->memory };
	if (x.born->layer == LIFE_MAPPED)
		b->handle = lives_facts(l, x.row).handle;
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
		h->module_path = signs_module_path((struct signs *)&m->signs, b->stack);
	if (b->died_seq)
		read_death(h, lives_position(&m->lives, life->died.position));
	h->backward_over = b->state & LIFE_BACKWARD_OVER;
	h->holds_gradients = b->state & LIFE_HOLDS_GRADIENTS;
}

const struct pool *model_pool(const struct model *m, const struct block *b)
{
	uint32_t pool = lives_facts(&m->lives, lives_at(&m->lives, b->life - 1)).pool;

	return pool ? &m->devices[b->device].pools.items[pool - 1] : NULL;
}

const struct pool *model_pool_of_mark(const struct model *m, const struct lives_mark *mark)
{
	return mark->pool ? &m->devices[mark->device].pools.items[mark->pool - 1] : NULL;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of what is alive, taken right after the wanted event. */
#include <stdlib.h>

#include "../base/need.h"
#include "model_parts.h"

struct list {
	struct block *items;
	size_t count, room;
};

static void add(struct list *l, const struct block *b)
{
	l->items = need_grow(l->items, &l->room, l->count, sizeof(*l->items));
	l->items[l->count++] = *b;
}

static bool is_host(const struct block *b)
{
	return b->memory == GMT_MEM_HOST || b->memory == GMT_MEM_REGISTERED;
}

static bool counts(const struct moment *mo, const struct block *b)
{
	return b->device == mo->device && (mo->framework || model_is_device_memory(b->memory));
}

static void copy_blocks(struct moment *mo, struct tree *t)
{
	struct list l = { mo->blocks, mo->count, mo->count };

	TREE_EACH(t, b)
	{
		if (!counts(mo, b))
			continue;
		add(&l, b);
		b->copy = l.count;
		mo->bytes += b->size;
	}
	mo->blocks = l.items;
	mo->count = l.count;
}

bool model_bucket_filled(const struct model *m, uint64_t before)
{
	return m->grads_live && (!m->tags || m->grad_bytes > before);
}

/* Buckets of gradients are made in the order in which backward fills them. */
static void note_buckets(const struct model *m, struct moment *mo)
{
	for (size_t i = 0; i < mo->count; i++) {
		struct block *b = &mo->blocks[i];
		uint64_t before = 0;

		if (!(b->signs & STACK_BUCKET) || !m->grads_live)
			continue;
		for (size_t k = 0; k < mo->count; k++)
			if (mo->blocks[k].signs & STACK_BUCKET && mo->blocks[k].seq < b->seq)
				before += mo->blocks[k].size;
		b->grads_live = model_bucket_filled(m, before);
	}
}

static void copy_memory(struct model *m, struct moment *mo)
{
	struct list memory = { 0 }, mapped = { 0 };

	TREE_EACH(&m->memory, b)
	if (b->device == mo->device || is_host(b))
		add(&memory, b);
	TREE_EACH(&m->physical, b)
	if (b->device == mo->device)
		add(&memory, b);
	TREE_EACH(&m->mapped, b)
	if (b->device == mo->device)
		add(&mapped, b);
	mo->memory = memory.items;
	mo->memory_count = memory.count;
	mo->mapped = mapped.items;
	mo->mapped_count = mapped.count;
}

static void take(struct model *m, struct model_device *d, struct moment *mo, uint64_t time_ns)
{
	mo->taken = true;
	mo->time_ns = time_ns;
	mo->reserved = d->reserved.now;
	mo->driver = d->driver.now;
	mo->host = m->host.now;
	mo->context = d->context;
	mo->free_bytes = d->free_bytes;
	mo->total_bytes = d->total_bytes;
	if (mo->framework) {
		copy_blocks(mo, &d->live);
	} else {
		copy_blocks(mo, &m->memory);
		copy_blocks(mo, &m->physical);
	}
	copy_memory(m, mo);
	note_buckets(m, mo);
}

void model_take_moments(struct model *m, const struct gmt_event *e)
{
	if (!m->wanted || e->seq < m->next_moment)
		return;
	m->next_moment = UINT64_MAX;
	for (int i = 0; i < MODEL_DEVICES; i++) {
		struct moment *mo = m->devices[i].moment;

		if (!mo || mo->taken)
			continue;
		if (e->seq >= mo->seq)
			take(m, &m->devices[i], mo, e->time_ns);
		else if (mo->seq < m->next_moment)
			m->next_moment = mo->seq;
	}
}

void model_want(struct model *m, struct moment *mo)
{
	m->devices[mo->device].moment = mo;
	m->wanted = true;
	m->next_moment = 0;
}

void model_now(struct model *m, struct moment *mo)
{
	mo->seq = m->last_seq;
	take(m, &m->devices[mo->device], mo, m->last_ns);
}

void moment_free(struct moment *mo)
{
	free(mo->blocks);
	free(mo->memory);
	free(mo->mapped);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "page_lives.h"

#include <stdlib.h>

#include "../base/need.h"

static struct stretch stretch_of(const struct series_change *c)
{
	return (struct stretch){ c->seq, c->block->state, (uint8_t)c->category };
}

static void begin(struct page_lives *l, const struct series_change *c)
{
	bool fresh;

	l->items = need_grow(l->items, &l->room, l->count, sizeof(*l->items));
	l->items[l->count] = (struct page_life){ .block = *c->block, .first = stretch_of(c) };
	*map_put(&l->alive, c->block->seq, &fresh) = l->count++;
	l->blocks++;
}

static void add_stretch(struct page_life *life, const struct series_change *c)
{
	life->more = need_grow(life->more, &life->more_room, life->more_count, sizeof(*life->more));
	life->more[life->more_count++] = stretch_of(c);
}

/* A class that loses a block is told before the one that gets it: until then the block is dead. */
void lives_change(struct page_lives *l, const struct series_change *c)
{
	uint32_t *at = map_get(&l->alive, c->block->seq);
	struct page_life *life = at ? &l->items[*at] : NULL;

	if (c->device != l->device)
		return;
	if (!life && c->bytes > 0) {
		begin(l, c);
	} else if (life && c->bytes > 0) {
		add_stretch(life, c);
		life->block = *c->block;
		life->block.died_seq = 0;
	} else if (life) {
		life->block = *c->block;
		life->block.died_seq = c->seq;
		life->block.died_ns = c->time_ns;
		l->pending = need_grow(l->pending, &l->pending_room, l->pending_count,
				       sizeof(*l->pending));
		l->pending[l->pending_count++] = *at;
	}
}

static bool lives_at_key(const struct page_lives *l, const struct block *b)
{
	for (size_t i = 0; i < l->key_count; i++)
		if (b->seq <= l->keys[i].seq && (!b->died_seq || l->keys[i].seq < b->died_seq))
			return true;
	return false;
}

struct rank {
	double area; /* bytes times events: what the block has under the curve */
	uint32_t index;
};

static int by_area(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->area != y->area)
		return x->area < y->area ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* All that may go, those that held most first. In the end, when too many live at key moments, those
 * may go too. */
static struct rank *candidates(const struct page_lives *l, bool final, size_t *count)
{
	struct rank *ranks = need_new((l->count + 1) * sizeof(*ranks));
	size_t keys = 0;

	for (size_t i = 0; final && i < l->count; i++)
		keys += lives_at_key(l, &l->items[i].block);
	*count = 0;
	for (size_t i = 0; i < l->count; i++) {
		const struct block *b = &l->items[i].block;
		uint64_t until = b->died_seq ? b->died_seq : l->last_seq + 1;

		if ((!final && !b->died_seq) || (keys <= l->limit && lives_at_key(l, b)))
			continue;
		ranks[(*count)++] = (struct rank){ (double)b->size * (until - b->seq), i };
	}
	qsort(ranks, *count, sizeof(*ranks), by_area);
	return ranks;
}

static void close_ranks(struct page_lives *l)
{
	size_t to = 0;
	bool fresh;

	for (size_t i = 0; i < l->count; i++) {
		struct page_life *life = &l->items[i];

		if (life->gone) {
			free(life->more);
			l->left_out++;
			continue;
		}
		if (!life->block.died_seq)
			*map_put(&l->alive, life->block.seq, &fresh) = to;
		l->items[to++] = *life;
	}
	l->count = to;
}

/* Leaves out the least, down to the limit. */
static void trim(struct page_lives *l, bool final)
{
	size_t count, keep;
	struct rank *ranks = candidates(l, final, &count);

	keep = l->count - count < l->limit ? l->limit - (l->count - count) : 0;
	for (size_t i = keep; i < count; i++)
		l->items[ranks[i].index].gone = true;
	close_ranks(l);
	free(ranks);
}

/* What the event ended, and by whom. */
static void bury(struct page_lives *l, const struct gmt_event *e)
{
	while (l->pending_count) {
		uint32_t i = l->pending[--l->pending_count];
		struct page_life *life = &l->items[i];

		if (!life->block.died_seq)
			continue;
		life->died_stack = e->stack;
		life->died_thread = e->thread;
		map_remove(&l->alive, life->block.seq);
	}
}

/* Saved for backward: the class may stay what it is, and have a better reason from here on. */
static void note_saved(struct page_lives *l, const struct gmt_event *e, const struct model *m)
{
	const struct history *b = live_enclosing(&m->devices[l->device].live, e->addr);
	const uint32_t *at = b ? map_get(&l->alive, b->block.seq) : NULL;
	struct page_life *life = at ? &l->items[*at] : NULL;
	const struct stretch *last = life ? lives_stretch(life, life->more_count) : NULL;
	struct block now;

	if (!life || !((last->state ^ history_state(b)) & (LIFE_SAVED | LIFE_SAVED_BEFORE)))
		return;
	now = b->block;
	now.state = history_state(b);
	add_stretch(life, &(struct series_change){
				  .seq = e->seq, .category = last->category, .block = &now });
}

/* What the whole run has told of the blocks that are alive in the end. */
static void learn(struct page_lives *l, const struct model *m)
{
	const struct tree *trees[] = { &m->devices[l->device].live, &m->memory, &m->physical };

	for (size_t i = 0; i < l->count; i++) {
		const struct block *b = NULL;

		if (l->items[i].block.died_seq)
			continue;
		for (int t = 0; t < 3 && (!b || b->seq != l->items[i].block.seq); t++)
			b = tree_find(trees[t], l->items[i].block.addr);
		if (b && b->seq == l->items[i].block.seq)
			l->items[i].block = *b;
	}
}

void lives_event(struct page_lives *l, const struct gmt_event *e, const struct model *m)
{
	bury(l, e);
	if (e->kind == GMT_TAG_SAVED)
		note_saved(l, e, m);
	if (e->seq == l->last_seq)
		learn(l, m);
	if (l->count > 2 * l->limit + 2 * l->alive.count)
		trim(l, false);
}

void lives_finish(struct page_lives *l)
{
	trim(l, true);
}

void page_lives_free(struct page_lives *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].more);
	free(l->items);
	free(l->pending);
	map_free(&l->alive);
}

const struct stretch *lives_stretch(const struct page_life *life, size_t i)
{
	return i ? &life->more[i - 1] : &life->first;
}

struct block lives_copy(const struct page_life *life, size_t i, const struct model *m)
{
	struct block copy = life->block;

	copy.state = lives_stretch(life, i)->state;
	copy.life = lives_born_by(&m->lives, copy.seq);
	return copy;
}

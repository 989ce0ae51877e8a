/* SPDX-License-Identifier: Apache-2.0 */
#include "page_lives.h"

#include "../base/sorted.h"

COMPARE(by_seq, __typeof__(struct key_moment *), ORDER((*x)->seq, (*y)->seq))

/* The rank of a block. Blocks alive at a key moment come first, if there is room for all. */
struct rank {
	double area; /* bytes times events: the block's area under the curve */
	uint32_t life;
	bool at_key;
};

COMPARE(by_rank, struct rank,
	ORDER(y->at_key, x->at_key) ?: ORDER(y->area, x->area) ?: ORDER(x->life, y->life))
COMPARE(by_life, struct page_life, ORDER(x->life, y->life))

/* The blocks of highest rank so far; items has room for 2 * limit. */
struct ranks {
	struct rank *items;
	size_t count, limit;
	size_t all, at_key; /* blocks seen; of these, alive at a key moment */
	bool cut;	    /* the first `limit` items are sorted, and no worse one is needed */
};

static void cut_ranks(struct ranks *r)
{
	SORT(r->items, r->count, by_rank);
	r->cut = r->count >= r->limit;
	r->count = r->cut ? r->limit : r->count;
}

static void add_rank(struct ranks *r, const struct rank *x)
{
	r->all++;
	r->at_key += x->at_key;
	if (r->cut && by_rank(x, &r->items[r->limit - 1]) > 0)
		return;
	r->items[r->count++] = *x;
	if (r->count == 2 * r->limit)
		cut_ranks(r);
}

/* Call in order of birth. *key: the first key moment that is not before the birth. */
static struct rank rank_of(const struct page_lives *l, uint32_t i, size_t *key)
{
	const struct lived x = lives_read(&l->model->lives, i);
	uint64_t died = x.until == LIVES_OPEN ? l->model->last_seq + 1 : x.until;

	while (*key < l->key_count && l->key_order[*key]->seq < x.from)
		++*key;
	return (struct rank){ (double)x.size * (double)(died - x.from), i,
			      *key < l->key_count && l->key_order[*key]->seq < died };
}

/* keys: blocks alive at key moments come before all others. */
static void rank_all(const struct page_lives *l, struct ranks *r, bool keys)
{
	const struct lives *table = &l->model->lives;
	size_t key = 0;

	r->count = r->all = r->at_key = 0;
	r->cut = false;
	for (uint32_t i = 0; i < table->rows.count; i++) {
		const struct position *p;
		struct rank x;

		chunks_rest(table->pool);
		p = lives_position(table, lives_at(table, i)->born.position);
		if (p->device != l->device || !series_counts(l->model, p))
			continue;
		x = rank_of(l, i, &key);
		if (!keys)
			x.at_key = false;
		add_rank(r, &x);
	}
	cut_ranks(r);
}

/* Selects all blocks alive at key moments, as far as there is room, and then those with the largest
 * area. */
void page_lives_choose(struct page_lives *l, bool any)
{
	struct ranks r = { .limit = l->limit };

	for (size_t i = 0; i < l->key_count; i++)
		l->key_order[i] = &l->keys[i];
	qsort(l->key_order, l->key_count, sizeof(l->key_order[0]), by_seq);
	if (!any)
		return;
	r.items = need_new(2 * r.limit * sizeof(*r.items));
	rank_all(l, &r, true);
	if (r.at_key > r.limit)
		rank_all(l, &r, false);
	l->items = need_new((l->limit + 1) * sizeof(*l->items));
	l->chosen = need_new(l->model->lives.rows.count / 8 + 8);
	for (; l->count < r.count; l->count++) {
		uint32_t life = r.items[l->count].life;

		l->items[l->count] = (struct page_life){ .life = life };
		l->chosen[life / 64] |= 1ull << life % 64;
	}
	SORT(l->items, l->count, by_life);
	l->left_out = r.all - l->count;
	free(r.items);
}

/* Whether a change adds evidence: a tag "saved for backward" may leave the class as it is. */
static bool says_more(const struct stretch *last, const struct series_change *c)
{
	unsigned saved = LIFE_SAVED | LIFE_SAVED_BEFORE;

	return (last->state ^ c->state) & saved &&
	       (c->state & LIFE_SAVED || !(last->state & LIFE_SAVED_BEFORE));
}

static void add_stretch(struct page_lives *l, struct page_life *life, const struct stretch *s)
{
	if (!l->stretch_count)
		l->stretch_count++;
	*(life->last ? &l->stretches[life->last].next : &life->first) = (uint32_t)l->stretch_count;
	life->last = (uint32_t)l->stretch_count;
	*need_item(l->stretches, l->stretch_count, l->stretch_room) = *s;
}

void lives_change(struct page_lives *l, const struct series_change *c)
{
	const struct page_life key = { .life = c->life };
	struct page_life *life;

	if (!(l->chosen[c->life / 64] >> c->life % 64 & 1) || c->kind == SERIES_LEFT ||
	    c->kind == SERIES_DIED)
		return;
	life = bsearch(&key, l->items, l->count, sizeof(*l->items), by_life);
	if (c->kind == SERIES_STATE && !says_more(&l->stretches[life->last], c))
		return;
	add_stretch(l, life,
		    &(struct stretch){ .seq = c->seq,
				       .state = (uint8_t)c->state,
				       .category = (uint8_t)c->category });
}

void page_lives_free(struct page_lives *l)
{
	free(l->items);
	free(l->chosen);
	free(l->stretches);
}

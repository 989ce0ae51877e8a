/* SPDX-License-Identifier: Apache-2.0 */
#include "page_lives.h"

#include "../base/sorted.h"

static int by_seq(const void *a, const void *b)
{
	const struct key_moment *x = *(struct key_moment *const *)a;
	const struct key_moment *y = *(struct key_moment *const *)b;

	return ORDER(x->seq, y->seq);
}

static void order_keys(struct page_lives *l)
{
	for (size_t i = 0; i < l->key_count; i++)
		l->key_order[i] = &l->keys[i];
	qsort(l->key_order, l->key_count, sizeof(l->key_order[0]), by_seq);
}

struct rank {
	double area; /* bytes times events: the block's area under the curve */
	uint32_t life;
};

/* The largest blocks so far, up to twice the number wanted. */
struct best {
	struct rank *ranks;
	size_t count, most;
	double least; /* smallest area that can still be added */
};

COMPARE(by_area, struct rank, ORDER(y->area, x->area) ?: ORDER(x->life, y->life))

static void cut(struct best *b)
{
	qsort(b->ranks, b->count, sizeof(*b->ranks), by_area);
	if (b->count <= b->most)
		return;
	b->count = b->most;
	b->least = b->most ? b->ranks[b->most - 1].area : 0;
}

static void consider(struct best *b, struct rank rank)
{
	if (!b->most || (b->count >= b->most && rank.area < b->least))
		return;
	b->ranks[b->count++] = rank;
	if (b->count == 2 * b->most)
		cut(b);
}

/* The lives of the device in order of birth, each with its rank in the selection. */
struct choice {
	const struct page_lives *lives;
	uint32_t next;
	size_t key; /* the first key moment that is not before the birth */
	struct rank rank;
	bool at_key;
};

static void weigh(struct choice *c, uint32_t i, const struct life *life)
{
	const struct page_lives *l = c->lives;
	const struct lives *table = &l->model->lives;
	uint64_t born = lives_seq(table, &life->born), died = lives_seq(table, &life->died);

	while (c->key < l->key_count && l->key_order[c->key]->seq < born)
		c->key++;
	died = died ? died : l->model->last_seq + 1;
	c->at_key = c->key < l->key_count && l->key_order[c->key]->seq < died;
	c->rank = (struct rank){ (double)lives_request(table, life)->size * (double)(died - born),
				 i };
}

static bool next(struct choice *c)
{
	const struct lives *table = &c->lives->model->lives;

	while (c->next < table->rows.count) {
		uint32_t i = c->next++;
		const struct life *life = lives_at(table, i);
		const struct position *p = lives_position(table, life->born.position);

		if (p->device != c->lives->device || !series_counts(c->lives->model, p))
			continue;
		weigh(c, i, life);
		return true;
	}
	return false;
}

COMPARE(by_life, struct page_life, ORDER(x->life, y->life))

static void lives_keep(struct page_lives *l, uint32_t life)
{
	l->items[l->count++] = (struct page_life){ .life = life };
	l->chosen[life / 64] |= 1ull << life % 64;
}

/* Selects all blocks alive at key moments, as far as there is room, and then those with the largest
 * area. */
void page_lives_choose(struct page_lives *l, bool any)
{
	struct choice c = { .lives = l };
	struct best best = { .most = l->limit };
	struct rank *at_keys;
	size_t all = 0, keys = 0, kept = 0;

	order_keys(l);
	if (!any)
		return;
	for (; next(&c); all++)
		keys += c.at_key;
	keys = keys <= l->limit ? keys : 0;
	best.most -= keys;
	best.ranks = need_new((2 * best.most + keys + 1) * sizeof(*best.ranks));
	at_keys = need_new((keys + 1) * sizeof(*at_keys));
	for (c = (struct choice){ .lives = l }; next(&c);)
		if (keys && c.at_key)
			at_keys[kept++] = c.rank;
		else
			consider(&best, c.rank);
	cut(&best);
	for (size_t i = 0; i < kept; i++)
		best.ranks[best.count++] = at_keys[i];
	l->items = need_new((best.count + 1) * sizeof(*l->items));
	l->chosen = need_new(l->model->lives.rows.count / 8 + 8);
	for (size_t i = 0; i < best.count; i++)
		lives_keep(l, best.ranks[i].life);
	SORT(l->items, l->count, by_life);
	l->left_out = all - l->count;
	free(best.ranks);
	free(at_keys);
}

/* Whether a change adds a reason: after a tag "saved for backward" the class may stay, but its
 * evidence is better. */
static bool says_more(const struct stretch *last, const struct series_change *c)
{
	unsigned saved = LIFE_SAVED | LIFE_SAVED_BEFORE;

	return (last->state ^ c->state) & saved &&
	       (c->state & LIFE_SAVED || !(last->state & LIFE_SAVED_BEFORE));
}

static void add_stretch(struct page_lives *l, struct page_life *life, const struct stretch *s)
{
	l->stretch_count += !l->stretch_count;
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

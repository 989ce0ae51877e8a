/* SPDX-License-Identifier: Apache-2.0 */
/* Memory alive after one event, by a scan over the table of lives and over their changes. */
#include "../../format/mem_traits.h"
#include "../base/sorted.h"
#include "model_parts.h"

struct list {
	struct block *items;
	size_t count, room;
};

struct taking {
	struct model *model;
	struct moment *moment;
	uint32_t end;	   /* lives from here on were born later */
	uint64_t *alive;   /* a bit for each life, set for the moment's blocks */
	struct map states; /* life -> enum life_state, if any */
	struct list blocks, memory, mapped, waiting;
};

static bool is_alive(const struct lives *l, const struct life *life, uint64_t seq)
{
	return !life->died.position || lives_seq(l, &life->died) > seq;
}

static void append_block(struct taking *t, struct list *list, uint32_t i)
{
	model_block(t->model, i, need_item(list->items, list->count, list->room));
}

/* Memory from CUDA calls: of this device, and all host memory. */
static void add_memory(struct taking *t, const struct position *p, uint32_t i)
{
	struct moment *mo = t->moment;
	uint64_t size = lives_request(&t->model->lives, lives_at(&t->model->lives, i))->size;
	bool here = p->device == mo->device;

	if (p->layer == LIFE_MAPPED && here)
		append_block(t, &t->mapped, i);
	else if (p->layer == LIFE_PHYSICAL ? here : here || gmt_mem_is_on_host(p->memory))
		append_block(t, &t->memory, i);
	if (here && p->counts && p->layer != LIFE_MAPPED)
		mo->driver += size;
	if (p->layer == LIFE_MEMORY && gmt_mem_is_on_host(p->memory))
		mo->host += size;
}

static void look_at_life(struct taking *t, uint32_t i)
{
	const struct lives *l = &t->model->lives;
	const struct life *life = lives_at(l, i);
	const struct position *p = lives_position(l, life->born.position);
	struct moment *mo = t->moment;

	if (p->layer != LIFE_BLOCK)
		add_memory(t, p, i);
	else if (p->device == mo->device && p->memory == GMT_MEM_ASYNC)
		mo->driver += lives_request(l, life)->size;
	if (!p->counts || p->device != mo->device || (p->layer == LIFE_BLOCK) != mo->framework)
		return;
	append_block(t, &t->blocks, i);
	mo->bytes += lives_request(l, life)->size;
	t->alive[i / 64] |= 1ull << i % 64;
}

static void find_blocks(struct taking *t)
{
	const struct lives *l = &t->model->lives;

	t->end = lives_born_by(l, t->moment->seq);
	t->alive = need_new(t->end / 8 + 8);
	for (uint32_t i = 0; (i = lives_skip(l, i, t->moment->seq)) < t->end; i++) {
		chunks_rest(l->pool);
		if (is_alive(l, lives_at(l, i), t->moment->seq))
			look_at_life(t, i);
	}
}

static void find_waiting(struct taking *t)
{
	FOR_EACH (const struct wait_row, w, t->model->waits.items, t->model->waits.count)
		if (w->device == t->moment->device && waits_at(w, t->moment->seq))
			*need_item(t->waiting.items, t->waiting.count, t->waiting.room) =
				(struct block){ .addr = w->addr, .size = w->size };
}

static void note_change(struct taking *t, enum life_change change, uint32_t life)
{
	uint32_t *state = map_put(&t->states, life, NULL);

	*state = lives_state(*state, change);
}

static void find_states(struct taking *t)
{
	struct lives_cursor c;

	for (lives_first(&c, &t->model->lives); c.change && c.now.seq <= t->moment->seq;
	     lives_next(&c)) {
		chunks_rest(t->model->lives.pool);
		if (c.now.seq == t->moment->seq && c.change != CHANGE_DIED)
			t->moment->time_ns = c.now.ns;
		if (c.change != CHANGE_DIED && t->alive[c.now.life / 64] >> c.now.life % 64 & 1)
			note_change(t, c.change, c.now.life);
	}
}

/* Sets the states of the blocks. Those that are asleep are left out, and their bytes counted. */
static void put_states(struct taking *t)
{
	struct moment *mo = t->moment;
	size_t kept = 0;

	FOR_EACH (struct block, b, t->blocks.items, t->blocks.count) {
		const uint32_t *at = map_get(&t->states, b->life - 1);

		b->state = at ? (uint16_t)*at : 0;
		if (b->state & LIFE_ASLEEP)
			mo->asleep += b->size;
		else
			t->blocks.items[kept++] = *b;
	}
	t->blocks.count = kept;
	mo->bytes -= mo->asleep;
}

static int by_address(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	bool px = x->memory == GMT_MEM_PHYSICAL || x->memory == GMT_MEM_IMPORTED;
	bool py = y->memory == GMT_MEM_PHYSICAL || y->memory == GMT_MEM_IMPORTED;

	if (px != py)
		return px - py;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static struct block *in_order_of_address(struct list *list, size_t *count)
{
	SORT(list->items, list->count, by_address);
	*count = list->count;
	return list->items;
}

static void find_level(const struct lives *l, struct moment *mo)
{
	struct levels_cursor c;

	for (levels_first(&c, &l->levels); c.now && c.now->seq <= mo->seq; levels_next(&c)) {
		chunks_rest(l->pool);
		if (c.now->device != mo->device)
			continue;
		mo->reserved = c.now->reserved;
		mo->context = c.now->context;
		mo->free_bytes = c.now->free_bytes;
		mo->total_bytes = c.now->total_bytes;
	}
}

/* Finds the time of a birth or a death. find_states has found that of other changes. */
static void find_time(struct taking *t)
{
	const struct lives *l = &t->model->lives;
	struct moment *mo = t->moment;
	const struct life *last = t->end ? lives_at(l, t->end - 1) : NULL;

	if (last && lives_seq(l, &last->born) == mo->seq)
		mo->time_ns = lives_ns(l, &last->born);
	for (uint32_t i = 0; !mo->time_ns && (i = lives_skip(l, i, mo->seq)) < t->end; i++) {
		chunks_rest(l->pool);
		if (lives_seq(l, &lives_at(l, i)->died) == mo->seq)
			mo->time_ns = lives_ns(l, &lives_at(l, i)->died);
	}
}

void model_take(struct model *m, struct moment *mo)
{
	struct taking t = { .model = m, .moment = mo };
	uint64_t known = mo->time_ns;

	if (mo->seq > m->last_seq)
		return;
	if (mo->seq < m->first_seq)
		mo->seq = m->first_seq;
	mo->taken = true;
	find_blocks(&t);
	find_waiting(&t);
	find_states(&t);
	put_states(&t);
	find_level(&m->lives, mo);
	find_time(&t);
	if (known)
		mo->time_ns = known;
	mo->blocks = in_order_of_address(&t.blocks, &mo->count);
	mo->memory = in_order_of_address(&t.memory, &mo->memory_count);
	mo->mapped = in_order_of_address(&t.mapped, &mo->mapped_count);
	mo->waiting = in_order_of_address(&t.waiting, &mo->waiting_count);
	map_free(&t.states);
	free(t.alive);
}

void model_now(struct model *m, struct moment *mo)
{
	model_rows_settle(m);
	mo->seq = m->last_seq;
	mo->time_ns = m->last_ns;
	model_take(m, mo);
}

void moment_free(struct moment *mo)
{
	free(mo->blocks);
	free(mo->memory);
	free(mo->mapped);
	free(mo->waiting);
}

bool moment_is_pooled(const struct moment *mo)
{
	return mo->count && mo->blocks[0].memory == GMT_MEM_ASYNC;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "life_uses.h"

#include "../../format/record.h"
#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "model.h"

void uses_init(struct uses *u, struct chunk_pool *pool)
{
	*u = (struct uses){ 0 };
	rows_init(&u->works, sizeof(struct use_work), pool);
	rows_init(&u->lives, sizeof(struct life_uses), pool);
	rows_init(&u->kinds, sizeof(struct use_kind), NULL);
	packed_init(&u->places, pool);
	rows_add(&u->works);
	rows_add(&u->kinds);
	rows_add(&u->lives);
}

void uses_free(struct uses *u)
{
	rows_free(&u->works);
	rows_free(&u->kinds);
	rows_free(&u->lives);
	packed_free(&u->places);
	FOR_EACH (struct use_graph, g, u->graphs.items, u->graphs.count)
		free(g->places);
	map_items_free(&u->graphs);
	map_items_free(&u->lost);
	map_free(&u->threads);
	map_free(&u->tally.graphs);
	free(u->recent);
}

/* ---- works and what they touch ---- */

void uses_add_row(struct uses *u, uint32_t work, const uint32_t lives[USES_ROW], unsigned n)
{
	uint8_t *p = packed_begin(&u->places);

	*p++ = (uint8_t)n;
	p = put_varint(p, zigzag((uint64_t)work - u->last_work));
	for (unsigned i = 0; i < n; i++) {
		p = packed_put_life(p, lives[i], u->last_life);
		u->last_life = lives[i];
	}
	u->last_work = work;
	packed_end(&u->places, p);
}

void uses_first(struct uses_cursor *c, const struct uses *u)
{
	*c = (struct uses_cursor){ .uses = u };
}

bool uses_next(struct uses_cursor *c)
{
	const uint8_t *from = packed_row(&c->uses->places, &c->place), *p = from;
	uint64_t v;

	if (!from)
		return false;
	c->count = *p++;
	p = packed_get(p, &v);
	c->work = (uint32_t)(c->work + unzigzag(v));
	for (uint32_t i = 0; i < c->count; i++) {
		p = packed_get_life(p, &c->life);
		c->lives[i] = c->life;
	}
	c->place.at += (size_t)(p - from);
	return true;
}

/* ---- events ---- */

void use_tally_event(struct use_tally *t, const struct gmt_event *e)
{
	bool first = !(e->flags & GMT_FLAG_MORE);
	uint32_t *graph;

	if (e->kind == GMT_USE && first) {
		t->launches++;
		if (!e->addr)
			t->unread++;
	} else if (e->kind == GMT_GRAPH_USE) {
		graph = map_put(&t->graphs, e->stream, NULL);
		*graph = (first ? 0 : *graph) | !e->addr;
	} else if (e->kind == GMT_GRAPH_LAUNCH) {
		graph = map_get(&t->graphs, e->addr);
		t->launches++;
		if (!graph || *graph)
			t->unread++;
	}
}

/* ---- after the last event ---- */

void uses_keep(struct uses *u, const struct history *h, uint32_t *row)
{
	if (!h->uses.count)
		return;
	if (!*row) {
		*row = u->lives.count;
		rows_add(&u->lives);
	}
	*(struct life_uses *)rows_change(&u->lives, *row) = h->uses;
}

static bool has_captures(const struct model *m)
{
	return ANY_OF(d, m->devices, m->device_end, d->capture_count > 0);
}

/* The latest rewriting of a bounded recording says between which times it left events out. */
void uses_settle(struct model *m)
{
	m->uses.blind = !m->uses.graphs.count && has_captures(m);
	if (!m->left_out)
		return;
	m->uses.thinned_from = strtoull(defs_meta(m->defs, "thinned.first_ns").s, NULL, 10);
	m->uses.thinned_to = strtoull(defs_meta(m->defs, "thinned.last_ns").s, NULL, 10);
	if (!m->uses.thinned_to)
		m->uses.thinned_to = UINT64_MAX;
	m->uses.thinned_ends = strtoull(defs_meta(m->defs, "thinned.uses").s, NULL, 10);
}

bool uses_known(const struct model *m)
{
	return m->uses.works.count > 1;
}

bool uses_complete(const struct model *m)
{
	return uses_known(m) && !m->uses.tally.unread && !m->uses.blind && !m->dropped;
}

static bool lived_through(const struct lives *l, const struct life *life, uint64_t from,
			  uint64_t to)
{
	return to && lives_ns(l, &life->born) <= to &&
	       (!life->died.position || lives_ns(l, &life->died) >= from);
}

/* NULL: it is not known. */
static const struct life_uses *row_of_life(const struct model *m, uint32_t i, bool *thinned)
{
	const struct uses *u = &m->uses;
	const struct life *life = lives_at(&m->lives, i);

	*thinned = lived_through(&m->lives, life, u->thinned_from, u->thinned_to);
	return uses_known(m) && (!*thinned || u->thinned_ends) ? rows_at(&u->lives, life->uses)
							       : NULL;
}

bool uses_begin(const struct model *m, uint32_t life, uint32_t work)
{
	bool thinned;
	const struct life_uses *x = row_of_life(m, life, &thinned);

	return x && x->first == work;
}

void uses_of(const struct model *m, uint32_t i, struct block_uses *out)
{
	const struct uses *u = &m->uses;
	bool thinned;
	const struct life_uses *x = row_of_life(m, i, &thinned);

	*out = (struct block_uses){ 0 };
	if (!x)
		return;
	*out = (struct block_uses){ .known = true,
				    .count = x->count,
				    .first_ns = uses_work(u, x->first)->ns,
				    .last_ns = uses_work(u, x->last)->ns,
				    .first_seq = uses_work(u, x->first)->seq,
				    .last_seq = uses_work(u, x->last)->seq,
				    .works = *x };
	out->whole = !thinned;
	if (thinned)
		return;
	out->pause_from_ns = uses_work(u, x->pause)->ns;
	out->pause_ns = uses_work(u, x->resume)->ns - out->pause_from_ns;
}

/* ---- a moment ---- */

/* For blocks that are used both before and after the moment: finds the nearest works by a scan. */
static void scan_around(const struct model *m, const struct moment *mo, const struct map *open,
			struct use_around *all)
{
	struct uses_cursor c;
	size_t left = open->count;
	const uint32_t *at;

	for (uses_first(&c, &m->uses); left && uses_next(&c);) {
		bool later = uses_work(&m->uses, c.work)->seq > mo->seq;

		chunks_rest(m->lives.pool);
		for (uint32_t i = 0; i < c.count; i++) {
			at = map_get(open, c.lives[i]);
			if (!at || all[*at].after)
				continue;
			*(later ? &all[*at].after : &all[*at].before) = c.work;
			left -= later;
		}
	}
}

struct use_around *uses_around(const struct model *m, const struct moment *mo)
{
	const struct uses *u = &m->uses;
	bool thinned = mo->time_ns >= u->thinned_from && mo->time_ns <= u->thinned_to;
	struct use_around *all = need_new((mo->count + 1) * sizeof(*all));
	struct map open = { 0 };
	struct block_uses x;

	for (size_t i = 0; i < mo->count; i++) {
		uses_of(m, mo->blocks[i].life - 1, &x);
		all[i].known = x.known && (x.whole || !thinned || x.last_seq <= mo->seq ||
					   x.first_seq > mo->seq);
		if (x.last_seq <= mo->seq)
			all[i].before = x.works.last;
		else if (x.first_seq > mo->seq)
			all[i].after = x.works.first;
		else if (all[i].known)
			*map_put(&open, mo->blocks[i].life - 1, NULL) = (uint32_t)i;
	}
	if (open.count)
		scan_around(m, mo, &open, all);
	map_free(&open);
	return all;
}

uint32_t uses_passed(const struct model *m, const struct life_uses *x, uint64_t seq)
{
	const struct uses *u = &m->uses;
	size_t end = SORTED_FIRST(u->works.count, i, uses_work(u, (uint32_t)i)->seq <= seq);

	return (uint32_t)end - x->last;
}

bool uses_waits(const struct model *m, const struct life_uses *x, uint64_t seq)
{
	return uses_passed(m, x, seq) <= 2 * x->widest;
}

/* The first event in [from, until) in which memory ran out on the device; UINT64_MAX = none. */
static uint64_t refused_in(const struct model *m, int device, uint64_t from, uint64_t until)
{
	uint16_t kind = m->devices[device].self_reported ? GMT_BLOCK_OOM : GMT_MEM_FAIL;
	const struct row_store *marks = &m->lives.marks;
	size_t i = SORTED_FIRST(marks->count, n,
				((struct lives_mark *)rows_at(marks, (uint32_t)n))->seq < from);

	for (; i < marks->count; i++) {
		const struct lives_mark *mark = rows_at(marks, (uint32_t)i);

		if (mark->seq >= until)
			break;
		if (mark->device == device && mark->kind == kind)
			return mark->seq;
	}
	return UINT64_MAX;
}

uint64_t uses_refused(const struct model *m, const struct moment *mo)
{
	return refused_in(m, mo->device, mo->seq, UINT64_MAX);
}

enum use_future uses_future(const struct model *m, const struct moment *mo, uint32_t life,
			    uint64_t refused)
{
	uint64_t died = lives_seq(&m->lives, &lives_at(&m->lives, life)->died);
	struct block_uses x;

	uses_of(m, life, &x);
	if (!uses_complete(m) || !x.count || x.last_seq > mo->seq)
		return FUTURE_USED;
	if (died && died < refused)
		return FUTURE_OVER;
	if (refused < UINT64_MAX || !m->ended)
		return FUTURE_REFUSED;
	if (!x.whole)
		return FUTURE_USED;
	return uses_waits(m, &x.works, UINT64_MAX) ? FUTURE_USED : FUTURE_OVER;
}

bool uses_end(const struct model *m, int device, uint32_t life, struct use_refusals *r)
{
	struct moment last = { .device = device };
	struct block_uses x;

	uses_of(m, life, &x);
	last.seq = x.last_seq;
	if (!r->next || last.seq > r->next)
		*r = (struct use_refusals){ last.seq, uses_refused(m, &last) };
	else if (last.seq < r->from) /* from there on the answer is known */
		*r = (struct use_refusals){
			last.seq,
			arithmetic_least(refused_in(m, device, last.seq, r->from), r->next)
		};
	return uses_future(m, &last, life, r->next) == FUTURE_OVER;
}

/* ---- peak if each block lived from its first to its last use ---- */

enum { BOUND_AHEAD = 1 << 16 };

/* Changes of the next BOUND_AHEAD works are in `near`, by the work's number. Later changes are in
 * `far`: they are few, of lives that are used for long. */
struct bound {
	const struct model *model;
	int64_t near[BOUND_AHEAD]; /* change of the bytes in use */
	struct bound_far {
		uint32_t work;
		int64_t bytes;
	} * far;
	size_t far_count, far_room;
	struct bound_end {
		uint64_t seq, bytes;
	} * ends; /* of live lives without uses: a heap, the first end on top */
	size_t end_count, end_room;
	uint32_t next; /* the next work to apply */
	uint64_t now, most;
};

static bool counts_on(const struct model *m, const struct life *life, int device)
{
	const struct position *p = lives_position(&m->lives, life->born.position);

	return p->counts && p->device == device &&
	       (p->layer == LIFE_BLOCK) == m->devices[device].framework;
}

static void change_bound(struct bound *b, uint32_t work, int64_t bytes)
{
	if (work - b->next < BOUND_AHEAD)
		b->near[work % BOUND_AHEAD] += bytes;
	else
		*need_item(b->far, b->far_count, b->far_room) = (struct bound_far){ work, bytes };
}

static void bring_near(struct bound *b)
{
	size_t count = b->far_count;

	b->far_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct bound_far x = b->far[i];

		change_bound(b, x.work, x.bytes);
	}
}

static void apply_works(struct bound *b, uint64_t seq)
{
	const struct uses *u = &b->model->uses;

	for (; b->next < u->works.count && uses_work(u, b->next)->seq <= seq; b->next++) {
		int64_t *change = &b->near[b->next % BOUND_AHEAD];

		if (b->next % BOUND_AHEAD == 0)
			bring_near(b);
		b->now += (uint64_t)*change;
		b->most = b->now > b->most ? b->now : b->most;
		*change = 0;
	}
}

/* Adds the end of a life without uses to the heap. */
static void add_end(struct bound *b, uint64_t seq, uint64_t bytes)
{
	size_t i = b->end_count, up;

	need_item(b->ends, b->end_count, b->end_room);
	for (; i && b->ends[up = (i - 1) / 2].seq > seq; i = up)
		b->ends[i] = b->ends[up];
	b->ends[i] = (struct bound_end){ seq, bytes };
}

static void drop_first_end(struct bound *b)
{
	const struct bound_end last = b->ends[--b->end_count];
	size_t i = 0, down;

	for (; (down = 2 * i + 1) < b->end_count; i = down) {
		if (down + 1 < b->end_count && b->ends[down + 1].seq < b->ends[down].seq)
			down++;
		if (last.seq <= b->ends[down].seq)
			break;
		b->ends[i] = b->ends[down];
	}
	b->ends[i] = last;
}

static void apply_up_to(struct bound *b, uint64_t seq)
{
	for (; b->end_count && b->ends->seq <= seq; drop_first_end(b)) {
		apply_works(b, b->ends->seq);
		b->now -= b->ends->bytes;
	}
	apply_works(b, seq);
}

/* A life with uses counts from its first to its last use, both of which come after its birth. */
static void bound_life(struct bound *b, const struct life *life)
{
	const struct lives *l = &b->model->lives;
	const struct life_uses *x = rows_at(&b->model->uses.lives, life->uses);
	uint64_t size = lives_request(l, life)->size;

	apply_up_to(b, lives_seq(l, &life->born));
	if (x->count) {
		change_bound(b, x->first, (int64_t)size);
		change_bound(b, x->last + 1, -(int64_t)size);
		return;
	}
	b->now += size;
	b->most = b->now > b->most ? b->now : b->most;
	if (life->died.position)
		add_end(b, lives_seq(l, &life->died), size);
}

uint64_t uses_bound(const struct model *m, int device)
{
	struct bound *b;
	uint64_t most;

	if (!uses_complete(m) || m->left_out)
		return USES_UNKNOWN;
	b = need_new(sizeof(*b));
	b->model = m;
	b->next = 1;
	for (uint32_t i = 0; i < m->lives.rows.count; i++) {
		const struct life *life;

		chunks_rest(m->lives.pool);
		life = lives_at(&m->lives, i);
		if (counts_on(m, life, device))
			bound_life(b, life);
	}
	apply_up_to(b, UINT64_MAX);
	most = b->most;
	free(b->far);
	free(b->ends);
	free(b);
	return most;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "lives.h"

#include "../base/sorted.h"

/* lives_walk merges births, which are rows, and changes, which are packed, in order of events. */

static void see_birth(struct lives_walk *w)
{
	const struct lives *l = w->changes.lives;

	w->born_seq =
		w->next < l->rows.count ? lives_seq(l, &lives_at(l, w->next)->born) : UINT64_MAX;
}

/* Changes in the event of a birth come before it if they are of an earlier life, else after it. */
static bool change_is_next(const struct lives_walk *w)
{
	const struct lives_writer *now = &w->changes.now;

	if (!w->changes.change)
		return false;
	return now->seq < w->born_seq || (now->seq == w->born_seq && now->life < w->next);
}

static void take_change(struct lives_walk *w)
{
	w->change = w->changes.change;
	w->now = w->changes.now;
	lives_next(&w->changes);
}

uint64_t lives_walk_ns(const struct lives_walk *w)
{
	const struct lives *l = w->changes.lives;
	const struct life *life = w->change ? lives_at(l, w->now.life) : NULL;

	if (w->change == CHANGE_BORN)
		return lives_ns(l, &life->born);
	return w->change == CHANGE_DIED ? lives_ns(l, &life->died) : w->now.ns;
}

void lives_walk_next(struct lives_walk *w)
{
	const struct lives *l = w->changes.lives;

	if (change_is_next(w)) {
		take_change(w);
		return;
	}
	w->change = w->next < l->rows.count ? CHANGE_BORN : CHANGE_NONE;
	if (!w->change)
		return;
	w->now = (struct lives_writer){ .seq = w->born_seq, .life = w->next++ };
	see_birth(w);
}

void lives_walk_skip(struct lives_walk *w, uint32_t life)
{
	w->next = life;
	see_birth(w);
}

void lives_walk_jump(struct lives_walk *w, uint64_t seq)
{
	struct lives_cursor *c = &w->changes;
	const struct lives *l = c->lives;
	size_t pieces = SORTED_FIRST(l->piece_count, i, l->pieces[i].seq < seq);

	if (pieces > c->place.piece + 1) {
		c->place = (struct packed_place){ .piece = pieces - 1 };
		c->now = l->pieces[pieces - 1];
		lives_next(c);
	}
	while (c->change && c->now.seq < seq)
		lives_next(c);
	lives_walk_skip(w, lives_born_by(l, seq - 1));
	lives_walk_next(w);
}

void lives_walk_first(struct lives_walk *w, const struct lives *l)
{
	*w = (struct lives_walk){ 0 };
	lives_first(&w->changes, l);
	see_birth(w);
	lives_walk_next(w);
}

void lives_init(struct lives *l)
{
	*l = (struct lives){ .recent = need_new(sizeof(*l->recent)) };
	l->pool = chunks_new_pool();
	levels_init(&l->levels, l->pool);
	packed_init(&l->changes, l->pool);
	rows_init(&l->rows, sizeof(struct life), l->pool);
	rows_init(&l->arrivals, sizeof(struct lives_arrival), l->pool);
	rows_init(&l->retaken, sizeof(struct lives_retaken), l->pool);
	rows_init(&l->notes, sizeof(struct life_note), l->pool);
	rows_init(&l->marks, sizeof(struct lives_mark), NULL);
	rows_init(&l->runs, sizeof(struct lives_run), NULL);
	rows_init(&l->positions, sizeof(struct position), NULL);
	rows_init(&l->requests, sizeof(struct life_request), NULL);
	rows_init(&l->facts, sizeof(struct life_facts), NULL);
	rows_add(&l->positions);
	rows_add(&l->requests);
	rows_add(&l->notes);
	rows_add(&l->facts);
}

void lives_free(struct lives *l)
{
	rows_free(&l->rows);
	levels_free(&l->levels);
	rows_free(&l->marks);
	rows_free(&l->arrivals);
	rows_free(&l->retaken);
	rows_free(&l->runs);
	rows_free(&l->positions);
	rows_free(&l->requests);
	rows_free(&l->notes);
	rows_free(&l->facts);
	packed_free(&l->changes);
	free(l->pieces);
	chunks_free_pool(l->pool);
	free(l->recent);
}

#define POSITION_SHARED (sizeof(struct position) - offsetof(struct position, step))

/* True if row `at` equals `as`, and 32-bit offsets from it reach `as`. */
static bool stands_for(const struct lives *l, uint32_t at, const struct position *as)
{
	const struct position *p = lives_position(l, at);

	return at && rows_equal(&p->step, &as->step, POSITION_SHARED) && as->seq >= p->seq &&
	       as->seq - p->seq <= UINT32_MAX && as->ns >= p->ns && as->ns - p->ns <= UINT32_MAX;
}

static uint32_t add_position(struct lives *l, const struct position *as)
{
	*(struct position *)rows_add(&l->positions) = *as;
	return l->positions.count - 1;
}

struct life_moment lives_moment(struct lives *l, const struct position *as)
{
	uint32_t *latest = &l->recent->latest[as->counts], *at = latest;
	const struct position *p;

	if (!stands_for(l, *at, as)) {
		at = &l->recent->positions[rows_hash(&as->step, POSITION_SHARED)];
		if (!stands_for(l, *at, as))
			*at = add_position(l, as);
		*latest = *at;
	}
	p = lives_position(l, *at);
	return (struct life_moment){ *at, (uint32_t)(as->seq - p->seq),
				     (uint32_t)(as->ns - p->ns) };
}

uint32_t lives_add(struct lives *l, const struct life_request *r)
{
	struct life *life = rows_add(&l->rows);

	life->request = rows_share(&l->requests, l->recent->requests, r);
	if (l->rows.count % LIVES_RUN == 1)
		rows_add(&l->runs);
	return l->rows.count - 1;
}

void lives_end(struct lives *l, uint32_t life, const struct position *at, uint32_t stack)
{
	struct lives_run *run = rows_at(&l->runs, life / LIVES_RUN);
	struct life *row = rows_change(&l->rows, life);

	row->died = lives_moment(l, at);
	row->died_stack = stack;
	run->last = at->seq;
	run->ended++;
}

uint32_t lives_skip(const struct lives *l, uint32_t i, uint64_t seq)
{
	while (i % LIVES_RUN == 0 && i < l->rows.count) {
		const struct lives_run *run = rows_at(&l->runs, i / LIVES_RUN);

		if (run->ended < LIVES_RUN || run->last >= seq)
			break;
		i += LIVES_RUN;
	}
	return i;
}

uint32_t lives_born_by(const struct lives *l, uint64_t seq)
{
	return (uint32_t)SORTED_FIRST(l->rows.count, i,
				      lives_seq(l, &lives_at(l, (uint32_t)i)->born) <= seq);
}

uint32_t lives_before(const struct lives *l, uint64_t seq, uint32_t stack)
{
	for (uint32_t i = lives_born_by(l, seq - 1); i-- > 0;)
		if (lives_request(l, lives_at(l, i))->stack == stack)
			return i;
	return UINT32_MAX;
}

void lives_put_facts(struct lives *l, struct life *life, const struct life_facts *facts)
{
	static const struct life_facts none;
	struct life_facts f = *facts;
	struct life_note *note;

	if (rows_equal(facts, &none, sizeof(none)))
		return;
	if (!life->note) {
		life->note = l->notes.count;
		rows_add(&l->notes);
	}
	note = rows_change(&l->notes, life->note);
	note->save_ns = f.save_ns;
	note->grad_ns = f.grad_ns;
	note->leaf_ns = f.leaf_ns;
	f.save_ns = f.grad_ns = f.leaf_ns = 0;
	note->facts = rows_share(&l->facts, l->recent->facts, &f);
}

struct life_facts lives_facts(const struct lives *l, const struct life *life)
{
	const struct life_note *note = rows_at(&l->notes, life->note);
	struct life_facts f = *(const struct life_facts *)rows_at(&l->facts, note->facts);

	f.save_ns = note->save_ns;
	f.grad_ns = note->grad_ns;
	f.leaf_ns = note->leaf_ns;
	return f;
}

struct lives_mark *lives_add_mark(struct lives *l, const struct gmt_event *e,
				  enum block_stage stage)
{
	struct lives_mark *m = rows_add(&l->marks);

	*m = (struct lives_mark){ .seq = e->seq,
				  .ns = e->time_ns,
				  .number = e->arg0,
				  .size = e->size,
				  .stream = e->stream,
				  .name = e->name,
				  .thread = e->thread,
				  .stack = e->stack,
				  .device = e->device,
				  .kind = e->kind,
				  .flags = e->flags,
				  .stage = stage };
	return m;
}

/* A row: a byte with the change and the number of events since the row before (15 = it follows as a
 * varint), the life's number, and the difference of the time, but not for deaths. */
void lives_note(struct lives *l, enum life_change change, uint32_t life, uint64_t seq, uint64_t ns)
{
	uint8_t *p = packed_begin(&l->changes);
	uint64_t more = seq - l->last.seq;

	if (!l->changes.used)
		*need_item(l->pieces, l->piece_count, l->piece_room) = l->last;
	*p++ = (uint8_t)(change | (more < 15 ? more : 15) << 4);
	if (more >= 15)
		p = put_varint(p, more);
	p = packed_put_life(p, life, l->last.life);
	if (change != CHANGE_DIED) {
		p = put_varint(p, zigzag(ns - l->last.ns));
		l->last.ns = ns;
	}
	l->last.seq = seq;
	l->last.life = life;
	packed_end(&l->changes, p);
}

unsigned lives_state(unsigned before, enum life_change change)
{
	static const struct {
		uint8_t clear, set;
	} does[] = {
		[CHANGE_SAVED_FIRST] = { 0, LIFE_SAVED_BEFORE },
		[CHANGE_SAVED] = { 0, LIFE_SAVED },
		[CHANGE_RELEASED] = { LIFE_SAVED, 0 },
		[CHANGE_BACKWARD_OVER] = { 0, LIFE_BACKWARD_OVER },
		[CHANGE_FILLED] = { 0, LIFE_HOLDS_GRADIENTS },
		[CHANGE_EMPTIED] = { LIFE_HOLDS_GRADIENTS, 0 },
		[CHANGE_SLEPT] = { 0, LIFE_ASLEEP },
		[CHANGE_WOKE] = { LIFE_ASLEEP, 0 },
	};

	return (before & ~(unsigned)does[change].clear) | does[change].set;
}

void lives_first(struct lives_cursor *c, const struct lives *l)
{
	*c = (struct lives_cursor){ .lives = l };
	lives_next(c);
}

void lives_next(struct lives_cursor *c)
{
	const uint8_t *from = packed_row(&c->lives->changes, &c->place), *p = from;
	uint64_t v;

	c->change = from ? *p & 15 : CHANGE_NONE;
	if (!from)
		return;
	v = *p++ >> 4;
	if (v == 15)
		p = packed_get(p, &v);
	c->now.seq += v;
	p = packed_get_life(p, &c->now.life);
	if (c->change != CHANGE_DIED) {
		p = packed_get(p, &v);
		c->now.ns += unzigzag(v);
	}
	c->place.at += (size_t)(p - from);
}

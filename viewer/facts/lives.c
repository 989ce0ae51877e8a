/* SPDX-License-Identifier: Apache-2.0 */
#include "lives.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../base/need.h"

#define LOG_PIECE (1u << 18)
#define LOG_MOST  32 /* bytes of one change */

void lives_init(struct lives *l)
{
	*l = (struct lives){ 0 };
	rows_init(&l->rows, sizeof(struct life));
	rows_init(&l->positions, sizeof(struct position));
	rows_init(&l->facts, sizeof(struct life_fact));
	rows_init(&l->levels, sizeof(struct device_level));
	rows_init(&l->marks, sizeof(struct lives_mark));
	rows_init(&l->runs, sizeof(struct lives_run));
	rows_add(&l->positions);
	rows_add(&l->facts);
}

void lives_free(struct lives *l)
{
	rows_free(&l->rows);
	rows_free(&l->positions);
	rows_free(&l->facts);
	rows_free(&l->levels);
	rows_free(&l->marks);
	rows_free(&l->runs);
	for (size_t i = 0; i < l->log_count; i++)
		munmap(l->log[i], LOG_PIECE);
	free(l->log);
	l->log = NULL;
	l->log_count = 0;
}

static bool same(const struct position *a, const struct position *b)
{
	return a->step == b->step && a->stream == b->stream && a->thread == b->thread &&
	       a->forwards == b->forwards && a->backwards == b->backwards && a->steps == b->steps &&
	       a->device == b->device && a->flags == b->flags && a->memory == b->memory &&
	       a->stage == b->stage && a->layer == b->layer &&
	       a->after_forward == b->after_forward && a->after_step == b->after_step &&
	       a->in_node == b->in_node && a->asked == b->asked && a->counts == b->counts;
}

/* Offsets from it are short. */
static bool reaches(const struct position *p, const struct position *as)
{
	return as->seq >= p->seq && as->seq - p->seq <= UINT32_MAX && as->ns >= p->ns &&
	       as->ns - p->ns <= UINT32_MAX;
}

static unsigned hash(const struct position *p)
{
	uint64_t h = p->step ^ p->stream * 3;

	h = (h ^ p->thread) * 0x9e3779b97f4a7c15u;
	h = (h ^ ((uint64_t)p->forwards << 32 | p->backwards)) * 0x9e3779b97f4a7c15u;
	h ^= (uint64_t)p->flags << 40 | (uint64_t)p->memory << 24 | p->stage << 16 | p->layer << 8;
	h ^= (uint32_t)p->device | p->after_forward << 4 | p->after_step << 5 | p->in_node << 6;
	h = (h ^ h >> 29 ^ p->steps) * 0x9e3779b97f4a7c15u;
	return h >> 56;
}

struct life_moment lives_moment(struct lives *l, const struct position *as)
{
	uint32_t *at = &l->recent[hash(as)];
	struct position *p = rows_at(&l->positions, *at);

	if (!*at || !same(p, as) || !reaches(p, as)) {
		*at = l->positions.count;
		p = rows_add(&l->positions);
		*p = *as;
	}
	return (struct life_moment){ *at, (uint32_t)(as->seq - p->seq),
				     (uint32_t)(as->ns - p->ns) };
}

uint32_t lives_add(struct lives *l)
{
	rows_add(&l->rows);
	if (l->rows.count % LIVES_RUN == 1)
		rows_add(&l->runs);
	return l->rows.count - 1;
}

/* As lives_moment; ends say little, and most say what the one before in the same stage said. */
static struct life_moment end_moment(struct lives *l, const struct position *as)
{
	uint32_t *at = &l->ends[as->stage];
	const struct position *p = lives_position(l, *at);
	struct life_moment m;

	if (*at && p->forwards == as->forwards && p->backwards == as->backwards && reaches(p, as))
		return (struct life_moment){ *at, (uint32_t)(as->seq - p->seq),
					     (uint32_t)(as->ns - p->ns) };
	m = lives_moment(l, as);
	*at = m.position;
	return m;
}

void lives_end(struct lives *l, uint32_t life, const struct position *at, uint32_t stack)
{
	struct lives_run *run = rows_at(&l->runs, life / LIVES_RUN);
	struct life *row = lives_at(l, life);

	row->died = end_moment(l, at);
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
	uint32_t from = 0, to = l->rows.count;

	while (from < to) {
		uint32_t i = from + (to - from) / 2;

		if (lives_seq(l, &lives_at(l, i)->born) <= seq)
			from = i + 1;
		else
			to = i;
	}
	return from;
}

static struct life_fact *fact_of_kind(struct lives *l, const struct life *life, uint16_t kind)
{
	struct life_fact *f = life->facts ? rows_at(&l->facts, life->facts) : NULL;

	while (f && f->kind != kind)
		f = f->next ? rows_at(&l->facts, f->next) : NULL;
	return f;
}

struct life_fact *lives_put_fact(struct lives *l, struct life *life, uint16_t kind)
{
	struct life_fact *f = fact_of_kind(l, life, kind);

	if (f)
		return f;
	f = rows_add(&l->facts);
	f->kind = kind;
	f->next = life->facts;
	life->facts = l->facts.count - 1;
	return f;
}

void lives_add_level(struct lives *l, const struct device_level *level)
{
	*(struct device_level *)rows_add(&l->levels) = *level;
}

void lives_add_mark(struct lives *l, const struct gmt_event *e, enum block_stage stage)
{
	*(struct lives_mark *)rows_add(&l->marks) = (struct lives_mark){ .seq = e->seq,
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
}

const struct life_fact *lives_fact(const struct lives *l, uint32_t i)
{
	return i ? rows_at(&l->facts, i) : NULL;
}

static uint8_t *room_for_change(struct lives *l)
{
	if (!l->log_count || l->log_used + LOG_MOST > LOG_PIECE) {
		l->log = need_grow(l->log, &l->log_room, l->log_count, sizeof(*l->log));
		l->log[l->log_count++] = need_pages(LOG_PIECE);
		l->log_used = 0;
	}
	return l->log[l->log_count - 1] + l->log_used;
}

static uint8_t *put(uint8_t *p, uint64_t v)
{
	for (; v > 127; v >>= 7)
		*p++ = (uint8_t)(v | 128);
	*p++ = (uint8_t)v;
	return p;
}

static const uint8_t *get(const uint8_t *p, uint64_t *v)
{
	unsigned shift = 0;

	for (*v = 0; *p & 128; shift += 7)
		*v |= (uint64_t)(*p++ & 127) << shift;
	*v |= (uint64_t)*p++ << shift;
	return p;
}

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A byte with the change and events since the one before (31: they follow), then the difference of
 * the life's number, then that of the time. A 0 ends a piece. */
void lives_note(struct lives *l, enum life_change change, uint32_t life, uint64_t seq, uint64_t ns)
{
	uint8_t *from = room_for_change(l), *p = from;
	uint64_t more = seq - l->last.seq;

	*p++ = (uint8_t)(change | (more < 31 ? more : 31) << 3);
	if (more >= 31)
		p = put(p, more);
	p = put(p, zigzag((int64_t)life - (int64_t)l->last.life));
	if (change != CHANGE_DIED) {
		p = put(p, zigzag((int64_t)(ns - l->last.ns)));
		l->last.ns = ns;
	}
	l->last.seq = seq;
	l->last.life = life;
	l->log_used += (size_t)(p - from);
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
	};

	return (before & ~(unsigned)does[change].clear) | does[change].set;
}

void lives_first(struct lives_cursor *c, const struct lives *l)
{
	*c = (struct lives_cursor){ .lives = l };
	lives_next(c);
}

static const uint8_t *change_at(struct lives_cursor *c)
{
	const struct lives *l = c->lives;

	while (c->piece < l->log_count) {
		size_t end = c->piece + 1 == l->log_count ? l->log_used : LOG_PIECE;

		if (c->at < end && l->log[c->piece][c->at])
			return l->log[c->piece] + c->at;
		c->piece++;
		c->at = 0;
	}
	return NULL;
}

void lives_next(struct lives_cursor *c)
{
	const uint8_t *from = change_at(c), *p = from;
	uint64_t v;

	c->change = from ? *p & 7 : CHANGE_NONE;
	if (!from)
		return;
	v = *p++ >> 3;
	if (v == 31)
		p = get(p, &v);
	c->now.seq += v;
	p = get(p, &v);
	c->now.life = (uint32_t)((int64_t)c->now.life + unzigzag(v));
	if (c->change != CHANGE_DIED) {
		p = get(p, &v);
		c->now.ns += (uint64_t)unzigzag(v);
	}
	c->at += (size_t)(p - from);
}

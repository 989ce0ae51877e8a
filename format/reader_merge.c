/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts events in order of seq. Blocks are opened in order of their first seq, only when an event
 * that they could precede is due, so few are open at a time; the live events are one more source.
 * An event that comes twice (in a block and still in a ring) is passed on once.
 */
#include <string.h>

#include "reader_parts.h"

#define OPEN_MAX 64 /* blocks open at a time; more than that overlap only in a forged file */
#define LIVE	 OPEN_MAX

struct source {
	struct gmt_event *events;
	size_t used, at, room;
};

struct merge {
	struct gmt_reader *r;
	const struct gmt_tool *tool;
	void *ctx;
	uint64_t from_ns, to_ns;
	size_t next; /* block to open next */
	uint64_t done_bytes, live_events;
	struct source sources[OPEN_MAX + 1];
	struct gmt_event last;
	bool any_passed;
};

static int by_seq_and_time(const void *a, const void *b)
{
	const struct gmt_event *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static bool wanted(const struct merge *m, const struct gmt_event *e)
{
	return e->time_ns >= m->from_ns && e->time_ns <= m->to_ns;
}

/* The events of the block that was begun, those before the first bad record if there is one. */
static int decode_block(struct merge *m, struct reader_block *b, struct source *s)
{
	bool sorted = true;

	for (uint32_t i = 0; i < b->head.count; i++) {
		struct gmt_event *e;

		if (!reader_grow((void **)&s->events, &s->room, s->used, sizeof(*e)))
			return -GMT_ERR_NO_MEMORY;
		e = &s->events[s->used];
		if (reader_event(m->r, e) < 0) {
			if (!m->r->refused)
				reader_count_damage(m->r, b);
			break;
		}
		if (!wanted(m, e))
			continue;
		sorted &= s->used == 0 || e[-1].seq <= e->seq;
		s->used++;
	}
	reader_events_end(m->r, b);
	if (!sorted)
		reader_sort(s->events, s->used, sizeof(s->events[0]), by_seq_and_time);
	return 0;
}

static struct source *free_source(struct merge *m)
{
	for (int i = 0; i < OPEN_MAX; i++)
		if (m->sources[i].at == m->sources[i].used)
			return &m->sources[i];
	return NULL;
}

static int open_block(struct merge *m, struct source *s)
{
	struct reader_block *b = &m->r->blocks[m->next++];
	const struct gmt_block_header *h = &b->head;
	int rc = 0;

	s->at = s->used = 0;
	if (h->count && h->last_ns >= m->from_ns && h->first_ns <= m->to_ns &&
	    reader_events_begin(m->r, b))
		rc = decode_block(m, b, s);
	if (m->r->refused)
		return m->r->refused;
	m->done_bytes += sizeof(*h) + h->stored_bytes;
	if (m->tool->progress)
		m->tool->progress(m->ctx, m->done_bytes, m->r->size);
	return rc;
}

static const struct gmt_event *head_of(const struct source *s)
{
	return s->at < s->used ? &s->events[s->at] : NULL;
}

/* The source whose event is next, and up to which seq (exclusive) it may go on alone. */
static struct source *pick(struct merge *m, uint64_t *limit)
{
	struct source *best = NULL;

	*limit = m->next < m->r->blocks_used ? m->r->blocks[m->next].head.first_seq : UINT64_MAX;
	for (int i = 0; i <= LIVE; i++) {
		const struct gmt_event *e = head_of(&m->sources[i]);

		if (!e)
			continue;
		if (!best || e->seq < head_of(best)->seq) {
			if (best && head_of(best)->seq < *limit)
				*limit = head_of(best)->seq;
			best = &m->sources[i];
		} else if (e->seq < *limit) {
			*limit = e->seq;
		}
	}
	return best;
}

static int pass_on(struct merge *m, const struct gmt_event *e, bool live)
{
	const struct gmt_event *t = &m->last;

	if (m->any_passed && t->seq == e->seq && t->time_ns == e->time_ns && t->kind == e->kind &&
	    t->thread == e->thread)
		return 0;
	m->last = *e;
	m->any_passed = true;
	if (!wanted(m, e))
		return 0;
	m->live_events += live;
	return m->tool->event ? m->tool->event(m->ctx, e) : 0;
}

static int merge_run(struct merge *m, struct source *s, uint64_t limit)
{
	int rc = 0;

	do
		rc = pass_on(m, &s->events[s->at++], s == &m->sources[LIVE]);
	while (rc == 0 && s->at < s->used && s->events[s->at].seq < limit);
	return rc;
}

static int merge_all(struct merge *m)
{
	for (;;) {
		bool more = m->next < m->r->blocks_used;
		struct source *spare = more ? free_source(m) : NULL;
		uint64_t limit;
		struct source *s = pick(m, &limit);
		int rc;

		if (!s && !more)
			return 0;
		if (spare && (!s || m->r->blocks[m->next].head.first_seq <= head_of(s)->seq))
			rc = open_block(m, spare);
		else
			rc = merge_run(m, s, limit);
		if (rc)
			return rc;
	}
}

int reader_merge(struct gmt_reader *r, size_t first, uint64_t from_ns, uint64_t to_ns,
		 const struct gmt_tool *tool, void *ctx)
{
	struct merge *m = reader_memory(NULL, sizeof(*m));
	int rc;

	if (!m)
		return -GMT_ERR_NO_MEMORY;
	*m = (struct merge){ .r = r, .tool = tool, .ctx = ctx, .next = first };
	m->from_ns = from_ns;
	m->to_ns = to_ns;
	m->sources[LIVE].events = r->live.events;
	m->sources[LIVE].used = r->live.events_used;
	rc = merge_all(m);
	if (m->live_events > r->info.live_events)
		r->info.live_events = m->live_events;
	for (int i = 0; i < OPEN_MAX; i++)
		reader_memory(m->sources[i].events, 0);
	reader_memory(m, 0);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts events in order of seq. Blocks are opened in order of their first seq, only when an event
 * that they could precede is due, so few are open at a time; the live events are one more source.
 * An event that comes twice (in a block and still in a ring) is passed on once.
 */
#include <string.h>

#include "reader_ahead.h"
#include "record.h"

#define OPEN_MAX 64 /* blocks open at a time; more than that overlap only in a forged file */
#define LIVE	 OPEN_MAX

struct source {
	struct reader_events events;
	size_t at, repeat; /* next event, next of its repeats */
};

struct merge {
	struct gmt_reader *r;
	const struct gmt_tool *tool;
	void *ctx;
	struct reader_times times;
	size_t next;		    /* block to open next */
	struct reader_ahead *ahead; /* or NULL: blocks are decoded here */
	uint64_t done_bytes, live_events;
	struct source sources[OPEN_MAX + 1];
	struct {
		uint64_t seq, time_ns;
		uint32_t thread;
		uint16_t kind;
	} last; /* that was passed on */
	bool any_passed;
};

static struct source *free_source(struct merge *m)
{
	for (int i = 0; i < OPEN_MAX; i++)
		if (m->sources[i].at == m->sources[i].events.used)
			return &m->sources[i];
	return NULL;
}

static int open_block(struct merge *m, struct source *s)
{
	size_t at = m->next++;
	struct reader_block *b = &m->r->blocks[at];

	s->at = s->repeat = 0;
	if (m->ahead)
		reader_ahead_take(m->ahead, at, &s->events);
	else
		reader_decode(m->r, b, &m->times, &s->events);
	if (s->events.damaged)
		reader_count_damage(m->r, b);
	if (s->events.rc)
		return s->events.rc;
	m->done_bytes += sizeof(b->head) + b->head.stored_bytes;
	if (m->tool->progress)
		m->tool->progress(m->ctx, m->done_bytes, m->r->size);
	return 0;
}

static const struct gmt_event *head_of(const struct source *s)
{
	return s->at < s->events.used ? &s->events.items[s->at] : NULL;
}

/* The source with the lowest seq. *limit: its events below this seq precede those of all others. */
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

/* The repeat that begins with the source's next event, or NULL. */
static const struct gmt_repeat *next_repeat(struct source *s)
{
	const struct reader_events *from = &s->events;

	if (s->repeat == from->repeats_used ||
	    from->repeats[s->repeat].first_seq != from->items[s->at].seq)
		return NULL;
	return &from->repeats[s->repeat++];
}

static int pass_on(struct merge *m, struct source *s, bool live)
{
	const struct gmt_repeat *repeat = next_repeat(s);
	const struct gmt_event *e = &s->events.items[s->at++];
	int rc = 0;

	if (m->any_passed && m->last.seq == e->seq && m->last.time_ns == e->time_ns &&
	    m->last.kind == e->kind && m->last.thread == e->thread)
		return 0;
	m->last.seq = e->seq;
	m->last.time_ns = e->time_ns;
	m->last.thread = e->thread;
	m->last.kind = e->kind;
	m->any_passed = true;
	if (!reader_wants(&m->times, e))
		return 0;
	m->live_events += live;
	if (repeat && m->tool->repeat)
		rc = m->tool->repeat(m->ctx, repeat);
	return rc == 0 && m->tool->event ? m->tool->event(m->ctx, e) : rc;
}

static int merge_run(struct merge *m, struct source *s, uint64_t limit)
{
	int rc = 0;

	do
		rc = pass_on(m, s, s == &m->sources[LIVE]);
	while (rc == 0 && s->at < s->events.used && s->events.items[s->at].seq < limit);
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
	m->times = (struct reader_times){ from_ns, to_ns };
	m->sources[LIVE].events.items = r->live.events;
	m->sources[LIVE].events.used = r->live.events_used;
	m->ahead = reader_ahead_begin(r, first, &m->times);
	rc = merge_all(m);
	reader_ahead_end(m->ahead);
	if (m->live_events > r->info.live_events)
		r->info.live_events = m->live_events;
	for (int i = 0; i < OPEN_MAX; i++)
		reader_events_free(&m->sources[i].events);
	reader_memory(m, 0);
	return rc;
}

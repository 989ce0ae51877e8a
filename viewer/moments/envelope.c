/* SPDX-License-Identifier: Apache-2.0 */
#include "envelope.h"

/* The first place on the axis that belongs to bucket i. */
static uint64_t edge(const struct envelope *e, size_t i)
{
	return e->from + (uint64_t)(((unsigned __int128)e->span * i + e->count - 1) / e->count);
}

/* A bucket begins with the last state of the bucket before it. */
static void open_bucket(struct envelope *e, size_t i)
{
	struct envelope_bucket *b = &e->buckets[i];

	if (i)
		b->last = b[-1].last;
	if (i)
		memcpy(b->at_last, b[-1].at_last, sizeof(b->at_last));
	b->min = b->max = b->last;
	memcpy(b->at_max, b->at_last, sizeof(b->at_max));
	b->reserved = e->reserved;
	b->used = e->used;
}

static void count_event(void *ctx, UNUSED const struct series_event *ev)
{
	++*(uint64_t *)ctx;
}

static uint64_t count_events(struct model *facts)
{
	uint64_t events = 0;

	series_run(&(struct series){ .model = facts },
		   &(struct series_sink){ .event = count_event, .ctx = &events });
	return events;
}

void envelope_init(struct envelope *e, struct model *facts, int device, enum envelope_axis axis,
		   size_t most)
{
	bool time = axis == ENVELOPE_TIME;

	*e = (struct envelope){ .device = device, .axis = axis };
	e->from = time ? facts->first_ns : 0;
	e->span = time ? facts->last_ns - facts->first_ns + 1 : count_events(facts);
	if (!e->span)
		e->span++;
	e->count = most < e->span ? most : (size_t)e->span;
	e->buckets = need_new(e->count * sizeof(*e->buckets));
	e->buckets[0].last.time_ns = facts->first_ns;
	for (size_t i = 0; time && i < e->count; i++) {
		e->buckets[i].first_ns = edge(e, i);
		e->buckets[i].last_ns = edge(e, i + 1) - 1;
	}
	open_bucket(e, 0);
}

void envelope_free(struct envelope *e)
{
	free(e->buckets);
	*e = (struct envelope){ 0 };
}

void envelope_change(void *ctx, const struct series_change *c)
{
	struct envelope *e = ctx;

	if (c->device != e->device || !c->bytes)
		return;
	e->now[c->category] += (uint64_t)c->bytes;
	e->bytes += (uint64_t)c->bytes;
	e->changed = true;
}

/* Opens the event's bucket, never an earlier one: the times of threads can differ a little. */
static void next_bucket(struct envelope *e, const struct series_event *ev)
{
	uint64_t time = ev->time_ns > e->from ? ev->time_ns - e->from : 0;
	uint64_t place = e->axis == ENVELOPE_TIME ? time : e->events++;
	size_t to = (size_t)((unsigned __int128)place * e->count / e->span);
	struct envelope_bucket *b;

	to = to < e->count ? to : e->count - 1;
	while (e->at < to)
		open_bucket(e, ++e->at);
	if (e->axis == ENVELOPE_TIME)
		return;
	b = &e->buckets[e->at];
	b->first_ns = b->first_ns ? b->first_ns : ev->time_ns;
	b->last_ns = ev->time_ns;
}

static void note_point(struct envelope *e, struct envelope_bucket *b, const struct series_event *ev)
{
	b->events++;
	b->last = (struct envelope_point){ ev->seq, ev->time_ns, e->bytes };
	memcpy(b->at_last, e->now, sizeof(e->now));
	if (e->bytes < b->min.bytes)
		b->min = b->last;
	if (e->bytes <= b->max.bytes)
		return;
	b->max = b->last;
	memcpy(b->at_max, e->now, sizeof(e->now));
}

void envelope_event(void *ctx, const struct series_event *ev)
{
	struct envelope *e = ctx;
	const struct series_device *d = &ev->devices[e->device];
	struct envelope_bucket *b;

	next_bucket(e, ev);
	b = &e->buckets[e->at];
	if (e->changed)
		note_point(e, b, ev);
	e->changed = false;
	e->reserved = d->reserved;
	e->used = d->driver + d->context;
	b->reserved = e->reserved > b->reserved ? e->reserved : b->reserved;
	b->used = e->used > b->used ? e->used : b->used;
}

void envelope_end(struct envelope *e)
{
	while (e->at + 1 < e->count)
		open_bucket(e, ++e->at);
}

const struct envelope_bucket *envelope_peak(const struct envelope *e)
{
	return GREATEST_OF(x, e->buckets, e->count, true, x->max.bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "highest.h"

struct scan {
	struct highest *all;
	const struct model *model;
	uint64_t now[CATEGORIES];
	uint32_t came[CATEGORIES]; /* 1 + the life that came with the last event, else 0 */
	bool more[CATEGORIES];	   /* the last event brought bytes */
	bool changed;
};

static void note_change_of_class(void *ctx, const struct series_change *c)
{
	struct scan *s = ctx;

	s->now[c->category] += (uint64_t)c->bytes;
	if (c->bytes <= 0)
		return;
	s->more[c->category] = s->changed = true;
	if (c->kind == SERIES_BORN)
		s->came[c->category] = c->life + 1;
}

static void note_highest(struct scan *s, int c, const struct series_event *e)
{
	struct highest *h = &s->all[c];

	if (s->now[c] <= h->bytes)
		return;
	*h = (struct highest){ .bytes = s->now[c], .seq = e->seq, .time_ns = e->time_ns };
	if (s->came[c]) {
		const struct lives *all = &s->model->lives;
		const struct life *life = lives_at(all, s->came[c] - 1);
		const struct life_request *r = lives_request(all, life);

		h->stack = r->stack;
		h->node = lives_position(all, life->born.position)->memory ? 0 : r->name;
	}
}

/* Within an event a block may leave a class and join it again: sums count after it. */
static void end_of_highest_event(void *ctx, const struct series_event *e)
{
	struct scan *s = ctx;

	if (!s->changed)
		return;
	for (int c = 0; c < CATEGORIES; c++)
		if (s->more[c])
			note_highest(s, c, e);
	memset(s->came, 0, sizeof(s->came));
	memset(s->more, 0, sizeof(s->more));
	s->changed = false;
}

void highest_find(struct highest all[CATEGORIES], struct timeline *t)
{
	struct scan s = { .all = all, .model = &t->model };
	const struct series_sink sink = { .change = note_change_of_class,
					  .event = end_of_highest_event,
					  .ctx = &s };

	memset(all, 0, CATEGORIES * sizeof(*all));
	timeline_series(t, &sink, NULL, 0);
}

void highest_instant(struct instant *out, const struct highest *h, struct timeline *t)
{
	const struct extent x = { .peak = h->bytes,
				  .peak_seq = h->seq,
				  .peak_ns = h->time_ns,
				  .peak_stack = h->stack,
				  .peak_node = h->node };

	instant_of_peak(out, t, &x);
}

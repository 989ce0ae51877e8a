/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

void snapshot_sort(struct snapshot *s, struct timeline *t)
{
	struct classifier *c = timeline_classifier(t);

	FOR_EACH (struct block, b, s->moment.blocks, s->moment.count) {
		b->category = (uint16_t)classify(c, b).category;
		s->bytes[b->category] += b->size;
		s->blocks[b->category]++;
	}
}

/* The time of an event at which a span begins, ends or peaks, else 0. It need not be of a block. */
static uint64_t time_of_event(const struct timeline *t, uint64_t seq)
{
	for (size_t i = 0; i < t->model.spans.count; i++) {
		const struct extent *x = &t->model.spans.items[i].extent;

		if (x->last_seq == seq)
			return x->last_ns;
		if (x->first_seq == seq)
			return x->first_ns;
		if (x->peak_seq == seq)
			return x->peak_ns;
	}
	return 0;
}

void snapshot_take(struct snapshot *s, struct timeline *t, uint64_t seq)
{
	*s = (struct snapshot){ .model = &t->model,
				.moment = { .device = t->device,
					    .seq = seq,
					    .framework = t->framework,
					    .time_ns = time_of_event(t, seq) } };
	model_take(&t->model, &s->moment);
	snapshot_sort(s, t);
}

uint64_t snapshot_bytes(const struct snapshot *s, const char *category)
{
	int c = category_by_name(category);

	return c < 0 ? 0 : s->bytes[c];
}

/* Bytes by pass; the key is the pass's number. */
struct passes {
	MAP_OF(uint64_t) bytes;
	uint64_t most;
};

static void add_to_pass(struct passes *p, const struct block *b, uint32_t pass)
{
	uint64_t *bytes = map_item(&p->bytes, pass);

	*bytes += b->size;
	if (*bytes > p->most)
		p->most = *bytes;
}

size_t snapshot_passes(const struct snapshot *s, uint64_t since, uint32_t classes)
{
	struct passes p = { .most = 0 };
	size_t held = 0;

	FOR_EACH (const struct block, b, s->moment.blocks, s->moment.count) {
		const struct position *born = model_born(s->model, b);

		if (born->stage <= STAGE_FORWARD && b->seq >= since && classes & 1u << b->category)
			add_to_pass(&p, b, born->forwards);
	}
	for (size_t i = 0; i < p.bytes.count; i++)
		held += p.bytes.items[i] >= p.most / 8;
	map_items_free(&p.bytes);
	return held;
}

struct scan {
	struct extent *all;
	const struct model *model;
	uint64_t now[CATEGORIES];
	uint32_t came[CATEGORIES]; /* 1 + the life born in this class in this event, 0 = none */
	bool more[CATEGORIES];	   /* this event added bytes */
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
	struct extent *h = &s->all[c];

	if (s->now[c] <= h->peak)
		return;
	*h = (struct extent){ .peak = s->now[c], .peak_seq = e->seq, .peak_ns = e->time_ns };
	if (s->came[c]) {
		const struct lives *all = &s->model->lives;
		const struct life *life = lives_at(all, s->came[c] - 1);
		const struct life_request *r = lives_request(all, life);

		h->peak_stack = r->stack;
		h->peak_node = lives_position(all, life->born.position)->memory ? 0 : r->name;
	}
}

/* Sums are compared after an event, in which a block can leave a class and join it again. */
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

void highest_find(struct extent all[CATEGORIES], struct timeline *t)
{
	struct scan s = { .all = all, .model = &t->model };
	const struct series_sink sink = { .change = note_change_of_class,
					  .event = end_of_highest_event,
					  .ctx = &s };

	memset(all, 0, CATEGORIES * sizeof(*all));
	timeline_series(t, &sink, NULL, 0);
}

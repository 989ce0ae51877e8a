/* SPDX-License-Identifier: Apache-2.0 */
#include "series.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

/* The facts of a moment that the rules look at; all else in a block is the same at all times. */
enum state {
	STATE_SAVED = 1 /* or, without tags, walked back */,
	STATE_SAVED_BEFORE = 2,
	STATE_BUCKET_LIVE = 4,
	STATES = 8
};

_Static_assert(CATEGORIES <= 16, "a class takes 4 bits");

struct series_replay {
	struct series *series;
	struct model *model;
	struct model_watch watch;
	struct classifier *classifier; /* in the first run */
	const struct series_sink *sink;
	size_t born;
	struct history **buckets; /* that live, in order of birth */
	size_t bucket_count, bucket_room;
	struct bucket_facts facts;
	bool buckets_changed;
};

static unsigned state_of(const struct history *b)
{
	return (b->saved || b->backward_over ? STATE_SAVED : 0) |
	       (b->save_ns ? STATE_SAVED_BEFORE : 0) | (b->holds_gradients ? STATE_BUCKET_LIVE : 0);
}

static unsigned class_of(const struct series *s, const struct history *b)
{
	return s->codes[b->copy - 1] >> 4 * state_of(b) & 15;
}

static void tell(struct series_replay *r, struct history *b, const struct gmt_event *e,
		 int64_t bytes)
{
	struct series_change c = { e->seq,	  e->time_ns, b->block.device,
				   b->counted_as, bytes,      &b->block };

	b->block.state = history_state(b);
	if (r->sink->change)
		r->sink->change(r->sink->ctx, &c);
}

/* The block may be in another state. The first run only marks it, a bit each. */
static void look_at(struct series_replay *r, struct history *b, const struct gmt_event *e)
{
	unsigned class;

	if (r->classifier) {
		r->series->codes[b->copy - 1] |= 1u << state_of(b);
		return;
	}
	class = class_of(r->series, b);
	if (class == b->counted_as)
		return;
	tell(r, b, e, -(int64_t)b->block.size);
	b->counted_as = class;
	tell(r, b, e, (int64_t)b->block.size);
}

/* Marks -> classes, now that all is known of the block. */
static void decide(struct series_replay *r, const struct history *b)
{
	uint32_t *code = &r->series->codes[b->copy - 1], marks = *code;
	struct history copy = *b;

	*code = 0;
	for (unsigned state = 0; state < STATES; state++) {
		if (!(marks & 1u << state))
			continue;
		copy.block.state = (!b->backward_over && state & STATE_SAVED ? LIFE_SAVED : 0) |
				   (state & STATE_SAVED_BEFORE ? LIFE_SAVED_BEFORE : 0);
		copy.backward_over = b->backward_over && state & STATE_SAVED;
		copy.holds_gradients = state & STATE_BUCKET_LIVE;
		*code |= (uint32_t)classify_history(r->classifier, &copy).category << 4 * state;
	}
}

/* Framework blocks where there are any, else what CUDA calls gave. */
static bool counts(const struct series_replay *r, const struct history *b)
{
	bool block = !b->block.memory ||
		     (b->block.memory == GMT_MEM_ASYNC && b->block.flags & GMT_FLAG_FRAMEWORK);

	return block == r->series->framework[b->block.device];
}

/* A recording that is still being written may have more blocks in a later run. */
static bool give_number(struct series_replay *r, struct history *b)
{
	struct series *s = r->series;

	if (!r->classifier && r->born >= s->count)
		return false;
	if (r->classifier) {
		s->codes = need_grow(s->codes, &s->room, s->count, sizeof(*s->codes));
		s->codes[s->count++] = 0;
	}
	b->copy = (uint32_t)++r->born;
	return true;
}

static void born(void *ctx, struct history *b, const struct gmt_event *e)
{
	struct series_replay *r = ctx;

	if (!counts(r, b) || !give_number(r, b))
		return;
	if (b->signs & STACK_BUCKET) {
		r->buckets = need_grow(r->buckets, &r->bucket_room, r->bucket_count,
				       sizeof(struct history *));
		r->buckets[r->bucket_count++] = b;
		r->buckets_changed = true;
	}
	if (r->classifier) {
		look_at(r, b, e);
		return;
	}
	b->counted_as = class_of(r->series, b);
	tell(r, b, e, (int64_t)b->block.size);
}

static void saved(void *ctx, struct history *b, const struct gmt_event *e)
{
	if (b->copy)
		look_at(ctx, b, e);
}

static void forget_bucket(struct series_replay *r, const struct history *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->bucket_count; i++)
		if (r->buckets[i] != b)
			r->buckets[kept++] = r->buckets[i];
	r->buckets_changed |= kept < r->bucket_count;
	r->bucket_count = kept;
}

static void died(void *ctx, struct history *b, const struct gmt_event *e)
{
	struct series_replay *r = ctx;

	if (!b->copy)
		return;
	if (b->signs & STACK_BUCKET)
		forget_bucket(r, b);
	if (r->classifier)
		decide(r, b);
	else
		tell(r, b, e, -(int64_t)b->block.size);
}

/* Which buckets hold gradients may change with any of a few facts of the model. */
void series_look(struct series_replay *r, const struct gmt_event *e)
{
	const struct model *m = r->model;
	struct bucket_facts now = { m->grads_live, m->tags != 0, m->grad_bytes };

	if (!r->bucket_count || (!r->buckets_changed && now.live == r->facts.live &&
				 now.tags == r->facts.tags && now.bytes == r->facts.bytes))
		return;
	r->facts = now;
	r->buckets_changed = false;
	for (size_t i = 0; i < r->bucket_count; i++) {
		struct history *b = r->buckets[i];
		uint64_t before = 0;

		for (size_t k = 0; k < i; k++)
			if (r->buckets[k]->block.device == b->block.device)
				before += r->buckets[k]->block.size;
		b->holds_gradients = model_bucket_filled(m, before);
		look_at(r, b, e);
	}
}

static struct series_replay *new_replay(struct series *s, struct model *m)
{
	struct series_replay *r = need_new(sizeof(*r));

	r->series = s;
	r->model = m;
	r->watch = (struct model_watch){ born, saved, died, r };
	m->watch = &r->watch;
	return r;
}

static void free_replay(struct series_replay *r)
{
	r->model->watch = NULL;
	free(r->buckets);
	free(r);
}

struct series_replay *series_begin(struct series *s, struct recording *r, const struct model *facts,
				   struct owners *owners, struct model *m)
{
	struct series_replay *replay;

	*s = (struct series){ .recording = r };
	for (int d = 0; d < MODEL_DEVICES; d++)
		s->framework[d] = facts->devices[d].framework;
	replay = new_replay(s, m);
	replay->classifier = classifier_new(facts, owners);
	return replay;
}

static void decide_all(struct series_replay *r, struct tree *t)
{
	LIVE_EACH(t, b)
	{
		if (b->copy)
			decide(r, b);
		b->copy = 0;
	}
}

void series_end(struct series_replay *r)
{
	for (int d = 0; d < MODEL_DEVICES; d++)
		decide_all(r, &r->model->devices[d].live);
	decide_all(r, &r->model->memory);
	decide_all(r, &r->model->physical);
	classifier_free(r->classifier);
	free_replay(r);
}

static int event(void *ctx, const struct gmt_event *e)
{
	struct series_replay *r = ctx;

	model_event(r->model, e);
	series_look(r, e);
	if (r->sink && r->sink->event)
		r->sink->event(r->sink->ctx, e, r->model);
	return 0;
}

int series_open(struct series *s, struct recording *r, const struct model *facts,
		struct owners *owners)
{
	struct series_replay *replay;
	struct model m;
	int rc;

	model_init(&m, &r->defs);
	m.bare = true;
	replay = series_begin(s, r, facts, owners, &m);
	rc = recording_run(r, UINT64_MAX, event, replay);
	series_end(replay);
	model_free(&m);
	if (rc)
		series_close(s);
	return rc;
}

void series_close(struct series *s)
{
	free(s->codes);
	*s = (struct series){ 0 };
}

int series_run(struct series *s, const struct series_sink *sink)
{
	struct series_replay *replay;
	struct model m;
	int rc;

	model_init(&m, &s->recording->defs);
	m.bare = true;
	replay = new_replay(s, &m);
	replay->sink = sink;
	rc = recording_run(s->recording, UINT64_MAX, event, replay);
	free_replay(replay);
	model_free(&m);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

struct walk {
	const struct export_walk *to;
	struct map alive; /* seq of a birth -> its class */
};

static void change(void *ctx, const struct series_change *c)
{
	struct walk *w = ctx;
	struct export_life life = { c->block, c->time_ns, c->category, false };
	bool fresh;
	uint32_t *at = map_put(&w->alive, c->block->seq, &fresh);

	if (fresh)
		*at = c->category;
	life.born_as = *at;
	life.ended = c->bytes < 0 && c->block->died_seq;
	if ((fresh || life.ended) && w->to->life)
		w->to->life(w->to->ctx, &life);
	if (life.ended)
		map_remove(&w->alive, c->block->seq);
	if (w->to->change)
		w->to->change(w->to->ctx, c);
}

static void event(void *ctx, const struct gmt_event *e, const struct model *m)
{
	struct walk *w = ctx;

	if (w->to->event)
		w->to->event(w->to->ctx, e, m);
}

int export_walk(struct export *x, const struct export_walk *walk)
{
	struct walk w = { walk, { 0 } };
	const struct series_sink sink = { change, event, &w };
	int rc = series_run(&x->series, &sink);

	map_free(&w.alive);
	return rc;
}

int export_moment(struct export *x, struct export_moment *m)
{
	struct moment_query q;
	struct classifier *c;
	int rc = moments_parse(x->options->at ? x->options->at : "peak", &q);

	*m = (struct export_moment){ 0 };
	if (!rc)
		rc = moments_one(&x->recording, &m->model, &m->moment, &q, x->options->device);
	if (rc)
		return rc;
	c = classifier_new(&m->model, &x->owners);
	m->classes = need_new(m->moment.count + 1);
	for (size_t i = 0; i < m->moment.count; i++)
		m->classes[i] = classify(c, &m->moment.blocks[i]).category;
	classifier_free(c);
	return 0;
}

void export_moment_free(struct export_moment *m)
{
	free(m->classes);
	moment_free(&m->moment);
	model_free(&m->model);
}

size_t export_frames(struct export *x, uint32_t stack, uint64_t seq)
{
	x->stacks.count = 0;
	if (stack)
		stacks_read(&x->stacks, stack, seq);
	return x->stacks.count;
}

const char *export_frame_name(const struct frame *f, char *buf, size_t room)
{
	if (f->function[0])
		return f->function;
	if (f->module[0])
		snprintf(buf, room, "%s+0x%" PRIx64, owners_base(f->module), f->offset);
	else
		snprintf(buf, room, "0x%" PRIx64, f->ip);
	return buf;
}

uint64_t export_wall(const struct export *x, uint64_t time_ns)
{
	return time_ns + (uint64_t)x->recording.info->realtime_minus_monotonic_ns;
}

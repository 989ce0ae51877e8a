/* SPDX-License-Identifier: Apache-2.0 */
/* The curves of each device with their peaks, and the counts that belong to them. */
#include "model_parts.h"
#include "../../format/record.h"

struct model_device *model_device(struct model *m, int device)
{
	struct model_device *d;

	if (device < 0 || device >= MODEL_DEVICES)
		return NULL;
	d = &m->devices[device];
	if (d->seen)
		return d;
	d->seen = true;
	d->blocks.level = spans_add_level(&m->spans, &d->blocks.now);
	d->driver.level = spans_add_level(&m->spans, &d->driver.now);
	if (device >= m->device_end)
		m->device_end = device + 1;
	return d;
}

static void note_peak(struct model *m, struct curve *c, const struct gmt_event *e)
{
	c->peak = (struct peak){ c->now, *e, spans_range(m->spans.now.thread) };
}

/*
 * Blocks from before a history have neither stack nor age, so an equally high moment inside the
 * history replaces their peak. The history of a loop often begins at the peak of a step.
 */
static bool is_peak(const struct curve *c, const struct gmt_event *e)
{
	bool before = c->peak.event.flags & ~e->flags & GMT_FLAG_LATE;

	return c->now > c->peak.bytes || (before && c->now == c->peak.bytes);
}

/* Raises the curve's peak in the latest span, if the curve is higher now. */
static void span_rise(struct span_level *level, const struct gmt_event *e)
{
	struct extent *x = &level->extent;

	if (*level->now <= x->peak)
		return;
	x->peak = *level->now;
	x->peak_seq = e->seq;
	x->peak_ns = e->time_ns;
	x->peak_stack = e->stack;
	x->peak_node = e->kind == GMT_BLOCK_ALLOC ? e->name : 0;
}

void model_set(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e)
{
	c->now = bytes;
	if (is_peak(c, e))
		note_peak(m, c, e);
	if (c->level)
		span_rise(c->level, e);
}

void model_rise(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e)
{
	model_set(m, c, c->now + bytes, e);
}

void model_fall(struct curve *c, uint64_t bytes)
{
	c->now -= bytes < c->now ? bytes : c->now;
}

const struct curve *model_curve(const struct model_device *d)
{
	return d->framework ? &d->blocks : &d->driver;
}

uint64_t model_peak_reserved(const struct model_device *d)
{
	return d->reserved.peak.bytes ? d->reserved.peak.bytes : model_curve(d)->peak.bytes;
}

uint64_t model_allocs(const struct model_device *d)
{
	return d->framework ? d->block_allocs : d->driver_allocs;
}

uint64_t model_frees(const struct model_device *d)
{
	return d->framework ? d->block_frees : d->driver_frees;
}

uint64_t model_ooms(const struct model_device *d)
{
	return d->self_reported ? d->block_ooms : d->driver_fails;
}

bool model_has_memory(const struct model_device *d)
{
	return d->seen && (model_curve(d)->peak.bytes || model_ooms(d));
}

int model_main_device(const struct model *m)
{
	int best = -1;

	for (int d = 0; d < MODEL_DEVICES; d++)
		if (m->devices[d].seen &&
		    (best < 0 || model_curve(&m->devices[d])->peak.bytes >
					 model_curve(&m->devices[best])->peak.bytes))
			best = d;
	return best;
}

void model_measure_spans(struct model *m, int device)
{
	spans_measure(&m->spans, model_curve(&m->devices[device])->level);
}

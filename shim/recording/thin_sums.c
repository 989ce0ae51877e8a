/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one record for each device and each stretch in which the program did one thing: forward or
 * backward, on one thread. Its seq is one of those left out, and its stack is that of the peak, by
 * which a reader finds the phase.
 */
#include "thin_sums.h"

#include "../../format/mem_traits.h"

#include "device_memory.h"

#include <string.h>

#define DEVICES MEMORY_DEVICES

struct stretch {
	uint64_t events, allocs, last_seq;
	uint64_t weight; /* events but for uses; decides whether a stretch is long enough for a
			    record */
	struct gmt_event peak; /* kind 0: none yet */
	uint64_t total, reserved;
	bool peak_left; /* the peak's event is left out itself */
};

static struct {
	struct stretch stretches[DEVICES];
	uint64_t flushed; /* seq of the last event that was written */
	uint32_t thread;
	bool node;
	unsigned device;	     /* of the last event that names one */
	struct device_memory memory; /* used without a framework */
	bool framework;
	struct thin_sums all;
} sums;

void sums_begin(void)
{
	sums_end();
}

void sums_end(void)
{
	memory_free(&sums.memory);
	memset(&sums, 0, sizeof(sums));
}

void sums_follow(const struct gmt_event *e, bool framework)
{
	sums.framework = framework;
	if (e->device >= 0 && e->device < (int32_t)DEVICES)
		sums.device = (unsigned)e->device;
	if (!framework)
		memory_follow(&sums.memory, e);
}

/* The totals after this event; false if it has none. */
static bool total_of(const struct gmt_event *e, uint64_t *total, uint64_t *reserved)
{
	bool says =
		e->kind == GMT_BLOCK_ALLOC || e->kind == GMT_BLOCK_FREE || e->kind == GMT_THINNED;
	bool call =
		e->kind == GMT_MEM_ALLOC || e->kind == GMT_MEM_FREE || e->kind == GMT_PHYS_CREATE;

	*reserved = says ? e->arg1 : 0;
	*total = says ? e->arg0 : memory_total(&sums.memory, sums.device);
	return says || (call && !sums.framework);
}

static void see(const struct gmt_event *e, bool left)
{
	struct stretch *s = &sums.stretches[sums.device];
	uint64_t total, reserved;

	if (!total_of(e, &total, &reserved))
		return;
	if (!s->peak.kind || total > s->total) {
		s->peak = *e;
		s->total = total;
		s->peak_left = left;
	}
	s->reserved = reserved > s->reserved ? reserved : s->reserved;
}

void sums_see(const struct gmt_event *e)
{
	see(e, false);
	sums.flushed = e->seq;
}

void sums_count(const struct gmt_event *e)
{
	struct thin_sums *a = &sums.all;

	a->events += e->size;
	a->allocs += e->stream;
	if (!a->first_ns || e->time_ns < a->first_ns)
		a->first_ns = e->time_ns;
	a->last_ns = e->time_ns > a->last_ns ? e->time_ns : a->last_ns;
}

static struct gmt_event record_of(const struct stretch *s, unsigned device)
{
	struct gmt_event e = s->peak;
	bool own = s->peak_left && e.seq > sums.flushed;

	e.kind = GMT_THINNED;
	e.seq = own ? e.seq : s->last_seq;
	e.addr = 0;
	e.flags = 0;
	e.size = s->events;
	e.arg0 = s->total;
	e.arg1 = s->reserved;
	e.stream = s->allocs;
	e.device = (int32_t)device;
	return e;
}

/* The device whose record is next by seq; -1: no device has left-out events. */
static int next_device(void)
{
	uint64_t best = UINT64_MAX;
	int next = -1;

	for (unsigned d = 0; d < DEVICES; d++) {
		uint64_t seq;

		if (!sums.stretches[d].events)
			continue;
		seq = record_of(&sums.stretches[d], d).seq;
		if (seq < best) {
			best = seq;
			next = (int)d;
		}
	}
	return next;
}

int sums_flush(const struct thin_out *out)
{
	int rc = 0, d;

	while (!rc && (d = next_device()) >= 0) {
		struct gmt_event e = record_of(&sums.stretches[d], (unsigned)d);

		sums.stretches[d] = (struct stretch){ 0 };
		sums_count(&e);
		rc = out->event(out->ctx, &e);
		sums.flushed = e.seq;
	}
	return rc;
}

void sums_end_range(void)
{
	memset(sums.stretches, 0, sizeof(sums.stretches));
}

static bool says_phase(const struct gmt_event *e)
{
	return e->kind == GMT_BLOCK_ALLOC || e->kind == GMT_TAG_SAVED || e->kind == GMT_THINNED ||
	       e->kind == GMT_MEM_ALLOC;
}

static uint64_t allocations(const struct gmt_event *e)
{
	if (e->kind == GMT_THINNED)
		return e->stream;
	return e->kind == GMT_BLOCK_ALLOC ||
	       (e->kind == GMT_MEM_ALLOC && gmt_mem_is_on_device(e->arg0));
}

/* Uses do not count: nearly every operator has one, and there would be many more records. A THINNED
 * record does not tell uses apart, so it counts as its allocations, each with a free and a tag. */
static uint64_t weight_of(const struct gmt_event *e)
{
	if (e->kind == GMT_THINNED)
		return e->stream ? 3 * e->stream : e->size;
	return gmt_kind_layer(e->kind) != GMT_LAYER_USE;
}

int sums_add(const struct gmt_event *e, const struct thin_out *out, uint64_t least)
{
	struct stretch *s = &sums.stretches[sums.device];
	int rc = 0;

	if (says_phase(e) && (e->thread != sums.thread || (e->name != 0) != sums.node)) {
		if (s->weight >= least)
			rc = sums_flush(out);
		sums.thread = e->thread;
		sums.node = e->name != 0;
	}
	s->events += e->kind == GMT_THINNED ? e->size : 1;
	s->weight += weight_of(e);
	s->allocs += allocations(e);
	s->last_seq = e->seq;
	see(e, true);
	if (!s->peak.kind) /* without a total, the time is that of the first event */
		s->peak.time_ns = s->peak.time_ns ? s->peak.time_ns : e->time_ns;
	s->peak.thread = s->peak.thread ? s->peak.thread : e->thread;
	return rc;
}

void sums_get(struct thin_sums *out)
{
	*out = sums.all;
}

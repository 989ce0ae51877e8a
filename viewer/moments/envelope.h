/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A series in at most so many buckets, however long the run. Each keeps its least, its most and its
 * last with the event they came with, and the classes at the most and at the last: exact values all
 * of them, so no spike is lost, and the sum of the classes is the total that stands beside it.
 */
#pragma once

#include "series.h"

enum envelope_axis {
	ENVELOPE_TIME, /* buckets last equally long */
	/* as many events in each of those that change something or are marks: exact if there are no
	 * more of them than buckets */
	ENVELOPE_EVENTS,
};

/* The state from this event on. A bucket begins with the last state of the bucket before it. */
struct envelope_point {
	uint64_t seq, time_ns, bytes;
};

struct envelope_bucket {
	uint64_t first_ns, last_ns; /* on the time axis its edges, else of its events */
	uint64_t events;	    /* that changed something on the device */
	struct envelope_point min, max, last;
	uint64_t at_max[CATEGORIES], at_last[CATEGORIES];
	uint64_t reserved; /* the most that the framework's cache held in it */
	uint64_t used;	   /* the most that was taken on the device, context and all */
};

struct envelope {
	int device;
	struct envelope_bucket *buckets;
	size_t count;

	/* while it is filled */
	enum envelope_axis axis;
	uint64_t from, span; /* of the axis: nanoseconds or events */
	uint64_t events;
	size_t at;
	uint64_t now[CATEGORIES], bytes, reserved, used;
	bool changed;
};

/* facts: of the whole recording. most > 0. */
void envelope_init(struct envelope *e, struct model *facts, int device, enum envelope_axis axis,
		   size_t most);
void envelope_free(struct envelope *e);

/* The two calls of a sink; ctx is the envelope. After the scan, envelope_end. */
void envelope_change(void *ctx, const struct series_change *c);
void envelope_event(void *ctx, const struct series_event *e);
void envelope_end(struct envelope *e);

/* The bucket with the highest total; the first of them. */
const struct envelope_bucket *envelope_peak(const struct envelope *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduces a series to a limited number of buckets, however long the run. Each has its lowest,
 * highest and last total with their events, and the bytes by class at the highest and at the last.
 * All values are exact, so that no spike is lost and the classes add up to the total.
 */
#pragma once

#include "series.h"

enum envelope_axis {
	ENVELOPE_TIME, /* buckets of equal duration */
	/* buckets of equally many events that change something or are marks; exact if there are no
	 * more such events than buckets */
	ENVELOPE_EVENTS,
};

/* The state from this event on. A bucket begins with the last state of the bucket before it. */
struct envelope_point {
	uint64_t seq, time_ns, bytes;
};

struct envelope_bucket {
	uint64_t first_ns, last_ns; /* its edges on the time axis, else times of its events */
	uint64_t events;	    /* that changed something on the device */
	struct envelope_point min, max, last;
	uint64_t at_max[CATEGORIES], at_last[CATEGORIES];
	uint64_t reserved; /* most bytes of the framework's cache in it */
	uint64_t used;	   /* most bytes in use on the device, contexts included */
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

/* facts: model of the whole recording; most: number of buckets at most, > 0. */
void envelope_init(struct envelope *e, struct model *facts, int device, enum envelope_axis axis,
		   size_t most);
void envelope_free(struct envelope *e);

/* The callbacks of a series_sink; ctx is the envelope. After the scan, envelope_end. */
void envelope_change(void *ctx, const struct series_change *c);
void envelope_event(void *ctx, const struct series_event *e);
void envelope_end(struct envelope *e);

/* The bucket with the highest total, the first of several. */
const struct envelope_bucket *envelope_peak(const struct envelope *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's memory by class over the whole run, in limited room. Events that change it form groups
 * of equal size. Of each group the events with the highest and the lowest sum and the last event
 * are kept, with all their figures. So every point is exact, every peak is a point, and between two
 * points the curve is never above the higher one. If there are few events, each is a group.
 */
#pragma once

#include "../classes/classify.h"

struct emit;

/* Figures of a point, in bytes: each class, reserved, and in use on the device, if known. */
enum { POINT_RESERVED = CATEGORIES, POINT_USED, POINT_FIGURES };

struct point {
	uint64_t seq, time_ns, bytes;
	uint64_t figures[POINT_FIGURES];
};

struct group {
	struct point high, low, last;
	uint64_t most[POINT_FIGURES];
};

struct page_curve {
	struct point now;
	struct group *groups;
	size_t count, room, limit;
	uint64_t size;	 /* changes per group, 1 at first */
	uint64_t filled; /* changes in the last group */
	uint64_t changes;
};

void page_curve_free(struct page_curve *c);
/* Call after c->now was updated by an event. */
void page_curve_add(struct page_curve *c);
/* A copy with at most that many groups; free it with page_curve_free. */
struct page_curve page_curve_coarse(const struct page_curve *c, size_t groups);
void page_curve_emit(const struct page_curve *c, uint64_t first_ns, struct emit *out);
/* Writes a single point: reserved, used, classes. */
void page_curve_point(const struct point *p, struct emit *out, const char *key);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's memory by class over the whole run, in bounded room: the events that change it in
 * groups of the same number, and of each group the events where the sum was highest and lowest and
 * the last one, each with all its figures. So every point is exact, every peak is one, and what
 * lies between two points is never above the higher one. With few events each has a group.
 */
#ifndef VIEWER_PAGE_CURVE_H
#define VIEWER_PAGE_CURVE_H

#include <stdbool.h>

#include "../classes/classify.h"

struct emit;

struct point {
	uint64_t seq, time_ns;
	uint64_t bytes, reserved, used; /* used: of the whole device, as far as it is known */
	uint64_t classes[CATEGORIES];
};

struct group {
	struct point high, low, last;
	uint64_t most[CATEGORIES]; /* of each class by itself */
	uint64_t most_reserved, most_used;
};

struct page_curve {
	struct point now;
	struct group *groups;
	size_t count, room, limit;
	uint64_t size;	 /* changes in a group */
	uint64_t filled; /* in the last one */
	uint64_t changes;
};

void page_curve_init(struct page_curve *c, size_t limit);
void page_curve_free(struct page_curve *c);
/* c->now was brought up to date with an event that changed it. */
void page_curve_add(struct page_curve *c);
/* The same in at most so many groups; free it. */
struct page_curve page_curve_coarse(const struct page_curve *c, size_t groups);
void page_curve_emit(const struct page_curve *c, uint64_t first_ns, struct emit *out);
/* One point by itself: reserved, used, classes. */
void page_curve_point(const struct point *p, struct emit *out, const char *key);

#endif

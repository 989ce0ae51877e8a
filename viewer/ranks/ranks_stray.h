/* SPDX-License-Identifier: Apache-2.0 */
/* Outlier ranks, and the class and line of code that differ most. */
#pragma once

#include "ranks_table.h"

/* A rank is an outlier if it is further from the median than both. */
#define STRAY_PERCENT 2
#define STRAY_BYTES   (2u << 20) /* the smallest piece that an allocator takes from the device */

struct ranks_stray {
	double more;	       /* than the median; negative: less */
	int category;	       /* class that differs most in the same direction, -1 = not known */
	int64_t category_more; /* than in the rank of the median */
	int64_t place;	       /* of that class, in the table's list; -1 = not known */
	int64_t place_more;
};

struct ranks_strays {
	bool known;	 /* there is a median */
	size_t compared; /* rows that it is of: whole recordings that have a figure */
	double median;
	size_t middle;	 /* the row that it is of */
	bool *stray;	 /* each row */
	size_t count;	 /* how many */
	uint32_t *group; /* each row: equal ones have one number, that of their first row */
};

bool ranks_is_apart(double bytes, double median);
void ranks_strays(struct ranks_strays *s, const struct ranks_table *t);
void ranks_strays_free(struct ranks_strays *s);

/* The row of the greatest outlier; the number of rows if there is none. */
size_t ranks_furthest(const struct ranks_strays *s, const struct ranks_table *t);

struct ranks_stray ranks_stray_why(const struct ranks_strays *s, const struct ranks_table *t,
				   size_t row);

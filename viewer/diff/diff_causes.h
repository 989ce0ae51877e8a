/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that find causes. Each function finds its own cause and makes a finding of
 * the pairs that it takes. */
#pragma once

#include "diff.h"

/* Bytes of all pairs by class. */
struct diff_sums {
	double old[CATEGORIES], new[CATEGORIES];
};

static inline bool diff_is_result(const struct diff_pair *p)
{
	return category_in(p->category, CLASSES_THAT(ARE_OF_FORWARD));
}

void diff_find_precision(struct diff *d, const struct diff_sums *s);
void diff_find_casts(struct diff *d, const struct diff_sums *s);
void diff_find_recorded(struct diff *d);
void diff_find_reach(struct diff *d);
void diff_find_passes(struct diff *d);
void diff_find_backwards(struct diff *d);
void diff_find_scale(struct diff *d, const struct diff_sums *sums);

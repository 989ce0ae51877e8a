/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in a thinned recording for the events that were left out. The drain's thread. */
#pragma once

#include "thin.h"

void sums_begin(void);
void sums_end(void);

/* Every event of the recording, in order: totals go by them. */
void sums_follow(const struct gmt_event *e, bool framework);

void sums_see(const struct gmt_event *e);   /* this one stays: its total counts */
void sums_count(const struct gmt_event *e); /* a THINNED record that stays as it is */

/* This one is left out. Where the program comes to do something else, after at least `least` of
 * them, a record is written. */
int sums_add(const struct gmt_event *e, const struct thin_out *out, uint64_t least);
int sums_flush(const struct thin_out *out); /* records of what was left out since the last */
void sums_end_range(void);		    /* after that: the next event is somewhere else */

void sums_get(struct thin_sums *out);

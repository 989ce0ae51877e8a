/* SPDX-License-Identifier: Apache-2.0 */
/* The records that replace left-out events in a thinned recording. The drain's thread. */
#pragma once

#include "thin.h"

void sums_begin(void);
void sums_end(void);

/* For every event of the recording, in order: keeps the totals. */
void sums_follow(const struct gmt_event *e, bool framework);

void sums_see(const struct gmt_event *e);   /* an event that stays: its total counts */
void sums_count(const struct gmt_event *e); /* a THINNED record that stays as it is */

/* An event that is left out. If the program begins something else after a weight of at least
 * `least`, writes the records so far. */
int sums_add(const struct gmt_event *e, const struct thin_out *out, uint64_t least);
int sums_flush(const struct thin_out *out); /* writes the records so far */
void sums_end_range(void);		    /* drops the sums: the next event is in another range */

void sums_get(struct thin_sums *out);

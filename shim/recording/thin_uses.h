/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which uses of memory stay within a range that is thinned: of each place, and of each executable
 * graph, the first and the last one. So what outlives the range keeps both. One at a time; the
 * drain's thread.
 */
#pragma once

#include "../../format/event.h"

struct thin_table;

bool thin_uses_see(const struct gmt_event *e); /* first pass; false: no memory */
bool thin_uses_end(struct thin_table *keep);   /* seqs that stay; false: no memory */
bool thin_uses_stays(const struct gmt_event *e, const struct thin_table *keep);
void thin_uses_clear(void); /* a range ends */
void thin_uses_free(void);

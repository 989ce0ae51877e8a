/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the uses of a range that stay: the last one of each place in memory, and the first one of
 * each block that is allocated in the range and outlives it. So every block that stays has its
 * first and last use. Only places are compared; readers find the block there. The drain's thread.
 */
#pragma once

#include "../../format/event.h"
#include "thin_table.h"

/* Events of a range, in order. All return false if there is no memory. */
bool thin_uses_look(const struct gmt_event *e);
bool thin_uses_born(uint64_t addr);
/* inside: it was allocated in the range too, so its uses need not stay. */
bool thin_uses_died(uint64_t addr, uint64_t size, bool inside, struct thin_table *keep);
bool thin_uses_end_range(struct thin_table *keep); /* adds the seqs that stay */
void thin_uses_free(void);

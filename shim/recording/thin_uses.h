/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which uses of a range stay: of each place in memory the last one, and the first one of a block
 * that was born in the range and outlives it. So the first and the last use of every life that
 * stays can be told. A place is all that is looked at; readers find what was alive there. The
 * drain's thread.
 */
#pragma once

#include "../../format/event.h"
#include "thin_table.h"

/* Events of a range, in order. Each false: no memory. */
bool thin_uses_look(const struct gmt_event *e);
bool thin_uses_born(uint64_t addr);
/* inside: it was born in the range too, so that nothing of it stays. */
bool thin_uses_died(uint64_t addr, uint64_t size, bool inside, struct thin_table *keep);
bool thin_uses_end_range(struct thin_table *keep); /* seqs of those that stay */
void thin_uses_free(void);

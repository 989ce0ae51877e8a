/* SPDX-License-Identifier: Apache-2.0 */
/* Freed blocks that could not be handed out again, because other streams still used them
 * (record_stream): from which event to which. */
#ifndef VIEWER_WAITS_H
#define VIEWER_WAITS_H

#include "../../format/record.h"
#include "../base/map.h"
#include "rows.h"

struct wait_row {
	uint64_t addr, size;
	uint64_t from, to; /* events; to: 0 = it still waits */
	int32_t device;
	uint32_t streams; /* that are not done with it */
};

struct waits {
	struct row_store rows;
	struct map open; /* address -> row */
};

void waits_init(struct waits *w);
/* reuse_wait, reuse_ready; freed: the event with which the block was freed. */
void waits_event(struct waits *w, const struct gmt_event *e, uint64_t freed);

/* It waited after that event. */
static inline bool waits_at(const struct wait_row *row, uint64_t seq)
{
	return row->from <= seq && (!row->to || row->to > seq);
}

void waits_free(struct waits *w);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes blocks in other threads, ahead of the one that takes their events in order. The tool uses
 * threads (reader_ahead.c). The library in the traced program and platforms without threads do not
 * (reader_alone.c): there the reader decodes block by block.
 */
#pragma once

#include "reader_parts.h"

struct reader_ahead;

/* Starts to decode the blocks from `first` on. NULL: no threads, no memory, or too few blocks. */
struct reader_ahead *reader_ahead_begin(struct gmt_reader *r, size_t first,
					const struct reader_times *t);
/* Waits for the next block; call it for each in order. The memory that `out` holds is reused. */
void reader_ahead_take(struct reader_ahead *a, size_t block, struct reader_events *out);
void reader_ahead_end(struct reader_ahead *a);

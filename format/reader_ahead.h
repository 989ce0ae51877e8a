/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that other threads decode, ahead of the one that takes their events in order. The tool has
 * such threads (reader_ahead.c). The library in the traced program has none (reader_alone.c), nor
 * has a machine without threads: there the reader decodes block by block.
 */
#pragma once

#include "reader_parts.h"

struct reader_ahead;

/* For blocks first to blocks_used. NULL: there are no threads, or too few blocks. */
struct reader_ahead *reader_ahead_begin(struct gmt_reader *r, size_t first,
					const struct reader_times *t);
/* Block after block. What `out` holds before is used again. */
void reader_ahead_take(struct reader_ahead *a, size_t block, struct reader_events *out);
void reader_ahead_end(struct reader_ahead *a);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live file: all threads' rings in one MAP_SHARED mapping, so that what the drain has not yet
 * written survives a kill. Rings are taken and given back by application threads without a lock; a
 * ring that was given back is taken again by the next thread, drained or not.
 */
#pragma once

#include "../../format/control.h"
#include "../../format/writer.h"
#include "../base/file.h"

#define LIVE_RINGS_MAX 8192u

bool live_begin(void); /* rings in memory from here on; false: there is none */
/* The file is there: from here on rings are taken in it, and those in memory are left. NULL, or a
 * place that cannot share mappings: they stay in memory. false: no room for the first ring. The
 * file's description must stay. */
bool live_share(const struct file *f, const struct gmt_writer_info *info);
bool live_is_shared(void);
bool live_was_cut(void);		/* somebody made the file shorter */
uint64_t live_bytes(void);		/* of the file */
struct gmt_control *live_control(void); /* of live_share until live_forget */

struct gmt_ring *live_take(uint32_t thread); /* NULL: no room left */
void live_give(struct gmt_ring *r);

uint32_t live_count(void);

/* Events in a ring from which on the drain is called, and the rings' contents go into the file:
 * late, since a large block costs less time and bytes; but many rings make a large block at once,
 * and together need the drain for longer. */
static inline uint32_t live_pressed(void)
{
	return live_count() > 4 ? GMT_RING_SLOTS / 4 : GMT_RING_SLOTS / 2;
}

struct gmt_ring *live_ring(uint32_t i); /* NULL: not (yet) usable */

/* From here on the ring is full for its thread, which takes another; nobody takes it again. What is
 * in it can still be read, from where the reader is. */
void live_leave(struct gmt_ring *r);
bool live_is_left(const struct gmt_ring *r);

/* The page at this address has no file behind it any more. true: the program can go on. In a signal
 * handler. */
bool live_mend(uintptr_t address);

void live_close(void);	/* all is in the recording: say so in the header */
void live_forget(void); /* in a forked child: the mapping is the parent's */

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

bool live_begin(void); /* rings are in memory from now on; false: out of memory */
/* From now on rings are made in the file, and those in memory are abandoned. NULL, or a file system
 * that cannot share mappings: they stay in memory. False: no room for the first ring. *f must stay
 * valid. */
bool live_share(const struct file *f, const struct gmt_writer_info *info);
bool live_is_shared(void);
bool live_was_cut(void);		/* the file was truncated */
uint64_t live_bytes(void);		/* of the file */
struct gmt_control *live_control(void); /* valid from live_share to live_forget */

struct gmt_ring *live_take(uint32_t thread); /* NULL: no room left */
void live_give(struct gmt_ring *r);

uint32_t live_count(void);

/* Slots in use at which a ring calls the drain, which then flushes. Late, because a large block
 * costs less time and bytes. Earlier with many rings, which fill a large block together and keep
 * the drain busy for longer. */
static inline uint32_t live_pressed(void)
{
	return live_count() > 4 ? GMT_RING_SLOTS / 4 : GMT_RING_SLOTS / 2;
}

struct gmt_ring *live_ring(uint32_t i); /* NULL: not (yet) usable */

/* Abandons the ring: it is full for its thread, which takes another, and no thread takes it again.
 * Its contents can still be read, from the reader's position on. */
void live_leave(struct gmt_ring *r);
bool live_is_left(const struct gmt_ring *r);

/* Maps memory in place of a page that has lost its file. True: the program can go on. For a signal
 * handler. */
bool live_mend(uintptr_t address);

void live_close(void);	/* notes in the header that the recording has everything */
void live_forget(void); /* in a forked child: the mapping is the parent's */

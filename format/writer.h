/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends a recording to a file descriptor: header, then blocks, at the end an index.
 * Runs on one thread (the drain). No malloc: all memory is in struct gmt_writer's workspace, given
 * by the caller. After an error the writer stays usable: it counts what it could not write.
 */
#pragma once

#include "event.h"

struct gmt_writer;
struct gmt_block_header;

struct gmt_writer_info {
	uint32_t pid;
	int64_t realtime_minus_monotonic_ns;
	int level;	/* zstd level, 0 = default */
	uint64_t start; /* of the process, as in struct gmt_origin */
};

/* Bytes the caller must provide, 64-aligned; level as in struct gmt_writer_info. */
size_t gmt_writer_workspace(int level);

/* Builds a writer in `workspace` and writes the file header. NULL and *err = -GMT_ERR_* if it
 * can't. */
struct gmt_writer *gmt_writer_open(void *workspace, size_t bytes, int fd,
				   const struct gmt_writer_info *info, int *err);

/* Both keep what they get until a block is full or gmt_writer_flush is called. 0 or -GMT_ERR_*.
 * Events should come in order of seq; a reader puts blocks that overlap back in order. */
int gmt_writer_event(struct gmt_writer *w, const struct gmt_event *e);
int gmt_writer_def(struct gmt_writer *w, const struct gmt_def *d);

/* Prefetches memory for an event that will be written soon. */
void gmt_writer_expect(const struct gmt_writer *w, const struct gmt_event *e);

/* Writes the pending definitions, then the pending events that use them. 0 or -GMT_ERR_*. */
int gmt_writer_flush(struct gmt_writer *w);

/* Copies a block from another recording of the process; only DEFS and EVENTS, with nothing pending.
 * All blocks of a group must come, in order. 0 or -GMT_ERR_*. */
int gmt_writer_append(struct gmt_writer *w, const struct gmt_block_header *h, const void *stored);
void gmt_writer_break(struct gmt_writer *w); /* after a flush: the next block begins a group */

/* Flushes and writes the index and the end mark. The fd stays open and belongs to the caller. */
int gmt_writer_finish(struct gmt_writer *w);

uint64_t gmt_writer_bytes(const struct gmt_writer *w); /* written to the file so far */
uint64_t gmt_writer_lost(const struct gmt_writer *w);  /* events that could not be written */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a recording: checks it, resynchronises after damage, includes the live file beside it
 * (FILE.live; a live file can also be read alone), and calls back in order of seq. Its contents are
 * streamed, not kept in memory. No length or count is used before it is checked against the bytes
 * that are there.
 */
#pragma once

#include "event.h"

struct gmt_reader;

/*
 * The `count` events from first_seq on, one after the other, are those from of_seq on again, which
 * were passed before. of_seq < first_seq, so the two stretches can overlap; a forged recording can
 * have several events of one seq. All members are equal but seq, time_ns, arg0 of tags, scope where
 * it is not 0 (more_scope is added, modulo 2^32), and arg0 of RANGE_BEGIN and RANGE_END (more_range
 * is added).
 */
struct gmt_repeat {
	uint64_t first_seq, of_seq, more_range;
	uint32_t count, more_scope;
};

/* Callbacks; any may be NULL. A non-zero return stops the run and is returned by it. */
struct gmt_tool {
	int (*def)(void *ctx, const struct gmt_def *d);
	int (*event)(void *ctx, const struct gmt_event *e);
	/* Before the first event of a stretch that the recording has as a copy. Only in runs over
	 * all times, and not for every event that repeats: what is not said may still be equal. */
	int (*repeat)(void *ctx, const struct gmt_repeat *r);
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes);
};

/* A piece of the recording, or of its live file, that could not be used. */
struct gmt_damage {
	uint64_t offset, bytes;
	bool live;  /* in the live file, not in the recording */
	bool block; /* a whole block; else bytes that belong to none */
};

#define GMT_DAMAGES 16

struct gmt_reader_info {
	uint32_t version, pid;
	struct gmt_origin origin; /* zeros before version 4 */
	int64_t realtime_minus_monotonic_ns;
	uint64_t file_bytes;	 /* recording and live file together */
	uint64_t blocks;	 /* whole blocks */
	uint64_t damaged_blocks; /* blocks that fail their checksum or cannot be decoded */
	uint64_t skipped_bytes;	 /* bytes that belong to no block */
	uint64_t live_events;	 /* events of the live file that are in no block */
	uint64_t first_ns, last_ns;
	uint64_t first_seq, last_seq;
	bool clean_end; /* END was written */
	bool has_index;
	bool truncated;				/* !clean_end, or damage was found */
	struct gmt_damage damages[GMT_DAMAGES]; /* the first ones, as they were found */
	size_t damages_used;
};

/*
 * Opens path. NULL and *err = -GMT_ERR_* (errno is set for GMT_ERR_SYS) if there is nothing to
 * read. A damaged file opens as long as its header or any block can be used. A file of a newer
 * version, or with kinds that must not be skipped, is rejected here or by the run that meets the
 * first of them (-GMT_ERR_NEWER_VERSION, -GMT_ERR_UNKNOWN_KIND).
 */
struct gmt_reader *gmt_reader_open(const char *path, int *err);

/* The version of this program that wrote the file or its live file; "" if it is from before version
 * 4 or not readable. Also works for files that the other functions reject. */
void gmt_reader_writer(const char *path, char text[GMT_WRITER_TEXT + 1]);

void gmt_reader_close(struct gmt_reader *r);

/* Complete after opening, except live_events and damage inside blocks, which a run finds. */
const struct gmt_reader_info *gmt_reader_info(const struct gmt_reader *r);

/* Reads all definitions, then events with from_ns <= time_ns <= to_ns in order of seq. Returns 0, a
 * callback's result, or -GMT_ERR_*. May be called again. */
int gmt_reader_run(struct gmt_reader *r, uint64_t from_ns, uint64_t to_ns,
		   const struct gmt_tool *tool, void *ctx);

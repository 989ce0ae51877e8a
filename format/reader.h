/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a recording: checks, resynchronises after damage, takes up the live ring file that lies
 * beside it (FILE.live) or is given by itself, and calls back in order of seq. Memory grows with
 * definitions' bytes only where the caller keeps them; events are streamed.
 * Never trusts a length or a count before it is checked against what is there.
 */
#pragma once

#include "event.h"

struct gmt_reader;

/* Callbacks; any may be NULL. A non-zero return stops the run and is returned by it. */
struct gmt_tool {
	int (*def)(void *ctx, const struct gmt_def *d);
	int (*event)(void *ctx, const struct gmt_event *e);
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes);
};

/* A piece of the recording, or of its live file, that could not be used. */
struct gmt_damage {
	uint64_t offset, bytes;
	bool live;  /* of the live file */
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
	uint64_t live_events;	 /* taken from the live file, not in any block */
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
 * version, or with kinds that may not be passed over, is refused here or by the run that meets the
 * first of them (-GMT_ERR_NEWER_VERSION, -GMT_ERR_UNKNOWN_KIND).
 */
struct gmt_reader *gmt_reader_open(const char *path, int *err);

/* The version of this program that wrote the file or its live file; "" if it is from before version
 * 4 or not readable. Also works for files that the other functions reject. */
void gmt_reader_writer(const char *path, char text[GMT_WRITER_TEXT + 1]);

void gmt_reader_close(struct gmt_reader *r);

/* After open all is known but live_events and damage inside blocks, which a run finds. */
const struct gmt_reader_info *gmt_reader_info(const struct gmt_reader *r);

/* Reads all definitions, then events with from_ns <= time_ns <= to_ns in order of seq. Returns 0, a
 * callback's result, or -GMT_ERR_*. May be called again. */
int gmt_reader_run(struct gmt_reader *r, uint64_t from_ns, uint64_t to_ns,
		   const struct gmt_tool *tool, void *ctx);

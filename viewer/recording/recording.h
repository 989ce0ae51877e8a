/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording as commands use it: opened with the right sentence if it cannot be, its definitions
 * at hand, its events replayed to a callback with progress shown. A memory snapshot of PyTorch is
 * one too: it is converted in memory, and what is read is the outcome.
 */
#pragma once

#include "../../format/reader.h"
#include "defs.h"

struct recording {
	const char *path;
	struct gmt_reader *reader;
	const struct gmt_reader_info *info;
	struct defs defs;
	uint64_t dropped;    /* events that the program made and that are not in it */
	uint64_t file_bytes; /* of path; a snapshot is larger than what it becomes */
	bool read_through;   /* all its events were passed on, */
	bool ended;	     /* and among them the run's last one */
	bool lent;	     /* it belongs to one that stays open */
	void *kept;	     /* moments/kept.h: what its events came to; or NULL */
};

/* 0, or a sentence was said and EXIT_UNREADABLE. Definitions are read. */
int recording_open(struct recording *r, const char *path);
/* The same under another name. */
int recording_read(struct recording *r, const char *path, const char *name);
void recording_close(struct recording *r);

/* In this thread recording_open of the path of one of these, which stay open, gives that one. */
void recording_lend(struct recording *const *open, size_t count);

/* Says why the file cannot be read, err = -GMT_ERR_* of the reader; returns EXIT_UNREADABLE. */
int recording_refused(const char *path, int err);

/* What a file is that is neither recording nor snapshot, and what to do; NULL = unknown. */
const char *recording_other_kind(const char *path);

/* Events up to `until` nanoseconds to event(ctx, e). 0, or a sentence was said and EXIT_UNREADABLE.
 */
int recording_run(struct recording *r, uint64_t until,
		  int (*event)(void *, const struct gmt_event *), void *ctx);

/* Counts of a recording's events, and whether what they refer to is there. */

#define TALLY_KINDS 80

struct tally {
	const struct defs *defs;
	uint64_t events;
	uint64_t kinds[TALLY_KINDS];		 /* unknown kinds are in kinds[0] */
	uint64_t dropped;			 /* events that the program could not keep */
	uint64_t left_out;			 /* of them on purpose, to stay within a bound */
	uint64_t missing;			 /* numbers in the sequence that no event has */
	uint64_t disorder;			 /* events out of order */
	uint64_t no_stack, no_string, no_thread; /* references to what is not defined */
	uint64_t last_seq;
	uint64_t first_ns, last_ns;
	uint64_t launches, launches_unread; /* of kernels and CUDA graphs: of kept_tally alone */
};

int tally_event(void *ctx, const struct gmt_event *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording as commands use it: opens it or prints why that failed, reads its definitions, and
 * passes its events to a callback while it shows progress. A memory snapshot of PyTorch is first
 * converted in memory.
 */
#pragma once

#include "../../format/reader.h"
#include "defs.h"

struct recording {
	const char *path;
	struct gmt_reader *reader;
	const struct gmt_reader_info *info;
	struct defs defs;
	uint64_t dropped;    /* events that were lost while recording */
	uint64_t file_bytes; /* of path, also if that is a snapshot */
	bool read_through;   /* all its events were passed to a callback */
	bool ended;	     /* the run's last event was among them */
	bool lent;	     /* a copy of a recording that stays open */
	void *kept;	     /* results of its events (moments/kept.h), or NULL */
};

/* Also reads the definitions. 0, or EXIT_UNREADABLE after an error message. */
int recording_open(struct recording *r, const char *path);
/* The same, with `name` as r->path and in messages. */
int recording_read(struct recording *r, const char *path, const char *name);
void recording_close(struct recording *r);

/* Lets recording_open return copies of these in this thread, as long as they stay open. */
void recording_lend(struct recording *const *open, size_t count);

/* Says why the file cannot be read, err = -GMT_ERR_* of the reader; returns EXIT_UNREADABLE. */
int recording_refused(const char *path, int err);

/* Describes a file that is neither recording nor snapshot, with advice; NULL = unknown. */
const char *recording_other_kind(const char *path);

/* Passes all events to event(ctx, e). 0, or EXIT_UNREADABLE after a message. */
int recording_run(struct recording *r, int (*event)(void *, const struct gmt_event *), void *ctx);

/* Counts of a recording's events, and of their references to missing definitions. */

#define TALLY_KINDS 80

struct tally {
	const struct defs *defs;
	uint64_t events;
	uint64_t kinds[TALLY_KINDS];		 /* unknown kinds are in kinds[0] */
	uint64_t dropped;			 /* events that the recorder lost */
	uint64_t left_out;			 /* events left out on purpose, to limit the size */
	uint64_t missing;			 /* numbers in the sequence that no event has */
	uint64_t disorder;			 /* events out of order */
	uint64_t no_stack, no_string, no_thread; /* references to missing definitions */
	uint64_t last_seq;
	uint64_t first_ns, last_ns;
	uint64_t launches, launches_unread; /* of kernels and CUDA graphs; set by kept_tally only */
};

int tally_event(void *ctx, const struct gmt_event *e);

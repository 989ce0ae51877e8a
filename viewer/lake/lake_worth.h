/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two recordings of one process: which covers more of its run? One may be a snapshot, a
 * copy made during the run, or damaged.
 */
#ifndef VIEWER_LAKE_WORTH_H
#define VIEWER_LAKE_WORTH_H

#include "../recording/recording.h"
#include "lake.h"

struct lake_worth {
	uint64_t events; /* readable events, and those that a bounded recording left out */
	bool damaged;
};

#define LAKE_WORTH_DIGITS 24

/* False if both cover the same. */
bool lake_worth_more(const struct lake_worth *a, const struct lake_worth *b);

/* Reads all events of the file; zero for a file that cannot be opened. */
struct lake_worth lake_worth_of_file(const char *path);
/* For a recording that was read completely. */
struct lake_worth lake_worth_of(const struct recording *r, uint64_t events);

/* For a recording in the lake. False: none, or it was collected by a version that did not store
 * this. */
bool lake_worth_read(struct lake_worth *out, const char *lake, const struct lake_place *place);

/* Stores it in the table's file; `digits` must live until the table is closed. */
void lake_worth_note(struct parquet *table, const struct lake_worth *worth,
		     char digits[LAKE_WORTH_DIGITS]);

#endif

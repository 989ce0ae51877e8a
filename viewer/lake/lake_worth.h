/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two recordings of one process has more of its run: a snapshot of it is one too, so is a
 * copy that was made while it ran, or one that is damaged.
 */
#ifndef VIEWER_LAKE_WORTH_H
#define VIEWER_LAKE_WORTH_H

#include "../recording/recording.h"
#include "lake.h"

struct lake_worth {
	uint64_t events; /* that can be read, with those that a bounded recording left out */
	bool damaged;
};

#define LAKE_WORTH_DIGITS 24

/* Of equal ones, neither has. */
bool lake_worth_more(const struct lake_worth *a, const struct lake_worth *b);

/* Reads all events of the file; one that cannot be opened has none. */
struct lake_worth lake_worth_of_file(const char *path);
/* Of a recording that was read through. */
struct lake_worth lake_worth_of(const struct recording *r, uint64_t events);

/* What the lake has there. False: nothing, or it was collected before this was kept. */
bool lake_worth_read(struct lake_worth *out, const char *lake, const struct lake_place *place);

/* As facts of the table's file; `digits` must live until it is closed. */
void lake_worth_note(struct parquet *table, const struct lake_worth *worth,
		     char digits[LAKE_WORTH_DIGITS]);

#endif

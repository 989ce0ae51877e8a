/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the events of a recording came to, kept from question to question while it stays open: the
 * tables, where in the file each part of the events stands, and names of native functions.
 */
#pragma once

#include "../model/model.h"
#include "../recording/recording.h"

/* So many events in order; the next part begins where a greater number does. */
struct kept_part {
	uint64_t first_seq, least_ns, most_ns;
};

struct kept {
	struct model model;
	struct kept_part *parts;
	size_t part_count, part_room;
	uint64_t in_part, last_seq;
	struct tally tally;
	struct symbols *names; /* those of the recording's definitions */
};

/* Reads all events once; r->kept is set. 0, or a sentence was said and the exit code: then nothing
 * is to be freed. */
int kept_read(struct kept *k, struct recording *r);
void kept_free(struct kept *k);

/* Counts all events, which are read for it if the recording is not kept. Same return values. */
int kept_tally(struct recording *r, struct tally *t);

/* Moves the tables to *m until model_free(m). False: they are lent already. */
bool kept_lend(struct kept *k, struct model *m);

/* The last event, in order, that is not later; false: there is none. */
bool kept_last_until(const struct kept *k, struct recording *r, uint64_t ns,
		     struct gmt_event *found);

/* The events of `count` parts, in order: the blocks before them may have to be decoded, too. 0, or
 * a sentence was said and the exit code. */
int kept_run(const struct kept *k, struct recording *r, size_t part, size_t count,
	     int (*event)(void *, const struct gmt_event *), void *ctx);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of a recording's events, kept between questions while it stays open: the model's tables,
 * the times and numbers of each part of the events, and names of native functions.
 */
#pragma once

#include "../model/model.h"
#include "../recording/recording.h"

/* A run of events in order, at least 65,536 but in the last part. The next part begins with a
 * greater number. */
struct kept_part {
	uint64_t first_seq, least_ns, most_ns;
};

struct kept {
	struct model model;
	struct kept_part *parts;
	size_t part_count, part_room;
	uint64_t in_part, last_seq;
	struct tally tally;
	struct symbols *names; /* shared with the recording's definitions */
};

/* Reads all events once and sets r->kept. 0, or an exit code after an error message, with nothing
 * to free. */
int kept_read(struct kept *k, struct recording *r);
void kept_free(struct kept *k);

/* Counts all events; reads them for that if the recording is not kept. Same return values. */
int kept_tally(struct recording *r, struct tally *t);

/* Moves the tables to *m until model_free(m). False: they are already lent. */
bool kept_lend(struct kept *k, struct model *m);

/* The last event, in order, that is not later than ns. False: there is none. */
bool kept_last_until(const struct kept *k, struct recording *r, uint64_t ns,
		     struct gmt_event *found);

/* Passes the events of `count` parts in order. It might have to decode blocks before them, too. 0,
 * or an exit code after an error message. */
int kept_run(const struct kept *k, struct recording *r, size_t part, size_t count,
	     int (*event)(void *, const struct gmt_event *), void *ctx);

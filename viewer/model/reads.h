/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that a simulated device had not computed and the program read: a row for each stack and
 * width that read some, with how often the device gave each of its states.
 */
#ifndef VIEWER_READS_H
#define VIEWER_READS_H

#include "../../format/record.h"
#include "../base/map.h"

#define READ_STATES 5 /* as the event has them; any other is 0 */

struct read_place {
	uint32_t stack;
	uint64_t seq; /* of the first read there */
	uint64_t size;
	uint64_t states[READ_STATES]; /* reads */
};

struct reads {
	struct read_place *items; /* in the order of the first reads */
	size_t count, room;
	struct map known;
};

void reads_note(struct reads *r, const struct gmt_event *e);
void reads_free(struct reads *r);

#endif

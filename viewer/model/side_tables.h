/* SPDX-License-Identifier: Apache-2.0 */
/* Tables beside that of the lives: values that were read, exact sizes, waits for other streams. */
#pragma once

#include "../../format/event.h"
#include "../base/map.h"

/*
 * Reads of values that a simulated device did not compute: a row for each stack and width, with the
 * number of reads in each state.
 */

#define READ_STATES  6 /* the event's arg0; any other is 0 */
#define READ_REPEATS 5 /* the program has only repeated itself for long: simgpu/core/progress.c */

struct read_place {
	uint32_t stack;
	uint64_t seq; /* of the first read there */
	uint64_t size;
	uint64_t states[READ_STATES]; /* reads */
};

struct reads {
	struct map ids;
	struct read_place *items; /* in the order of the first reads */
	size_t count, room;
};

void reads_note(struct reads *r, const struct gmt_event *e);
void reads_free(struct reads *r);

/*
 * Exact sizes of storages, without the rounding of blocks: of leaves, and of tensors that autograd
 * saved in a later pass than they were made in, such as frozen weights. A row for each address and
 * size.
 */
struct tensor {
	uint64_t addr, size, seq; /* seq: when it was seen last */
	int32_t device;
	bool leaf, latest; /* latest: no other came to that address */
};

struct tensors {
	struct tensor *items;
	size_t count, room;
	struct map places; /* address -> index of the latest tensor there */
};

void tensors_note(struct tensors *t, const struct gmt_event *e, bool leaf);
void tensors_free(struct tensors *t);

/* Freed blocks that could not be handed out again, because other streams still used them
 * (record_stream): from which event to which. */
struct wait_row {
	uint64_t addr, size;
	uint64_t from, to; /* events; to: 0 = it still waits */
	int32_t device;
	uint32_t streams; /* that still use it */
};

struct waits {
	struct map ids; /* address -> row, while it waits */
	struct wait_row *items;
	size_t count, room;
};

/* reuse_wait, reuse_ready; freed: the event with which the block was freed. */
void waits_event(struct waits *w, const struct gmt_event *e, uint64_t freed);

/* True if it was waiting after that event. */
static inline bool waits_at(const struct wait_row *row, uint64_t seq)
{
	return row->from <= seq && (!row->to || row->to > seq);
}

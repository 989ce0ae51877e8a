/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of one run, one of each process, and which of them ran out of memory first. */
#pragma once

#include "../ranks/ranks_look.h"
#include "../recording/running.h"
#include "oom.h"

struct oom_rank {
	struct rank_file file;
	bool failed;
	int64_t wall_ns; /* of its refusal, by the clock on the wall */
	uint64_t asked;	 /* bytes of the block that was wanted */
	enum recording_state state;
	uint64_t dropped; /* events that the program could not keep */
};

struct oom_ranks {
	struct oom_rank
		*items; /* those that failed first, by their time; then the others, by path */
	size_t count, room;
	size_t failed;
};

/* Of several paths only what says which failed is read; one is taken as it is. 0, or a sentence was
 * said and the exit code. */
int oom_ranks_find(struct oom_ranks *out, char *const *paths, uint64_t nth);
/* It failed so. */
void oom_ranks_note(struct oom_rank *x, const struct recording *r, const struct refusal *refusal);
void oom_ranks_free(struct oom_ranks *r);

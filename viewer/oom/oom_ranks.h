/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings of one run, one for each process, and the processes that ran out of memory first.
 * */
#pragma once

#include "../ranks/ranks_look.h"
#include "../recording/running.h"
#include "oom.h"

struct oom_rank {
	struct rank_file file;
	bool failed;
	int64_t wall_ns; /* wall-clock time of its refusal */
	uint64_t asked;	 /* size of the refused request in bytes */
	enum recording_state state;
	uint64_t dropped; /* events lost because the recorder had no room */
};

struct oom_ranks {
	struct oom_rank
		*items; /* ranks that failed, by time of failure; then the others, by path */
	size_t count, room;
	size_t failed;
};

/* Reads from each recording only which process failed; a single path is taken as it is. 0, or the
 * exit code after an error message. */
int oom_ranks_find(struct oom_ranks *out, char *const *paths, uint64_t nth);
/* It failed so. */
void oom_ranks_note(struct oom_rank *x, const struct recording *r, const struct refusal *refusal);
void oom_ranks_free(struct oom_ranks *r);

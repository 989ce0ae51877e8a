/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings of a folder, one of each process, and which of them ran out of memory first. */
#ifndef VIEWER_OOM_RANKS_H
#define VIEWER_OOM_RANKS_H

#include "oom.h"

struct rank {
	char *path;
	char name[24]; /* "rank 2", or "process 4711" */
	bool failed;
	int64_t wall_ns; /* of its refusal, by the clock on the wall */
	struct refusal refusal;
};

struct ranks {
	struct rank *items; /* those that failed first, by their time; then the others, by path */
	size_t count, room;
	size_t failed;
};

/* path: a recording or a folder of them. 0, or a sentence was said and the exit code. */
int ranks_find(struct ranks *out, const char *path, uint64_t nth);
void ranks_free(struct ranks *r);

#endif

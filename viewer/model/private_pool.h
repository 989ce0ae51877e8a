/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private pools of a device's caching allocator, and the pool of each block. The recording says
 * from when to when a capture of a CUDA graph or a thread uses a pool. A block belongs to the
 * latest user that matches: a capture by the stream, else by the thread, and
 * torch.cuda.use_mem_pool by the thread alone.
 */
#pragma once

#include "../../format/event.h"

struct pool {
	uint64_t first, second; /* the framework's name for it, 0 = not known yet */
	bool graph;		/* a CUDA graph was captured into it */
	bool own;		/* the program allocates from it: torch.cuda.use_mem_pool */
};

/* A capture in progress, or a thread that allocates from a pool. */
struct pool_user {
	uint64_t stream;
	uint32_t thread, pool;
	bool own;
};

struct pools {
	struct pool *items; /* by number - 1; number 0 is the common pool */
	size_t count, room;
	struct pool_user *users; /* oldest first */
	size_t user_count, user_room;
};

void pools_event(struct pools *p, const struct gmt_event *e); /* graph_begin, graph_end */
/* The number of the pool with that name, which is added if it is new. 0, 0: always a new pool. */
uint32_t pools_number(struct pools *p, uint64_t first, uint64_t second);
/* The pool of a block that this event allocates, 0 = the common one. */
uint32_t pools_of(const struct pools *p, const struct gmt_event *e);
void pools_free(struct pools *p);

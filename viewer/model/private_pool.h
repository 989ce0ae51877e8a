/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private pools of a device's caching allocator, and which of them a block comes from: the
 * recording says where a capture of a CUDA graph, or a thread, takes from one. The latest user that
 * a block belongs to counts: a capture by its stream, else by its thread; a pool that the program
 * takes from by the thread alone.
 */
#pragma once

#include "../../format/event.h"

struct pool {
	uint64_t first, second; /* the framework's name for it, 0 = not known yet */
	bool graph;		/* a CUDA graph was captured into it */
	bool own;		/* the program takes blocks from it: torch.cuda.use_mem_pool */
};

/* A capture that is under way, or a thread that takes its blocks from a pool. */
struct pool_user {
	uint64_t stream;
	uint32_t thread, pool;
	bool own;
};

struct pools {
	struct pool *items; /* by number - 1; number 0 is the common pool */
	size_t count, room;
	struct pool_user *users; /* the latest last */
	size_t user_count, user_room;
};

void pools_event(struct pools *p, const struct gmt_event *e); /* graph_begin, graph_end */
/* The number of a pool by its name; a pool without one is a new one. */
uint32_t pools_number(struct pools *p, uint64_t first, uint64_t second);
/* The pool of a block that is taken now, 0 = the common one. */
uint32_t pools_of(const struct pools *p, const struct gmt_event *e);
void pools_free(struct pools *p);

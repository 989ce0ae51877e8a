/* SPDX-License-Identifier: Apache-2.0 */
/* State of one replay, shared by the files of the replay only. */
#pragma once

#include "replay.h"

struct replay_pass {
	const struct requests *requests;
	struct allocator allocator;
	struct piece **held;  /* by life; NULL: freed, or out of memory */
	struct piece **there; /* by segment from before the recording */
	const struct replay_limits *limits;
	bool whole_blocks; /* the size of a request is that of its block */
	uint64_t done;	   /* requests performed */
};

void pass_init(struct replay_pass *p, const struct requests *r, const struct alloc_settings *s,
	       const struct replay_limits *limits);
/* Performs a request. Returns whether it was an event of a block. */
bool pass_do(struct replay_pass *p, const struct request *request);
void pass_free(struct replay_pass *p);

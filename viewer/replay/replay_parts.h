/* SPDX-License-Identifier: Apache-2.0 */
/* One pass of requests through one allocator: between the files of the replay only. */
#ifndef VIEWER_REPLAY_REPLAY_PARTS_H
#define VIEWER_REPLAY_REPLAY_PARTS_H

#include "replay.h"

struct replay_pass {
	const struct requests *requests;
	struct allocator allocator;
	struct piece **held;  /* of each life, NULL: free again, or refused */
	struct piece **there; /* of each segment that was there before */
	uint64_t *there_addr; /* where it was put */
	const struct replay_limits *limits;
};

void pass_init(struct replay_pass *p, const struct requests *r, const struct alloc_settings *s,
	       const struct replay_limits *limits);
/* What the request does; TAKE with so many bytes. Whether it was an event of a block. */
bool pass_do(struct replay_pass *p, const struct request *request, uint64_t bytes);
void pass_free(struct replay_pass *p);

#endif

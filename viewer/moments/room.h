/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory at a moment: in the framework's cache, in pieces, and on the device. The cache of a
 * private pool serves that pool alone and is not free for other requests.
 */
#pragma once

#include "../model/model.h"

struct room {
	bool sampled;	   /* the device's total or free bytes were recorded */
	uint64_t total;	   /* on the device, 0 = unknown */
	uint64_t free;	   /* on the device */
	uint64_t reserved; /* by the framework's cache; without a framework, allocated bytes */
	uint64_t cached;   /* of that unused, and free for the request */
	uint64_t hole;	   /* the largest hole in it */
	uint64_t apart;	   /* unused, in pools other than the request's */
	uint64_t waiting;  /* freed, but other streams still use it (record_stream) */
};

/* The room for a request of that pool; NULL: of the common one. */
struct room room_at(const struct model *m, const struct moment *mo, const struct pool *pool);

/* One piece of the framework's cache: a segment, or adjacent mappings of one pool. */
struct room_piece {
	const struct block *segment; /* the first of them */
	const struct pool *pool;     /* NULL: the common one */
	uint64_t bytes;
	uint64_t used; /* by blocks, also by those that wait for a stream */
	uint64_t hole; /* the largest unused part */
};

typedef void room_visit(void *ctx, const struct room_piece *piece);

void room_pieces(const struct model *m, const struct moment *mo, room_visit *visit, void *ctx);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of PyTorch's caching allocator on one device, which shows the segments after each
 * request. The caller reports when other streams are done with a freed block.
 */
#pragma once

#include "../base/map.h"
#include "alloc_conf.h"
#include "piece.h"

/* Free pieces of one stream and one pool, for small or for large blocks. */
struct bin {
	uint64_t stream;
	uint32_t pool; /* 0 = the common one, else a private one */
	bool small;
	struct piece_set free;	   /* by size and address */
	struct piece_set unmapped; /* of expandable segments, by address */
};

struct allocator {
	struct alloc_settings settings;
	uint64_t limit;	  /* bytes of the device available to it; can change at any time */
	uint64_t allowed; /* the program's limit; UINT64_MAX: none, and no garbage collection */
	uint64_t device;  /* bytes of the whole device, for addresses of expandable segments */
	bool whole_pools; /* private pools have expandable segments too */

	uint64_t allocated, reserved, peak_allocated, peak_reserved;
	uint64_t retries, ooms, searches;
	bool cut;	/* the latest block was cut from a larger piece */
	uint64_t below; /* bytes of the largest cached piece that was too small for it */

	struct bin **bins;
	size_t bin_count, bin_room;
	struct piece ***used; /* freed blocks that other streams still use; oldest first */
	size_t used_count, used_room;
	size_t waited;	 /* number of the oldest of these on which the device has done all work */
	struct map over; /* private pools whose graphs are gone */
	struct piece_store store;
	struct bin places;   /* addresses of segments, by address */
	uint64_t next_place; /* next address for an expandable segment */
};

void allocator_init(struct allocator *a, const struct alloc_settings *s);
void allocator_free(struct allocator *a);

/* Allocates a block. NULL: out of memory, which is counted in `ooms`. */
struct piece *allocator_take(struct allocator *a, uint64_t bytes, uint64_t stream, uint32_t pool);
void allocator_give(struct allocator *a, struct piece *p);
/* Frees a block that other streams still use. p must stay valid; *p becomes NULL when they are
 * done. */
void allocator_give_used(struct allocator *a, struct piece **p);
void allocator_ready(struct allocator *a, struct piece **p); /* they are done; *p can be NULL */
/* Whether the cache has a piece for a block of that size. */
bool allocator_has(struct allocator *a, uint64_t bytes, uint64_t stream, uint32_t pool);
/* Adds a segment from before the first request; returns its only piece, which is free. */
struct piece *allocator_there(struct allocator *a, uint64_t bytes, uint64_t stream);
/* Allocates a block at addr in that segment; NULL if that is not free. */
struct piece *allocator_take_at(struct allocator *a, struct piece *first, uint64_t addr,
				uint64_t bytes);
void allocator_empty(struct allocator *a);		       /* torch.cuda.empty_cache() */
void allocator_empty_pool(struct allocator *a, uint32_t pool); /* of a private pool alone */
bool allocator_would_release(const struct allocator *a);       /* whether emptying releases any */
/* The graphs of a private pool are gone, so its memory can be released. */
void allocator_pool_over(struct allocator *a, uint32_t pool);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of PyTorch's caching allocator on one device: which segments there are after which
 * requests. Its caller says when other streams are done with a block that was freed.
 */
#pragma once

#include "../base/map.h"
#include "alloc_conf.h"
#include "piece.h"

/* Free pieces of one stream for small blocks, or for large ones, of one pool. */
struct bin {
	uint64_t stream;
	uint32_t pool; /* 0 = the one for all, else a private one */
	bool small;
	struct piece_set free;	   /* by size and address */
	struct piece_set unmapped; /* of expandable segments, by address */
};

struct allocator {
	struct alloc_settings settings;
	uint64_t limit;	  /* bytes that the device has for it; may change at any time */
	uint64_t allowed; /* by the program; UINT64_MAX: all. Garbage is collected only below it */
	uint64_t device;  /* bytes of the whole device, for addresses of expandable segments */
	bool whole_pools; /* private pools have expandable segments too */

	uint64_t allocated, reserved, peak_allocated, peak_reserved;
	uint64_t retries, ooms, searches;
	bool cut;	/* the latest block was cut from a larger piece */
	uint64_t below; /* bytes of the largest cached piece that was too small for it */

	struct bin **bins;
	size_t bin_count, bin_room;
	struct piece ***used; /* freed, and other streams are not done with them; oldest first */
	size_t used_count, used_room;
	size_t waited;	 /* of the oldest of these: the device has done all work on them */
	struct map over; /* private pools whose graphs are gone */
	struct piece_store store;
	struct bin places;   /* addresses of segments, by address */
	uint64_t next_place; /* of expandable segments */
};

void allocator_init(struct allocator *a, const struct alloc_settings *s);
void allocator_free(struct allocator *a);

/* NULL: out of memory, and counted in `ooms`. */
struct piece *allocator_take(struct allocator *a, uint64_t bytes, uint64_t stream, uint32_t pool);
void allocator_give(struct allocator *a, struct piece *p);
/* It is no longer allocated, but other streams still use it. The place of the pointer to it is kept
 * and NULL once they are done. */
void allocator_give_used(struct allocator *a, struct piece **p);
void allocator_ready(struct allocator *a, struct piece **p); /* they are; NULL: they were */
/* Whether a block of so many bytes lies in what is cached. */
bool allocator_has(struct allocator *a, uint64_t bytes, uint64_t stream, uint32_t pool);
/* A segment that was there before the first request: its only piece, free. */
struct piece *allocator_there(struct allocator *a, uint64_t bytes, uint64_t stream);
/* A block at an offset in that segment, or NULL where something else lies. */
struct piece *allocator_take_at(struct allocator *a, struct piece *first, uint64_t addr,
				uint64_t bytes);
void allocator_empty(struct allocator *a);		       /* torch.cuda.empty_cache() */
void allocator_empty_pool(struct allocator *a, uint32_t pool); /* a private one's alone */
bool allocator_would_release(const struct allocator *a); /* whether that gives anything back now */
/* The graphs of a private pool are gone, so its memory can be released. */
void allocator_pool_over(struct allocator *a, uint32_t pool);

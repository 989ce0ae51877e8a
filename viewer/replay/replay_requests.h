/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's requests to the framework's allocator on one device, in order, without the
 * allocator's decisions. An allocator with other settings would have got the same requests. Filled
 * in one pass over a recording. Sizes are in units of 512 bytes.
 */
#pragma once

#include "../base/map.h"
#include "../base/tree.h"
#include "../model/private_pool.h"
#include "../model/rows.h"
#include "../moments/repeats.h"
#include "../recording/recording.h"

#define UNIT 512u

enum request_kind {
	REQUEST_TAKE,	 /* value: the life that begins */
	REQUEST_REFUSED, /* the same, but the allocation failed */
	REQUEST_GIVE,	 /* the life that ends */
	REQUEST_READY, /* value: a life that has ended; other streams are done with its block now */
	REQUEST_EMPTY, /* the cache was emptied by the program */
	REQUEST_CAPTURE,  /* a graph's capture begins; value: 1 = the cache was emptied before */
	REQUEST_RELEASED, /* value: a released segment */
	REQUEST_THERE,	  /* value: a segment from before the recording */
	REQUEST_LIMIT,	  /* value: memory of the device available to the allocator, in units */
	REQUEST_AFTER,	  /* value: reserved bytes after the preceding request, in units */
};

struct request {
	uint32_t value;
	uint32_t kind;
};

struct request_life {
	uint64_t addr;	     /* recorded address */
	uint32_t units;	     /* recorded size of the block */
	uint32_t asked;	     /* requested size, as far as known; 0 = unknown */
	uint32_t least;	     /* if unknown: a smaller request would have got a smaller piece */
	uint32_t segment;    /* 1 + its segment, 0 = unknown */
	uint32_t born, died; /* requests, died: 0 = at the end of the program */
	uint32_t stack;
	uint32_t pool;	 /* a private one, as the recording says, 0 = none */
	uint16_t stream; /* index in streams */
	uint8_t waits;	 /* streams that use it after its end, as of this event */
	bool used;	 /* other streams used it when it ended */
	bool fresh;	 /* its segment was made for it */
	bool there;	 /* it existed when the recording began */
	bool tells;	 /* events show whether the request was smaller than the block */
	bool exact;	 /* `asked` is exact */
};

struct request_segment {
	uint64_t addr, bytes;
	uint32_t pool; /* a private one, 0 = none */
	uint16_t stream;
	bool told; /* the recording says its pool */
	bool own;  /* its pool was made by the program */
};

struct requests {
	int device;
	struct row_store list, lives;
	struct request_segment *segments;
	size_t segment_count, segment_room;
	struct tree placed; /* live segments; handle: the number */
	uint64_t *streams;
	size_t stream_count, stream_room;
	struct map live;    /* address -> life */
	struct map ended;   /* address -> the latest life there that has ended */
	bool tells_pools;   /* the recording says which private pools there are */
	struct pools pools; /* pools that the recording names */
	uint32_t guessed;   /* further pools, which its segments show */
	bool expandable;    /* the recording's segments were */

	uint64_t total;				/* bytes of the device, 0 = not known */
	uint64_t context, driver, segments_now; /* bytes: of no call, of all calls, of the cache */
	uint64_t limit, reserved;		/* the latest ones added to the list */
	uint64_t own_limit;			/* a limit set by the program; 0 = none */
	uint64_t now, peak, peak_reserved;	/* recorded bytes of blocks; of the cache */
	uint64_t retries, ooms, asks;		/* as recorded; events of blocks */
	bool failed, retried, emptied; /* since the latest block: a call failed; memory was released
					  after that; or without that */
};

static inline struct request *requests_at(const struct requests *r, uint32_t i)
{
	return rows_at(&r->list, i);
}

static inline struct request_life *requests_life(const struct requests *r, uint32_t i)
{
	return rows_at(&r->lives, i);
}

static inline uint64_t requests_asked(const struct requests *r, uint32_t life)
{
	return (uint64_t)requests_life(r, life)->asked * UNIT;
}

/* Memory that a CUDA call allocated. */
struct memory_row {
	uint64_t bytes;
	int device;
	uint32_t refs;
	uint32_t segment; /* 1 + number of its segment of the cache, 0 = none */
	bool framework, counts;
};

/* Requests of all devices in a recording. */
struct requests_all {
	struct requests *devices;
	size_t count, room;
	MAP_OF(struct memory_row) memory; /* by address or handle */
	uint64_t state_seq, until;	  /* last event of the initial state; last one to read */
	const struct repeats *leave;	  /* steps whose events are left out; NULL: none */
	bool incomplete;		  /* events were lost, or left out of a bounded recording */
	bool tells;			  /* its tensors show requested sizes */
	bool tells_pools;
	bool uses; /* it has uses of blocks: model/life_uses.h */
};

/* Reads events up to `until`, except in the steps to leave out. Returns 0, or an exit code after
 * one error message. */
int requests_read(struct requests_all *all, struct recording *recording, uint64_t until,
		  const struct repeats *leave);
/* Requests of the device; -1: of the device with the highest peak; NULL: none. */
struct requests *requests_of(struct requests_all *all, int device);
void requests_free(struct requests_all *all);

/* Shared by the files that read requests only. */

struct requests *requests_device(struct requests_all *all, int device); /* or NULL */
void requests_add(struct requests *r, enum request_kind kind, uint64_t value);

/* Reads events of CUDA calls: segments of the cache, and other memory of the device. */
void requests_memory(struct requests_all *all, const struct gmt_event *e);
/* Adds the memory available to the allocator, if it is known and has changed. */
void requests_limit(struct requests *r);
/* Sets the pool of the segments in a range, as the recording says. */
void requests_segments_pool(struct requests *r, const struct gmt_event *e);
/* 1 + the live segment that the address lies in, 0 = none. */
uint32_t requests_segment(const struct requests *r, uint64_t addr);

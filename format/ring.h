/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single-producer, single-consumer rings of fixed slots in a MAP_SHARED file: the part of a
 * recording that is not yet written. Its layout is part of the format (FORMAT.md), because after a
 * kill -9 the file is all there is. One ring has one producing thread at a time; the drain
 * consumes.
 *
 * Live file: one header page, then regions of GMT_RING_REGION bytes, one ring each.
 * The push functions run on the application's threads: no locks, no calls, no allocation.
 */
#pragma once

#include "event.h"

#define GMT_LIVE_MAGIC	0x45564c544d474fULL /* "OGMTLVE" */
#define GMT_LIVE_PAGE	4096u
#define GMT_RING_SLOTS	4096u
#define GMT_SLOT_BYTES	96u
#define GMT_RING_HEAD	4096u /* bytes before the first slot of a region */
#define GMT_RING_REGION (GMT_RING_HEAD + GMT_RING_SLOTS * GMT_SLOT_BYTES)
#define GMT_DEF_MAX	(64u * 1024u) /* longest definition that goes through a ring */

/* First page of the live file. */
struct gmt_live_header {
	uint64_t magic;
	uint32_t version; /* format version, same as the recording's */
	uint32_t pid;
	uint32_t page, region, slots, slot_bytes; /* the constants above, as the writer had them */
	int64_t realtime_minus_monotonic_ns;
	uint32_t regions; /* regions that exist, grows only; atomic */
	uint32_t closed;  /* 1 = everything here is in the recording too */
	struct gmt_origin origin;
};

enum gmt_slot_type {
	GMT_SLOT_EVENT = 1,
	GMT_SLOT_DEF = 2,  /* first slot of a definition: u32 length, then payload */
	GMT_SLOT_MORE = 3, /* more of the payload */
};

/* 96 bytes. commit = position + 1, stored last (for a definition: the first slot's last of all), so
 * that a slot whose commit does not fit its position holds nothing yet. */
struct gmt_slot {
	uint64_t commit;
	uint16_t type;	   /* enum gmt_slot_type */
	uint16_t def_kind; /* enum gmt_def_kind */
	uint32_t def_id;
	union {
		struct gmt_event event;
		uint8_t bytes[80];
	};
};

enum gmt_ring_state {
	GMT_RING_FREE = 0,   /* may be taken by a new thread */
	GMT_RING_OWNED = 1,  /* a thread produces into it */
	GMT_RING_ORPHAN = 2, /* its thread is gone; another may take it once it has room */
};

/* Start of a region. head and tail count slots since the ring's birth; slot = position % slots. */
struct gmt_ring {
	uint64_t head; /* next position to be produced; written by the producer only */
	uint8_t pad0[56];
	uint64_t tail;	  /* next position to be consumed; written by the consumer only */
	uint64_t dropped; /* events that found the ring full, ever; written by the producer only */
	uint32_t thread;  /* THREAD id of the producer */
	uint32_t state;	  /* enum gmt_ring_state */
	uint8_t pad1[40];
};

/* An item that gmt_ring_peek found. def.payload points into the caller's buffer. */
struct gmt_ring_item {
	bool is_def;
	struct gmt_event event;
	struct gmt_def def;
};

/* Makes an empty ring in `region` (GMT_RING_REGION bytes, any content). */
void gmt_ring_init(void *region, uint32_t thread);

static inline uint64_t gmt_load_acquire(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void gmt_store_release(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static inline struct gmt_slot *gmt_slot_at(const struct gmt_ring *r, uint64_t pos)
{
	char *slots = (char *)(uintptr_t)r + GMT_RING_HEAD;

	return (struct gmt_slot *)(slots + (pos % GMT_RING_SLOTS) * GMT_SLOT_BYTES);
}

/* Producer. false = no room, nothing written (the caller counts it or takes another ring). */
static inline bool gmt_ring_push(struct gmt_ring *r, const struct gmt_event *e)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
	struct gmt_slot *s = gmt_slot_at(r, head);

	if (__builtin_expect(head - gmt_load_acquire(&r->tail) >= GMT_RING_SLOTS, 0))
		return false;
	s->type = GMT_SLOT_EVENT;
	s->def_kind = 0;
	s->def_id = 0;
	s->event = *e;
	gmt_store_release(&s->commit, head + 1);
	gmt_store_release(&r->head, head + 1);
	return true;
}

bool gmt_ring_push_def(struct gmt_ring *r, const struct gmt_def *d);
/* Slots in use, as the producer sees it. */
uint32_t gmt_ring_used(const struct gmt_ring *r);

/*
 * Consumer. Reads the item at *pos without releasing its slots; buf holds GMT_DEF_MAX bytes.
 * Returns 1 and moves *pos past it, 0 if nothing complete is there, -GMT_ERR_BAD_RECORD if the
 * slots make no sense (salvage: skip one slot and go on). gmt_ring_release releases all slots
 * before pos.
 */
int gmt_ring_peek(const struct gmt_ring *r, uint64_t *pos, struct gmt_ring_item *out, void *buf);
void gmt_ring_release(struct gmt_ring *r, uint64_t pos);

/* The event at pos, valid until its slot is released; NULL if none is there yet. */
const struct gmt_event *gmt_ring_event_at(const struct gmt_ring *r, uint64_t pos);

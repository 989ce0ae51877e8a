/* SPDX-License-Identifier: Apache-2.0 */
/* Rings by the seq of their next event, the lowest first: a binary heap. The drain's thread. */
#pragma once

#include <stdint.h>

#include "../rings/live.h"

struct ring_heap {
	struct ring_heap_item {
		uint64_t seq;
		uint16_t ring;
	} items[LIVE_RINGS_MAX];
	uint32_t count;
};

static inline void ring_heap_swap(struct ring_heap *h, uint32_t a, uint32_t b)
{
	struct ring_heap_item item = h->items[a];

	h->items[a] = h->items[b];
	h->items[b] = item;
}

static inline void ring_heap_sift(struct ring_heap *h)
{
	uint32_t i = 0;

	for (;;) {
		uint32_t least = i;

		for (uint32_t child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < h->count && h->items[child].seq < h->items[least].seq)
				least = child;
		if (least == i)
			return;
		ring_heap_swap(h, i, least);
		i = least;
	}
}

static inline void ring_heap_add(struct ring_heap *h, uint16_t ring, uint64_t seq)
{
	uint32_t i = h->count++;

	h->items[i] = (struct ring_heap_item){ seq, ring };
	for (; i && h->items[i].seq < h->items[(i - 1) / 2].seq; i = (i - 1) / 2)
		ring_heap_swap(h, i, (i - 1) / 2);
}

/* The first ring's next event now has this seq. */
static inline void ring_heap_change(struct ring_heap *h, uint64_t seq)
{
	h->items[0].seq = seq;
	ring_heap_sift(h);
}

/* The first ring has no further event. */
static inline void ring_heap_drop(struct ring_heap *h)
{
	h->items[0] = h->items[--h->count];
	ring_heap_sift(h);
}

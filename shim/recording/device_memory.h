/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory from CUDA calls, for programs without a framework's allocator, counted as every
 * reader counts it (format/mem_traits.h). The drain's thread, and memory of our own.
 */
#pragma once

#include "../../format/event.h"
#include "thin_table.h"

#define MEMORY_DEVICES 16u

struct memory_row;

struct device_memory {
	struct thin_table rows;	    /* index of the row, by address or handle */
	struct thin_table contexts; /* context of the latest CTX_CURRENT, by thread */
	struct memory_row *items;
	uint64_t count, room, unused;	 /* unused: 1 + index of the first unused row */
	uint64_t driver[MEMORY_DEVICES]; /* live bytes of all calls */
	uint64_t blocks[MEMORY_DEVICES]; /* live bytes of the cudaMallocAsync backend's blocks */
	bool framework;			 /* there were such blocks: only they count */
};

/* Applies an event. True: the bytes of e->device rose. If memory runs out, totals are too low. */
bool memory_follow(struct device_memory *m, const struct gmt_event *e);
uint64_t memory_total(const struct device_memory *m, unsigned device);
void memory_free(struct device_memory *m);

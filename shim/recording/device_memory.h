/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that CUDA calls gave, of programs without a framework's allocator, as every reader
 * counts it (format/mem_traits.h). The drain's thread, and memory of our own.
 */
#pragma once

#include "../../format/event.h"
#include "thin_table.h"

#define MEMORY_DEVICES 16u

struct memory_row;

struct device_memory {
	struct thin_table rows;	    /* number of the row, by address or handle */
	struct thin_table contexts; /* by thread: what its latest CTX_CURRENT said */
	struct memory_row *items;
	uint64_t count, room, unused;	 /* unused: 1 + the first row that is free */
	uint64_t driver[MEMORY_DEVICES]; /* bytes alive of all calls */
	uint64_t blocks[MEMORY_DEVICES]; /* of the framework's, with its cudaMallocAsync backend */
	bool framework;			 /* there were such ones: they are what counts */
};

/* Follows an event. True: the bytes of e->device rose. Without memory for it totals are low. */
bool memory_follow(struct device_memory *m, const struct gmt_event *e);
uint64_t memory_total(const struct device_memory *m, unsigned device);
void memory_free(struct device_memory *m);

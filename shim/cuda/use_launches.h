/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on the device that touches memory: launches of kernels and graphs, copies, sets. Called by a
 * hook after its real call succeeded. Application threads, any lock held.
 */
#pragma once

#include "../../format/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The calling hook: its function's name as a string, and its frame (the stack begins at its
 * caller). */
struct user {
	const char *function; /* a literal */
	uint32_t *name_id;    /* cache of the name's STRING, for call_string */
	const void *frame;
};

bool launch_wanted(void); /* false: uses are not recorded */

/* x, y: blocks of threads */
void launch_kernel(const struct user *u, const void *function, unsigned x, unsigned y,
		   uint64_t stream, void **params, void **extra);
void launch_transfer(const struct user *u, enum gmt_transfer what, uint64_t address, uint64_t bytes,
		     uint64_t stream);
struct cuda_copy2d;
struct cuda_copy3d;
void launch_copy2d(const struct user *u, const struct cuda_copy2d *c, uint64_t stream);
void launch_copy3d(const struct user *u, const struct cuda_copy3d *c, uint64_t stream);
void launch_copies(const struct user *u, const uint64_t *to, const uint64_t *from,
		   const size_t *bytes, size_t count, uint64_t stream);
void launch_graph(const struct user *u, uint64_t graph, uint64_t stream);

/* Stream captures in progress: launches in them run only when their graph is launched. */
void launch_capture_begins(void);
void launch_capture_ends(void);

/* For an executable graph whose nodes were set; for one with a kernel whose parameters changed. */
struct cuda_kernel_node;
void graph_made(void *exec, void *graph);
void graph_kernel_changed(void *exec, const struct cuda_kernel_node *k);

/* Puts the places of one launch, or of one executable graph, into events. */
struct places {
	struct gmt_event event;
	const void *frame;
	unsigned count; /* in the event */
	bool more;	/* an event was recorded already */
	bool unread;	/* the parameters of some kernel are not known */
};

void places_begin(struct places *p, const struct gmt_event *e, const void *frame);
void places_add(struct places *p, uint64_t address);
void places_end(struct places *p);
struct cuda_side3d;
uint64_t copy_side_address(const struct cuda_side3d *s); /* 0: an array */

struct kernel;
void places_add_kernel(struct places *p, const struct kernel *k, const unsigned grid[2],
		       void **params, void **extra);

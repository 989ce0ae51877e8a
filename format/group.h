/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes events into blocks. Steps of a program repeat, so predictions and compression continue
 * from block to block within a group, and start afresh with each group. One thread; all memory is
 * the caller's.
 */
#pragma once

#include "block.h"
#include "codec.h"

struct gmt_group;

/* level: zstd's, 0 = default. `workspace` is aligned to 64 and outlives the group. NULL: error. */
size_t gmt_group_workspace(int level); /* bytes, a multiple of 64 */
struct gmt_group *gmt_group_new(void *workspace, int level);

bool gmt_group_is_full(struct gmt_group *g); /* no room for one more event */
void gmt_group_add(struct gmt_group *g, const struct gmt_event *e);

/* Prefetches memory for an event that will be added soon. */
void gmt_group_expect(const struct gmt_group *g, const struct gmt_event *e);

/* Writes the events added since the last call as a payload to `out` (GMT_BLOCK_STORED_MAX bytes),
 * and sets codec, group and lengths in *h. False: the events are lost, and a new group begins. */
bool gmt_group_pack(struct gmt_group *g, struct gmt_block_header *h, uint8_t *out);

/* The block packed last was not written, so the next block begins a new group. */
void gmt_group_break(struct gmt_group *g);

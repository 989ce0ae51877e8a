/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of events on their way into a file. Steps of a program repeat, so a block may use those
 * before it: predictions and compression go on from block to block within a group, and start anew
 * with each group. One thread; all memory is the caller's.
 */
#pragma once

#include "block.h"
#include "codec.h"

struct gmt_group;

/* level: zstd's, 0 = default */
size_t gmt_group_workspace(int level); /* bytes, a multiple of 64 */
struct gmt_group *gmt_group_new(void *workspace, int level);

bool gmt_group_is_full(struct gmt_group *g); /* no room for one more event */
void gmt_group_add(struct gmt_group *g, const struct gmt_event *e);

/* Prefetches memory for an event that will be added soon. */
void gmt_group_expect(const struct gmt_group *g, const struct gmt_event *e);

/* The events since the last time as a payload at `out` (room for GMT_BLOCK_STORED_MAX), with codec,
 * group and lengths in *h. false: the group is broken, the events are lost. */
bool gmt_group_pack(struct gmt_group *g, struct gmt_block_header *h, uint8_t *out);

/* The block packed last was not written, so the next block begins a new group. */
void gmt_group_break(struct gmt_group *g);

/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that read requests only. */
#ifndef VIEWER_REPLAY_REQUESTS_PARTS_H
#define VIEWER_REPLAY_REQUESTS_PARTS_H

#include "replay_requests.h"

struct requests *requests_device(struct requests_all *all, int device); /* NULL: no number */
void requests_add(struct requests *r, enum request_kind kind, uint64_t value);

/* Events of CUDA calls: segments of the cache, and what else takes memory of the device. */
void requests_memory(struct requests_all *all, const struct gmt_event *e);
/* What the allocator can have, if that is known and has changed. */
void requests_limit(struct requests *r);
/* A capture of a CUDA graph begins, ends; the pool of a block that is taken now, 0 = the common
 * one. */
void requests_capture(struct requests *r, const struct gmt_event *e);
void requests_captured(struct requests *r, const struct gmt_event *e);
uint32_t requests_pool(const struct requests *r, const struct gmt_event *e);
/* 1 + the live segment that the address lies in, 0 = none. */
uint32_t requests_segment(const struct requests *r, uint64_t addr);

#endif

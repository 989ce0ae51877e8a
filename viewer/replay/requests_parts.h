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
/* A capture of a CUDA graph begins, ends. */
void requests_capture(struct requests *r, const struct gmt_event *e);
void requests_captured(struct requests *r, const struct gmt_event *e);
/* A thread takes from a pool that the program made, and no longer. */
void requests_own_begin(struct requests *r, const struct gmt_event *e);
void requests_own_end(struct requests *r, const struct gmt_event *e);
/* The pool of a block that is taken now, 0 = the common one; whether the program made it. */
uint32_t requests_pool(const struct requests *r, const struct gmt_event *e);
bool requests_pool_own(const struct requests *r, uint32_t pool);
/* 1 + the live segment that the address lies in, 0 = none. */
uint32_t requests_segment(const struct requests *r, uint64_t addr);

#endif

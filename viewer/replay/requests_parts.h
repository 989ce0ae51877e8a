/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read requests only. */
#ifndef VIEWER_REPLAY_REQUESTS_PARTS_H
#define VIEWER_REPLAY_REQUESTS_PARTS_H

#include "replay_requests.h"

struct requests *requests_device(struct requests_all *all, int device); /* or NULL */
void requests_add(struct requests *r, enum request_kind kind, uint64_t value);

/* Reads events of CUDA calls: segments of the cache, and other memory of the device. */
void requests_memory(struct requests_all *all, const struct gmt_event *e);
/* Adds the memory available to the allocator, if it is known and has changed. */
void requests_limit(struct requests *r);
/* A capture of a CUDA graph begins, ends. */
void requests_capture(struct requests *r, const struct gmt_event *e);
void requests_captured(struct requests *r, const struct gmt_event *e);
/* A thread begins, or ends, allocating from a pool that the program made. */
void requests_own_begin(struct requests *r, const struct gmt_event *e);
void requests_own_end(struct requests *r, const struct gmt_event *e);
/* Pool of a block that is allocated now, 0 = the common one; and whether the program made that
 * pool. */
uint32_t requests_pool(const struct requests *r, const struct gmt_event *e);
bool requests_pool_own(const struct requests *r, uint32_t pool);
/* 1 + the live segment that contains the address, 0 = none. */
uint32_t requests_segment(const struct requests *r, uint64_t addr);

#endif

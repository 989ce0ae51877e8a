/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read requests only. */
#pragma once

#include "replay_requests.h"

struct requests *requests_device(struct requests_all *all, int device); /* or NULL */
void requests_add(struct requests *r, enum request_kind kind, uint64_t value);

/* Reads events of CUDA calls: segments of the cache, and other memory of the device. */
void requests_memory(struct requests_all *all, const struct gmt_event *e);
/* Adds the memory available to the allocator, if it is known and has changed. */
void requests_limit(struct requests *r);
/* The recording says which pool the segments of a range lie in. */
void requests_segments_pool(struct requests *r, const struct gmt_event *e);
/* 1 + the live segment that the address lies in, 0 = none. */
uint32_t requests_segment(const struct requests *r, uint64_t addr);

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the allocator's model only. */
#pragma once

#include "allocator.h"

#define SMALL_MOST (1ull << 20)

bool allocator_room(const struct allocator *a, uint64_t bytes);
void allocator_reserve(struct allocator *a, uint64_t bytes);
void allocator_release(struct allocator *a, uint64_t bytes);
struct piece *allocator_new_piece(struct allocator *a, struct bin *bin, uint64_t addr,
				  uint64_t size);
struct piece *allocator_new_segment(struct allocator *a, struct bin *bin, uint64_t bytes);
void allocator_put_free(struct allocator *a, struct piece *p);
/* Makes a piece free, and merges it with its free neighbours. */
void allocator_join(struct allocator *a, struct piece *p);
/* Merges the neighbour, which can be NULL, into p if it is free and mapped like p. */
void allocator_merge(struct allocator *a, struct piece *p, struct piece *neighbour);
/* Cuts p after that many bytes; returns the rest as a piece of its own, in no set. */
struct piece *allocator_cut(struct allocator *a, struct piece *p, uint64_t bytes);

struct piece *expandable_take(struct allocator *a, struct bin *bin, uint64_t bytes);
void expandable_unmap(struct allocator *a, struct piece *p);
uint64_t expandable_pages(const struct allocator *a, const struct piece *p); /* in bytes */

bool release_some(struct allocator *a, struct bin *bin, uint64_t bytes);
void release_all(struct allocator *a);
void release_pool(struct allocator *a, uint32_t pool);
void release_old(struct allocator *a);

/* SPDX-License-Identifier: Apache-2.0 */
/* The private pools of the framework's allocator at a moment, summed up by kind, each with the line
 * that made most of it. */
#pragma once

#include "../moments/room.h"
#include "../recording/owners.h"

struct emit;
struct rows_private_pool; /* document.h */

enum pool_kind {
#define KIND(name, label, text, advice) POOL_##name,
#include "pool_kinds.def"
	POOL_KINDS
};

struct pool_sum {
	enum pool_kind kind;
	uint64_t bytes, used; /* used: in blocks, and in freed ones that other streams still use */
	size_t pools;
	struct owner owner; /* no file and no function: not known */
};

struct pool_sums {
	struct pool_sum items[POOL_KINDS]; /* kinds with memory, the largest first */
	size_t count;
	uint64_t bytes; /* of all */
};

struct pool_sums private_pools(const struct model *m, const struct moment *mo,
			       struct owners *owners);
/* The kind of a pool; stack: of one of its segments. */
enum pool_kind pool_kind(const struct pool *p, struct owners *owners, uint32_t stack);
/* The line that made a pool's segment. */
struct owner pool_owner(struct owners *owners, const struct block *segment);
extern const struct pool_words {
	const char *name, *label, *text, *advice; /* as in pool_kinds.def */
} pool_kinds[POOL_KINDS];
/* "of 7.5 GiB in 7 pools, main train.py:35" */
const char *pool_note(const struct pool_sum *sum, char *buf, size_t room);
#define POOL_NOTE    400
#define WAITING	     "freed, still used"
#define WAITING_NOTE "by work of other streams (record_stream)"

struct rows_private_pool private_pools_rows(const struct pool_sums *sums);
/* Prints the unused bytes of each kind (label in `width` columns) with its total and its line, and
 * freed blocks that other streams still use. */
void private_pools_print(const struct pool_sums *sums, const struct room *room, int width,
			 struct emit *out);

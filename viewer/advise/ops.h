/* SPDX-License-Identifier: Apache-2.0 */
/* The operator that made a block, and the function that called it. Each stack is read once. */
#pragma once

#include "../base/map.h"

struct advise;
struct advised;

struct op {
	char name[64];	    /* "softmax"; in a backward pass the node: "SoftmaxBackward0" */
	struct owner owner; /* with its line */
	uint64_t at;	    /* address of the call; 0 = not known */
};

/* Operators that were looked up. */
struct ops {
	struct map known; /* stack and backward node -> index */
	struct op **items;
	size_t count, room;
};

/* Valid until advise_close(a). */
const struct op *ops_find(struct advise *a, const struct advised *l);
bool ops_is_loss(const struct op *op);
bool ops_is_product(const char *name);
bool ops_is_cast(const char *name);
void ops_free(struct ops *o);

/* An operator's role in unfused attention, by its name. Scores are the product and its softmax, of
 * equal size. A fused kernel never stores them. */

enum made { MADE_OTHER, MADE_PRODUCT, MADE_SOFTMAX, MADE_BETWEEN };

#define SCORES_MIN (1u << 20)

enum made scores_made_by(const char *op);
/* Whether both have the same number of values, in equal precision or in half. */
bool scores_alike(uint64_t a, uint64_t b);

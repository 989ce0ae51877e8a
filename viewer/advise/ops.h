/* SPDX-License-Identifier: Apache-2.0 */
/* The operator that made a block, and the function that called it: each stack is read once. */
#ifndef VIEWER_OPS_H
#define VIEWER_OPS_H

#include "advise.h"

struct op {
	char name[64];	    /* "softmax"; of a backward pass its node: "SoftmaxBackward0" */
	struct owner owner; /* its line too */
	uint64_t at;	    /* the instruction that called it, 0 = not known */
};

struct ops {
	struct advise *advise;
	struct map known; /* stack and backward node -> index */
	struct op **items;
	size_t count, room;
};

const struct op *ops_find(struct ops *o, const struct advised *l);
bool ops_is_loss(const struct op *op);
void ops_free(struct ops *o);

#endif

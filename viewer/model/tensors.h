/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact sizes, where blocks are rounded: of the storages of leaves, and of those that autograd
 * saved in a later pass than they were made in, weights that need no gradient for one. A row for
 * each address and size.
 */
#ifndef VIEWER_TENSORS_H
#define VIEWER_TENSORS_H

#include "../../format/record.h"
#include "../base/map.h"

struct tensor {
	uint64_t addr, size, seq; /* seq: when it was seen last */
	int32_t device;
	bool leaf, latest; /* latest: no other came to that address */
};

struct tensors {
	struct tensor *items;
	size_t count, room;
	struct map places; /* address -> index of the latest tensor there */
};

void tensors_note(struct tensors *t, const struct gmt_event *e, bool leaf);
void tensors_free(struct tensors *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Python frames of a stack say of the phase it is from: inside the forward of a module,
 * inside the step of an optimizer, and which lines of the program's own led there.
 */
#ifndef VIEWER_CALLERS_H
#define VIEWER_CALLERS_H

#include "stacks.h"

struct caller {
	bool module;	/* nn.Module's call is on it */
	bool optimizer; /* the step of an optimizer of torch.optim is on it */
	bool python;	/* it has Python frames at all */
	uint64_t
		lines; /* a hash of the program's own frames, without those of an optimizer; or 0 */
};

struct callers {
	struct stacks *stacks;
	struct map known; /* stack id -> index in found */
	struct caller *found;
	size_t count, room;
};

void callers_init(struct callers *c, struct stacks *stacks);
void callers_free(struct callers *c);
struct caller callers_find(struct callers *c, uint32_t stack);

#endif

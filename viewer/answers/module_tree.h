/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a moment as a tree of the modules in whose forward they were made: classes of
 * nn.Module as the Python frames tell them, and in each the lines of its own forward. Instances of
 * one class that are called from one line are one node.
 */
#ifndef VIEWER_MODULE_TREE_H
#define VIEWER_MODULE_TREE_H

#include "../moments/snapshot.h"

struct module {
	char *name;		      /* of its class, or of the function that holds the line */
	const char *file;	      /* of a line; of a module, where its forward is */
	unsigned line;		      /* 0 = a module */
	uint64_t bytes, blocks;	      /* with everything inside */
	uint32_t parent, first, next; /* children are a list, the largest first; 0 = none */
};

/* items[0] is the root: all blocks that were looked at; outside is what no module made. */
struct modules {
	struct module *items;
	size_t count, room;
	uint64_t outside_bytes, outside_blocks;
};

/* category < 0: of all classes. */
void modules_find(struct modules *out, const struct snapshot *s, int category,
		  struct stacks *stacks);
void modules_free(struct modules *m);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a moment as a tree of the modules in whose forward they were made: nn.Module
 * classes as shown by the Python frames, and in each the lines of its own forward. Instances of one
 * class that are called from one line are one node.
 */
#ifndef VIEWER_MODULE_TREE_H
#define VIEWER_MODULE_TREE_H

#include "flame.h"

/* Nodes are modules, with the file of their forward, and lines in them. nodes[0] is the root;
 * blocks that end there were made outside of all modules. category < 0: all classes. */
void modules_find(struct flame *out, const struct snapshot *s, int category, struct stacks *stacks);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a moment as a tree of the modules in whose forward they were made: classes of
 * nn.Module as the Python frames tell them, and in each the lines of its own forward. Instances of
 * one class that are called from one line are one node.
 */
#ifndef VIEWER_MODULE_TREE_H
#define VIEWER_MODULE_TREE_H

#include "flame.h"

/* Nodes are modules, with the file where their forward is, and lines in them. nodes[0] is all that
 * was looked at; what ends there is what no module made. category < 0: of all classes. */
void modules_find(struct flame *out, const struct snapshot *s, int category, struct stacks *stacks);

#endif

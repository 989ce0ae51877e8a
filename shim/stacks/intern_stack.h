/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack tree: a stack is the id of its innermost node; a node is an edge (parent, frame).
 */
#pragma once

#include "../../format/record.h"
#include "../rings/thread.h"

/* Id of the node, defined in the thread's ring before any thread sees it; 0 = could not be. */
uint32_t stack_node(struct thread *t, uint32_t parent, enum gmt_frame frame, uint64_t value);
uint64_t stack_nodes(void);	/* how many there are */
uint64_t stack_nodes_cut(void); /* how often a stack was cut because there was no room */

/* Calls fn with the value of each native node, in no order, some more than once. */
void stack_native_each(void (*fn)(void *ctx, uint64_t address), void *ctx);

void stack_nodes_forget(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a moment as a tree of their stack frames, from the outermost inwards or reversed:
 * the data of flame graphs and folded stacks.
 */
#pragma once

#include "../moments/snapshot.h"

enum flame_kind { FLAME_ALL, FLAME_PYTHON, FLAME_NATIVE, FLAME_MODULE, FLAME_CLASS };
enum flame_frames { FRAMES_PYTHON, FRAMES_NATIVE, FRAMES_BOTH };

struct flame_node {
	char *name;
	const char *file; /* of a module or its line; "" = none */
	unsigned line;
	uint64_t bytes, blocks;		/* including children */
	uint64_t own_bytes, own_blocks; /* excluding children */
	uint32_t parent, first, next;	/* children are a list, the largest first; 0 = none */
	uint8_t kind;			/* enum flame_kind */
	uint8_t category;		/* of this node and its children, CATEGORIES = several */
};

/* nodes[0] is the root. */
struct flame {
	struct flame_node *nodes;
	size_t count, room;
};

struct flame_how {
	enum flame_frames frames;
	/* The modules of the forward pass in place of frames: nn.Module classes as shown by the
	 * Python frames, and in each the lines of its own forward. Instances of one class that are
	 * called from one line are one node. */
	bool modules;
	bool places;   /* modules have files and lines, and blocks outside of modules no node */
	bool inverted; /* innermost first */
	bool classes;  /* the class is the outermost node */
	int category;  /* only blocks of this class, -1 = all */
};

void flame_build(struct flame *f, const struct snapshot *s, struct owners *owners,
		 const struct flame_how *how);
void flame_free(struct flame *f);

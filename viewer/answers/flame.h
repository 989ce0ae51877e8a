/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a moment as a tree of their stack frames, from the outermost inwards or reversed:
 * the data of flame graphs and folded stacks.
 */
#ifndef VIEWER_FLAME_H
#define VIEWER_FLAME_H

#include "../moments/snapshot.h"

enum flame_kind { FLAME_ALL, FLAME_PYTHON, FLAME_NATIVE, FLAME_MODULE, FLAME_CLASS };
enum flame_frames { FRAMES_PYTHON, FRAMES_NATIVE, FRAMES_BOTH };

struct flame_node {
	char *name;
	const char *file; /* of module_tree.h; "" = none */
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
	bool modules;  /* the modules of the forward pass in place of frames */
	bool inverted; /* innermost first */
	bool classes;  /* the class is the outermost */
	int category;  /* only these blocks, -1 = all */
};

void flame_build(struct flame *f, const struct snapshot *s, struct owners *owners,
		 const struct flame_how *how);
void flame_free(struct flame *f);

/* Builds a tree: makes the root, finds or makes a child (the name ends after len bytes), adds bytes
 * to a node, sorts at the end. */
void flame_begin(struct flame *f);
uint32_t flame_child(struct flame *f, uint32_t parent, const struct flame_node *like, size_t len);
void flame_count(struct flame *f, uint32_t at, uint64_t bytes, uint64_t blocks, unsigned category);
void flame_sort(struct flame *f);

#endif

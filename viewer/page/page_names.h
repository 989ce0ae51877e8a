/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a page, each stored once: texts, frames, and the tree of stacks (a node is a frame
 * and its caller's node, 0 = none). Long texts are cut. When there is no more room, a new text
 * becomes "(left out)", and a new node becomes its caller's. The page says how many were cut.
 */
#pragma once

#include "../recording/owners.h"
#include "page_column.h"
#include "page_redact.h"

/* Flags of a frame for the page's scripts. */
enum names_frame {
	NAMES_PYTHON = 1 << 0,
	NAMES_CALL = 1 << 1,	/* nn.Module's own call */
	NAMES_FORWARD = 1 << 2, /* a forward method of a class */
	NAMES_PLUMBING = 1 << 3 /* only carries out calls of a model or a script */
};

struct names {
	struct redact *redact; /* other names for paths, or NULL */

	struct map text_ids; /* hash -> index; after a collision the next free hash */
	struct names_text {
		char *s;
		uint32_t len;
	} * texts;
	size_t text_count, text_room, text_bytes;

	struct interned frames; /* function, file, line, module, bits */

	struct map node_ids; /* caller << 32 | frame */
	struct names_node {
		uint32_t caller, frame;
	} * nodes;
	size_t node_count, node_room;

	size_t node_limit, text_limit; /* most nodes; most bytes of texts */
	uint64_t cut_texts, cut_nodes;
};

/* scale: 1, or less room. */
void names_init(struct names *n, struct redact *redact, double scale);
void names_free(struct names *n);

uint32_t names_text(struct names *n, const char *s, size_t len);
uint32_t names_word(struct names *n, const char *s);
uint32_t names_function(struct names *n, const char *function); /* shortens C++ names */
uint32_t names_path(struct names *n, const char *path);		/* another name if redacted */
/* Emits the owner's members into the open object. */
void names_owner(struct names *n, struct emit *out, const struct owner *o);

/* The node of a stack. known: caches the nodes of one recording. seq: as in stacks.h. */
uint32_t names_stack(struct names *n, struct stacks *s, struct map *known, uint32_t id,
		     uint64_t seq);

void names_emit(struct names *n, struct emit *out);
void names_emit_texts(const struct names *n, struct emit *out);

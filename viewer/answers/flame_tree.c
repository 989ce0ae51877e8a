/* SPDX-License-Identifier: Apache-2.0 */
/* The tree that a flame graph draws: nodes, what they hold, their order. */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "flame.h"

static uint32_t new_node(struct flame *f, uint32_t parent, const struct flame_node *like,
			 size_t len)
{
	uint32_t id = (uint32_t)f->count;
	struct flame_node *n = need_item(f->nodes, f->count, f->room);

	*n = (struct flame_node){ .name = need_copy(like->name, len),
				  .file = like->file,
				  .line = like->line,
				  .kind = like->kind,
				  .parent = parent };
	if (id) {
		n->next = f->nodes[parent].first;
		f->nodes[parent].first = id;
	}
	return id;
}

void flame_begin(struct flame *f)
{
	*f = (struct flame){ 0 };
	new_node(f, 0, &(struct flame_node){ .name = "all", .file = "", .kind = FLAME_ALL }, 3);
}

uint32_t flame_child(struct flame *f, uint32_t parent, const struct flame_node *like, size_t len)
{
	for (uint32_t i = f->nodes[parent].first; i; i = f->nodes[i].next) {
		const struct flame_node *n = &f->nodes[i];

		if (n->kind == like->kind && n->line == like->line && strlen(n->name) == len &&
		    !memcmp(n->name, like->name, len) && !strcmp(n->file, like->file))
			return i;
	}
	return new_node(f, parent, like, len);
}

void flame_count(struct flame *f, uint32_t at, uint64_t bytes, uint64_t blocks, unsigned category)
{
	f->nodes[at].own_bytes += bytes;
	f->nodes[at].own_blocks += blocks;
	for (;; at = f->nodes[at].parent) {
		struct flame_node *n = &f->nodes[at];

		n->category = n->blocks && n->category != category ? CATEGORIES : category;
		n->bytes += bytes;
		n->blocks += blocks;
		if (!at)
			break;
	}
}

/* Children from the largest to the smallest: insertion, for there are few. */
static void sort_children(struct flame *f, uint32_t parent)
{
	uint32_t sorted = 0, next;

	for (uint32_t i = f->nodes[parent].first; i; i = next) {
		uint32_t *at = &sorted;

		next = f->nodes[i].next;
		while (*at && f->nodes[*at].bytes >= f->nodes[i].bytes)
			at = &f->nodes[*at].next;
		f->nodes[i].next = *at;
		*at = i;
	}
	f->nodes[parent].first = sorted;
}

void flame_sort(struct flame *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		sort_children(f, i);
}

void flame_free(struct flame *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->nodes[i].name);
	free(f->nodes);
	*f = (struct flame){ 0 };
}

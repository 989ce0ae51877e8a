/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <stdlib.h>

#include "need.h"

#define CHUNK 1024u

/* Index 0 is no node. addr is the block's, which never changes. */
struct tree_node {
	uint64_t addr;
	uint32_t left, right, weight;
};

static struct tree_node *at(const struct tree *t, uint32_t i)
{
	return &t->nodes[i];
}

static struct block *block_of(const struct tree *t, uint32_t i)
{
	return i ? &t->chunks[i / CHUNK][i % CHUNK] : NULL;
}

static uint32_t take(struct tree *t, uint64_t addr)
{
	uint32_t i = t->free_list;

	if (i) {
		t->free_list = at(t, i)->left;
	} else {
		i = t->used ? t->used : 1;
		if (i / CHUNK >= t->chunk_count) {
			t->chunks =
				need_grow(t->chunks, &t->room, t->chunk_count, sizeof(*t->chunks));
			t->chunks[t->chunk_count++] = need_new(CHUNK * sizeof(struct block));
		}
		t->nodes = need_grow(t->nodes, &t->node_room, i, sizeof(*t->nodes));
		t->used = i + 1;
	}
	t->seed = t->seed * 1664525u + 1013904223u;
	*at(t, i) = (struct tree_node){ .addr = addr, .weight = t->seed };
	*block_of(t, i) = (struct block){ .addr = addr };
	return i;
}

/* Splits what hangs under i: below addr to *low, the others to *high. */
static void split(struct tree *t, uint32_t i, uint64_t addr, uint32_t *low, uint32_t *high)
{
	while (i) {
		struct tree_node *n = at(t, i);

		if (n->addr < addr) {
			*low = i;
			low = &n->right;
			i = n->right;
		} else {
			*high = i;
			high = &n->left;
			i = n->left;
		}
	}
	*low = *high = 0;
}

static uint32_t merge(struct tree *t, uint32_t low, uint32_t high)
{
	uint32_t top, *hole = &top;

	while (low && high) {
		if (at(t, low)->weight > at(t, high)->weight) {
			*hole = low;
			hole = &at(t, low)->right;
			low = *hole;
		} else {
			*hole = high;
			hole = &at(t, high)->left;
			high = *hole;
		}
	}
	*hole = low ? low : high;
	return top;
}

struct block *tree_find(const struct tree *t, uint64_t addr)
{
	uint32_t i = t->root;

	while (i && at(t, i)->addr != addr)
		i = addr < at(t, i)->addr ? at(t, i)->left : at(t, i)->right;
	return block_of(t, i);
}

struct block *tree_enclosing(const struct tree *t, uint64_t addr)
{
	struct block *best;
	uint32_t last = 0;

	for (uint32_t i = t->root; i;) {
		const struct tree_node *n = at(t, i);

		if (n->addr <= addr)
			last = i;
		i = addr < n->addr ? n->left : n->right;
	}
	best = block_of(t, last);
	return best && addr - best->addr < best->size ? best : NULL;
}

struct block *tree_from(const struct tree *t, uint64_t addr)
{
	uint32_t first = 0;

	for (uint32_t i = t->root; i;) {
		const struct tree_node *n = at(t, i);

		if (n->addr >= addr)
			first = i;
		i = addr <= n->addr ? n->left : n->right;
	}
	return block_of(t, first);
}

struct block *tree_insert(struct tree *t, uint64_t addr)
{
	uint32_t fresh = take(t, addr), *hole = &t->root;
	struct tree_node *n = at(t, fresh);

	while (*hole && at(t, *hole)->weight >= n->weight)
		hole = addr < at(t, *hole)->addr ? &at(t, *hole)->left : &at(t, *hole)->right;
	split(t, *hole, addr, &n->left, &n->right);
	*hole = fresh;
	t->count++;
	return block_of(t, fresh);
}

void tree_remove(struct tree *t, uint64_t addr)
{
	uint32_t *hole = &t->root, gone;

	while (*hole && at(t, *hole)->addr != addr)
		hole = addr < at(t, *hole)->addr ? &at(t, *hole)->left : &at(t, *hole)->right;
	if (!*hole)
		return;
	gone = *hole;
	*hole = merge(t, at(t, gone)->left, at(t, gone)->right);
	at(t, gone)->left = t->free_list;
	t->free_list = gone;
	t->count--;
}

void tree_free(struct tree *t)
{
	for (size_t i = 0; i < t->chunk_count; i++)
		free(t->chunks[i]);
	free(t->chunks);
	free(t->nodes);
	*t = (struct tree){ 0 };
}

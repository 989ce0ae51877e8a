/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered sets of pieces, and their storage. */
#include "piece.h"

#define CHUNK 1024

static bool below(const struct piece_set *s, const struct piece *p, uint64_t size, uint64_t addr)
{
	if (!s->by_address && p->size != size)
		return p->size < size;
	return p->addr < addr;
}

/* Splits the tree into the pieces below `at` and the others. */
static void part(const struct piece_set *s, struct piece *t, const struct piece *at,
		 struct piece **lower, struct piece **upper)
{
	while (t) {
		if (below(s, t, at->size, at->addr)) {
			*lower = t;
			lower = &t->right;
			t = t->right;
		} else {
			*upper = t;
			upper = &t->left;
			t = t->left;
		}
	}
	*lower = *upper = NULL;
}

void pieces_insert(struct piece_set *s, struct piece *p)
{
	struct piece **at = &s->root;

	while (*at && (*at)->rank >= p->rank)
		at = below(s, *at, p->size, p->addr) ? &(*at)->right : &(*at)->left;
	part(s, *at, p, &p->left, &p->right);
	*at = p;
}

static struct piece *join(struct piece *lower, struct piece *upper)
{
	struct piece *all, **at = &all;

	while (lower && upper) {
		if (lower->rank >= upper->rank) {
			*at = lower;
			at = &lower->right;
			lower = lower->right;
		} else {
			*at = upper;
			at = &upper->left;
			upper = upper->left;
		}
	}
	*at = lower ? lower : upper;
	return all;
}

void pieces_erase(struct piece_set *s, struct piece *p)
{
	struct piece **at = &s->root;

	while (*at && *at != p)
		at = below(s, *at, p->size, p->addr) ? &(*at)->right : &(*at)->left;
	if (!*at)
		return;
	*at = join(p->left, p->right);
	p->left = p->right = NULL;
}

struct piece *pieces_beside(const struct piece_set *s, uint64_t size, uint64_t addr, bool lower)
{
	struct piece *found = NULL;

	for (struct piece *t = s->root, *next; t; t = next) {
		bool is_below = below(s, t, size, addr);

		found = is_below == lower ? t : found;
		next = is_below ? t->right : t->left;
	}
	return found;
}

struct piece *piece_new(struct piece_store *s)
{
	struct piece *p = s->free;

	if (p) {
		s->free = p->next;
	} else {
		if (!s->chunk_count || s->used == CHUNK) {
			*need_item(s->chunks, s->chunk_count, s->chunk_room) =
				need_new(CHUNK * sizeof(*p));
			s->used = 0;
		}
		p = &s->chunks[s->chunk_count - 1][s->used++];
	}
	s->random = s->random * 1664525 + 1013904223;
	*p = (struct piece){ .rank = s->random, .mapped = true };
	return p;
}

void piece_give(struct piece_store *s, struct piece *p)
{
	p->next = s->free;
	s->free = p;
}

void pieces_free(struct piece_store *s)
{
	for (size_t i = 0; i < s->chunk_count; i++)
		free(s->chunks[i]);
	free(s->chunks);
	*s = (struct piece_store){ 0 };
}

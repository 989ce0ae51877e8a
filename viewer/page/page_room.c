/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all parts of a track: the number of rows that they may write, and the node of a
 * stack. */
#include "page.h"

size_t page_room(const struct page *p, size_t rows, size_t least)
{
	size_t room = rows * p->scale / p->tracks;

	return room < least ? least : room;
}

uint32_t track_stack(struct track *t, uint32_t stack, uint64_t seq)
{
	return names_stack(&t->page->names, &t->timeline->stacks, &t->stacks, stack, seq);
}

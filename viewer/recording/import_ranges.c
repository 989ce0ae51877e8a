/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are reserved: segments as they are, expandable ones grown together. */
#include "import_parts.h"

enum { EXPANDABLE = 1 };

static void put(struct tree *t, uint64_t addr, uint64_t size, bool expandable)
{
	struct block *b = tree_find(t, addr);

	if (!b)
		b = tree_insert(t, addr);
	b->size = size;
	b->mark = expandable ? EXPANDABLE : 0;
}

void ranges_add(struct tree *t, uint64_t addr, uint64_t size, bool expandable)
{
	struct block *before, *after;

	if (!size || addr + size < addr)
		return;
	if (expandable) {
		before = addr ? tree_enclosing(t, addr - 1) : NULL;
		if (before && before->mark & EXPANDABLE) {
			size = addr + size - before->addr;
			addr = before->addr;
		}
		after = tree_find(t, addr + size);
		if (after && after->mark & EXPANDABLE) {
			size += after->size;
			tree_remove(t, after->addr);
		}
	}
	put(t, addr, size, expandable);
}

/* What of the range [addr, addr + size) is there goes; what lies beside it stays. */
void ranges_cut(struct tree *t, uint64_t addr, uint64_t size)
{
	struct block *b = tree_enclosing(t, addr);
	uint64_t end = addr + size < addr ? UINT64_MAX : addr + size;

	if (!b)
		b = tree_from(t, addr);
	while (b && b->addr < end) {
		struct block was = *b;
		uint64_t was_end = was.addr + was.size;

		tree_remove(t, was.addr);
		if (was.addr < addr)
			put(t, was.addr, addr - was.addr, was.mark & EXPANDABLE);
		if (was_end > end) {
			put(t, end, was_end - end, was.mark & EXPANDABLE);
			break;
		}
		b = tree_from(t, end > was_end ? was_end : end);
	}
}

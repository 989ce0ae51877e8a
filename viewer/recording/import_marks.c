/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of the program: the annotations of record_function and of optimizers, and the texts that
 * the program set as metadata of its allocations. All are on the main thread, because a snapshot
 * does not name threads.
 */
#include "import.h"
#include "../../format/record.h"
#include "import_parts.h"

/* Reserved addresses: one range for each segment; adjacent expandable ones are merged. */

enum { EXPANDABLE = 1 };

static void range_put(struct tree *t, uint64_t addr, uint64_t size, bool expandable)
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
	range_put(t, addr, size, expandable);
}

/* Removes the addresses [addr, addr + size) from the ranges. */
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
			range_put(t, was.addr, addr - was.addr, was.mark & EXPANDABLE);
		if (was_end > end) {
			range_put(t, end, was_end - end, was.mark & EXPANDABLE);
			break;
		}
		b = tree_from(t, end > was_end ? was_end : end);
	}
}

static void range(struct import *im, unsigned kind, uint32_t name, uint64_t number)
{
	import_event(im, (struct gmt_event){ .kind = kind,
					     .name = name,
					     .arg0 = number,
					     .arg1 = GMT_RANGE_FRAMEWORK,
					     .thread = THREAD_MAIN,
					     .device = -1 });
}

static void begin_range(struct import *im, uint32_t name)
{
	uint32_t *at = map_put(&im->open, name, NULL);

	if (*at) /* a range of that name is open: it ends where the next begins */
		range(im, GMT_RANGE_END, name, *at);
	*at = (uint32_t)++im->ranges;
	range(im, GMT_RANGE_BEGIN, name, *at);
}

void import_mark_begin(struct import *im, const char *name, size_t len)
{
	begin_range(im, import_string(im, name, len));
}

void import_mark_end(struct import *im, const char *name, size_t len)
{
	uint32_t id = import_string(im, name, len), *at = map_get(&im->open, id);

	if (!at || !*at)
		return;
	range(im, GMT_RANGE_END, id, *at);
	*at = 0;
}

/* Begins the ranges that were open at first: those whose first annotation is an end. */
void import_marks_early(struct import *im)
{
	struct map seen = { 0 };

	FOR_EACH (const struct import_item, item, im->items, im->item_count) {
		const struct pickle_value *a, *name;

		if (item->what == ITEM_ENTRY)
			continue;
		a = pickle_item(&im->p, im->annotations, item->index);
		name = pickle_text(&im->p, a, "name");
		if (map_add(&seen, map_hash(0, name->text, name->count)) && item->what == ITEM_END)
			import_mark_begin(im, name->text, name->count);
	}
	map_free(&seen);
}

void import_metadata(struct import *im, const struct pickle_value *text)
{
	uint32_t name = text && text->count && !pickle_ends(text, OWN_METADATA)
				? import_string(im, text->text, text->count)
				: 0;

	if (name == im->metadata)
		return;
	if (im->metadata)
		range(im, GMT_RANGE_END, im->metadata, im->metadata_range);
	im->metadata = name;
	if (!name)
		return;
	im->metadata_range = ++im->ranges;
	range(im, GMT_RANGE_BEGIN, name, im->metadata_range);
}

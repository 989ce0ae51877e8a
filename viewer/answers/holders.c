/* SPDX-License-Identifier: Apache-2.0 */
#include "holders.h"

#include "../../format/mem_traits.h"
#include "../base/sorted.h"

struct row_class_line holder_line(const struct holder *h)
{
	return (struct row_class_line){
		.class = h->category, .owner = h->owner, .bytes = h->bytes, .blocks = h->blocks
	};
}

const char *holder_words(const struct holder *h)
{
	return h->before > h->bytes / 2 ? category_kept_words(h->category)
					: categories[h->category].words;
}

static bool holder_row(void *ctx, size_t i, struct row_class_line *row)
{
	*row = holder_line(&((const struct holders *)ctx)->items[i]);
	return true;
}

struct rows_class_line holders_rows(const struct holders *all)
{
	return (struct rows_class_line){ all->count, holder_row, (void *)all };
}

static int by_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* The holder that is equal to h, or a new one. A scan of the most recent ones would not help,
 * because there are some hundreds of holders, one per line that allocates. */
static struct holder *place_holder(struct holders *all, const struct holder *h)
{
	for (size_t i = 0; i < all->count; i++) {
		struct holder *other = &all->items[i];

		if (h->category == other->category && !by_text(h->inside, other->inside) &&
		    (!h->owner.function || owners_same(&other->owner, &h->owner)))
			return other;
	}
	*need_item(all->items, all->count, all->room) = *h;
	return &all->items[all->count - 1];
}

static struct holder *add_to_holder(struct holders *all, struct holder h, uint64_t bytes)
{
	struct holder *at = place_holder(all, &h);

	at->bytes += bytes;
	at->blocks++;
	return at;
}

struct holder *holders_add(struct holders *all, unsigned category, struct owner owner,
			   uint64_t bytes)
{
	return add_to_holder(all, (struct holder){ .category = category, .owner = owner }, bytes);
}

/* Holders of equal size are ordered by their text, so that the order is always the same. */
COMPARE(by_bytes, struct holder,
	ORDER(y->bytes, x->bytes) ?: ORDER(x->category, y->category) ?:
	by_text(x->owner.function, y->owner.function) ?:
	by_text(x->owner.file, y->owner.file) ?:
	ORDER(x->owner.line, y->owner.line) ?: by_text(x->inside, y->inside))

void holders_sort(struct holders *all)
{
	SORT(all->items, all->count, by_bytes);
}

struct holders holders_of_blocks(const struct moment *mo, struct owners *owners, bool by_class)
{
	struct holders all = { 0 };

	FOR_BLOCKS (b, mo)
		holders_add(&all, by_class ? b->category : 0, owners_find(owners, b), b->size);
	holders_sort(&all);
	return all;
}

/* Handles of physical memory mapped in the framework's segments, also if a library created it to
 * wake them. */
static struct map behind_cache(const struct moment *mo)
{
	struct map handles = { 0 };

	for (size_t i = 0; i < mo->mapped_count; i++)
		if (mo->mapped[i].flags & GMT_FLAG_FRAMEWORK)
			map_put(&handles, mo->mapped[i].handle, NULL);
	return handles;
}

struct holders holders_of_libraries(const struct moment *mo, struct owners *owners)
{
	struct holders all = { 0 };
	struct map cache = behind_cache(mo);

	FOR_EACH (const struct block, b, mo->memory, mo->memory_count) {
		if (b->memory == GMT_MEM_PHYSICAL && map_get(&cache, b->addr))
			continue;
		if (b->flags & GMT_FLAG_FRAMEWORK || b->device != mo->device ||
		    !(gmt_mem_is_on_device(b->memory) || b->memory == GMT_MEM_IMPORTED))
			continue;
		add_to_holder(&all, (struct holder){ .inside = owners_library(owners, b) },
			      b->size);
	}
	map_free(&cache);
	holders_sort(&all);
	return all;
}

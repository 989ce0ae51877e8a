/* SPDX-License-Identifier: Apache-2.0 */
#include "unclassed.h"

#include "../base/human.h"
#include "../base/map.h"
#include "../base/sorted.h"
#include "../classes/categories.h"

#define PART   4 /* less than a quarter of the bytes is not reported */
#define EQUALS 4 /* fewer blocks of one size are not reported */

static bool is_unclassed(const struct block *b)
{
	return b->category == CATEGORY_unknown && !b->stack;
}

COMPARE(by_bytes, struct unclassed_size, ORDER(y->blocks * y->size, x->blocks * x->size))

static void find_sizes(struct unclassed *u, const struct snapshot *s)
{
	MAP_OF(struct unclassed_size) sizes = { .count = 0 };

	FOR_BLOCKS (b, &s->moment)
		if (is_unclassed(b)) {
			struct unclassed_size *x = map_item(&sizes, b->size);

			x->size = b->size;
			x->blocks++;
		}
	SORT(sizes.items, sizes.count, by_bytes);
	for (size_t i = 0; i < UNCLASSED_SIZES && i < sizes.count; i++)
		u->most[i] = sizes.items[i];
	map_items_free(&sizes);
}

void unclassed_find(struct unclassed *u, const struct timeline *t, const struct snapshot *s)
{
	const struct moment *mo = &s->moment;
	bool stacks = t->recording->defs.nodes.count; /* else a missing one shows nothing */

	*u = (struct unclassed){ 0 };
	if (!defs_meta(&t->recording->defs, "source").len)
		return;
	u->bytes = BYTES_OF(b, mo, is_unclassed(b));
	if (stacks)
		u->before = BYTES_OF(b, mo, is_unclassed(b) && b->seq <= t->model.state_seq);
	find_sizes(u, s);
}

bool unclassed_words(const struct unclassed *u, uint64_t all, char words[UNCLASSED_WORDS])
{
	words[0] = 0;
	if (!u->bytes || u->bytes < all / PART)
		return false;
	if (u->before >= u->bytes / 2)
		text_put(words, UNCLASSED_WORDS,
			 "%s (%s) were allocated before the recording began, and nothing shows "
			 "what they are for.",
			 B(u->before), PERCENT(u->before, all));
	else
		text_put(words, UNCLASSED_WORDS,
			 "Of %s (%s) nothing is known but the size: they were recorded without "
			 "stacks.",
			 B(u->bytes), PERCENT(u->bytes, all));
	FOR_EACH (const struct unclassed_size, x, u->most, UNCLASSED_SIZES)
		if (x->blocks >= EQUALS && x->blocks * x->size >= u->bytes / PART)
			text_add(words, UNCLASSED_WORDS, " %s of it are %zu blocks of %s each.",
				 B(x->blocks * x->size), x->blocks, B(x->size));
	return true;
}

void unclassed_add(const struct unclassed *u, uint64_t all, char *text, size_t room)
{
	char words[UNCLASSED_WORDS];

	if (unclassed_words(u, all, words))
		text_add(text, room, " %s To know more, %s.", words, UNCLASSED_NEXT);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What checkpointing would have saved: the modules of one class that are called from one line again
 * and again (the layers of a model), found by the frames of their activations. Of each call only
 * the output stays; while backward runs, the inside of one is there again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "oom.h"

/* A class of modules at one place of the call path. */
struct site {
	const char *function; /* "Block.forward" */
	uint64_t bytes;
	uint32_t *blocks; /* indices in the moment, in order of birth */
	size_t count, room;
};

struct sites {
	struct map ids; /* of the call path and the function */
	struct site *items;
	size_t count, room;
};

static struct site *site_of(struct sites *all, uint64_t key, const char *function)
{
	uint32_t at = map_number(&all->ids, key, all->count);

	if (at == all->count)
		*need_item(all->items, all->count, all->room) =
			(struct site){ .function = function };
	return &all->items[at];
}

/* From the outermost frame inwards: what leads to a forward is its place. */
static void add(struct sites *all, struct stacks *s, const struct block *b, uint32_t index)
{
	uint64_t path = 0;

	stacks_read_python(s, b->stack);
	for (size_t i = s->count; i-- > 0;) {
		const struct frame *f = &s->frames[i];

		if (owners_is_forward(f->function)) {
			struct site *site =
				site_of(all, map_hash_text(path, f->function), f->function);

			*need_item(site->blocks, site->count, site->room) = index;
			site->bytes += b->size;
		}
		path = map_hash_text(map_hash_text(path, f->function), f->file) + f->line;
	}
}

static const struct block *sorting;

static int by_birth(const void *a, const void *b)
{
	uint64_t x = sorting[*(const uint32_t *)a].seq, y = sorting[*(const uint32_t *)b].seq;

	return x < y ? -1 : x > y;
}

/* How often it was called: as often as the line that made its first block. Lines that came less
 * often are around the calls, not inside: then it is no module that repeats. */
static size_t calls_of(const struct site *site, const struct block *blocks)
{
	struct map counts = { 0 };
	uint64_t around = 0;
	uint32_t calls;

	for (size_t i = 0; i < site->count; i++)
		++*map_put(&counts, blocks[site->blocks[i]].stack, NULL);
	calls = *map_get(&counts, blocks[site->blocks[0]].stack);
	for (size_t i = 0; i < site->count; i++)
		if (*map_get(&counts, blocks[site->blocks[i]].stack) + 1 < calls)
			around += blocks[site->blocks[i]].size;
	map_free(&counts);
	return around > site->bytes / 50 ? 1 : calls;
}

static uint64_t saves_of(struct site *site, const struct block *blocks, size_t *calls)
{
	uint64_t kept = 0;
	size_t i = 0;

	sorting = blocks;
	qsort(site->blocks, site->count, sizeof(*site->blocks), by_birth);
	*calls = calls_of(site, blocks);
	if (*calls < 2)
		return 0;
	do
		kept += blocks[site->blocks[i++]].size;
	while (i < site->count && blocks[site->blocks[i]].stack != blocks[site->blocks[0]].stack);
	kept += (*calls - 1) * blocks[site->blocks[i - 1]].size;
	return site->bytes > kept ? site->bytes - kept : 0;
}

static void name_of(const struct site *site, char *name, size_t room)
{
	const char *end = strrchr(site->function, '.'), *start = end;

	while (start > site->function && start[-1] != '.')
		start--;
	snprintf(name, room, "%.*s", (int)(end - start), start);
}

uint64_t oom_checkpoint(const struct oom *o, char *name, size_t room, size_t *calls)
{
	const struct moment *mo = &o->shot.moment;
	struct sites all = { 0 };
	uint64_t best = 0;

	*calls = 0;
	for (size_t i = 0; i < mo->count; i++)
		if (o->shot.classes[i] == CATEGORY_activations && mo->blocks[i].seq >= o->since)
			add(&all, (struct stacks *)&o->timeline->stacks, &mo->blocks[i], i);
	for (size_t i = 0; i < all.count; i++) {
		size_t n;
		uint64_t saves = saves_of(&all.items[i], mo->blocks, &n);
		bool same = saves == best && n == *calls; /* nothing beside: the inner one */

		if (saves && (saves > best || same)) {
			best = saves;
			*calls = n;
			name_of(&all.items[i], name, room);
		}
		free(all.items[i].blocks);
	}
	free(all.items);
	map_free(&all.ids);
	return best;
}

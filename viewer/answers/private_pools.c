/* SPDX-License-Identifier: Apache-2.0 */
#include "private_pools.h"

#include "../base/human.h"
#include "../base/sorted.h"
#include "document.h"
#include "holders.h"
#include "parts.h"

const struct pool_words pool_kinds[POOL_KINDS] = {
#define KIND(name, label, text, advice) { #name, label, text, advice },
#include "pool_kinds.def"
};

/* The name of a pool has a first number if a graph made it, else only a second one. */
enum pool_kind pool_kind(const struct pool *p, struct owners *owners, uint32_t stack)
{
	if (stacks_in_file(owners->stacks, stack, ONE_OF("torch/_inductor/cudagraph_")))
		return POOL_compiled_graphs;
	if (p->graph || p->first)
		return POOL_cuda_graphs;
	return p->own ? POOL_mem_pool : POOL_unknown;
}

struct summing {
	struct owners *owners;
	struct map pools; /* pools seen so far -> their kind */
	struct pool_sums *sums;
	struct holders lines; /* of all kinds, with the kind in place of the class */
};

static enum pool_kind kind_once(struct summing *s, const struct room_piece *p)
{
	bool fresh;
	uint32_t *kind = map_put(&s->pools, (uintptr_t)p->pool, &fresh);

	if (fresh) {
		*kind = pool_kind(p->pool, s->owners, p->segment->stack);
		s->sums->items[*kind].pools++;
	}
	return *kind;
}

/* The line that called the model, which explains a capture better than a line of the model. */
struct owner pool_owner(struct owners *owners, const struct block *segment)
{
	struct owner owner = owners_caller(owners, segment->stack);

	return owner.file[0] ? owner : owners_find(owners, segment);
}

static void add_piece(void *ctx, const struct room_piece *p)
{
	struct summing *s = ctx;
	struct pool_sum *sum;
	enum pool_kind kind;

	if (!p->pool)
		return;
	kind = kind_once(s, p);
	sum = &s->sums->items[kind];
	sum->bytes += p->bytes;
	sum->used += p->used;
	s->sums->bytes += p->bytes;
	holders_add(&s->lines, kind, pool_owner(s->owners, p->segment), p->bytes);
}

static void find_owner(struct pool_sum *sum, const struct holders *lines)
{
	FOR_EACH (const struct holder, h, lines->items, lines->count) {
		if ((enum pool_kind)h->category != sum->kind)
			continue;
		if (!sum->owner.function)
			sum->owner = h->owner;
		if (h->owner.file[0]) {
			sum->owner = h->owner;
			return;
		}
	}
}

COMPARE(by_bytes, struct pool_sum, ORDER(y->bytes, x->bytes) ?: ORDER(x->kind, y->kind))

struct pool_sums private_pools(const struct model *m, const struct moment *mo,
			       struct owners *owners)
{
	struct pool_sums sums = { 0 };
	struct summing s = { .owners = owners, .sums = &sums };

	room_pieces(m, mo, add_piece, &s);
	holders_sort(&s.lines);
	for (unsigned k = 0; k < POOL_KINDS; k++) {
		sums.items[k].kind = k;
		find_owner(&sums.items[k], &s.lines);
		sums.count += sums.items[k].pools != 0;
	}
	qsort(sums.items, POOL_KINDS, sizeof(*sums.items), by_bytes);
	free(s.lines.items);
	map_free(&s.pools);
	return sums;
}

static bool pool_row(void *ctx, size_t i, struct row_private_pool *row)
{
	const struct pool_sum *sum = &((const struct pool_sums *)ctx)->items[i];

	*row = (struct row_private_pool){ .kind = pool_kinds[sum->kind].name,
					  .bytes = sum->bytes,
					  .allocated_bytes = sum->used,
					  .pools = sum->pools,
					  .owner = sum->owner };
	return true;
}

struct rows_private_pool private_pools_rows(const struct pool_sums *sums)
{
	return (struct rows_private_pool){ sums->count, pool_row, (void *)sums };
}

const char *pool_note(const struct pool_sum *sum, char *buf, size_t room)
{
	char who[OWNER_WORDS];

	snprintf(buf, room, "of %s in %s, %s", B(sum->bytes), MANY(sum->pools, "pool"),
		 owner_words(&sum->owner, who, sizeof(who), 22));
	return buf;
}

void private_pools_print(const struct pool_sums *sums, const struct room *room, int width,
			 struct emit *out)
{
	char note[POOL_NOTE];

	FOR_EACH (const struct pool_sum, sum, sums->items, sums->count)
		emit_figure(out, width, pool_kinds[sum->kind].label, sum->bytes - sum->used, "%s",
			    pool_note(sum, note, sizeof(note)));
	if (room->waiting)
		emit_figure(out, width, WAITING, room->waiting, WAITING_NOTE);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact sizes from which a model's shape is inferred. autograd knows them for leaves and for
 * saved tensors, but blocks are rounded. A leaf outside of every parameter block at rest was
 * gathered from shards.
 */
#include <stdlib.h>

#include "../base/need.h"
#include "shape.h"

#define SHARDS_MOST 4096
#define SMALL	    (1u << 20)

struct collect {
	int device;
	struct tensor *tensors; /* of it, in order of address */
	bool *stays;		/* lies in a parameter's block at rest */
	size_t count;
	struct sizes saved;
	struct sizes whole;    /* tensors in parameter blocks */
	struct sizes bare;     /* parameter blocks without a tensor */
	struct sizes gathered; /* leaves in no parameter block */
};

static int by_addr(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void take_tensors(struct collect *c, const struct tensors *all)
{
	c->tensors = need_new((all->count + 1) * sizeof(*c->tensors));
	c->stays = need_new(all->count + 1);
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].device == c->device)
			c->tensors[c->count++] = all->items[i];
	if (c->count)
		qsort(c->tensors, c->count, sizeof(*c->tensors), by_addr);
}

/* Kept tensors were made in the step, saved in the forward pass, and are alive at its end. */
static void take_saved(struct collect *c, const struct snapshot *end, const struct step *step,
		       const struct extent *forward)
{
	for (size_t i = 0; i < end->moment.count; i++) {
		const struct block *b = &end->moment.blocks[i];
		uint64_t saved;

		if (b->seq < step->extent.first_seq)
			continue;
		saved = model_first_saved(end->model, b);
		if (saved >= forward->first_ns && saved <= forward->last_ns)
			sizes_add(&c->saved, model_storage(end->model, b));
	}
}

/* Bytes of the tensors in a parameter's block, and of the leaves among them; 0 = none is known. */
static uint64_t tensors_in(struct collect *c, size_t *i, const struct block *b, uint64_t *leaves)
{
	uint64_t sum = 0;

	while (*i < c->count && c->tensors[*i].addr < b->addr)
		++*i;
	for (; *i < c->count && c->tensors[*i].addr < b->addr + b->size; ++*i) {
		const struct tensor *t = &c->tensors[*i];

		c->stays[*i] = t->latest && t->seq >= b->seq &&
			       t->addr + t->size <= b->addr + b->size && sum + t->size <= b->size;
		if (!c->stays[*i])
			continue;
		sizes_add(&c->whole, t->size);
		sum += t->size;
		*leaves += t->leaf ? t->size : 0;
	}
	return sum;
}

/* Matches parameter blocks with the tensors in them; both are ordered by address. */
static void match(struct shape *out, struct collect *c, const struct snapshot *rest)
{
	size_t i = 0;

	for (size_t n = 0; n < rest->moment.count; n++) {
		const struct block *b = &rest->moment.blocks[n];
		uint64_t sum;

		if (rest->classes[n] != CATEGORY_parameters)
			continue;
		sum = tensors_in(c, &i, b, &out->trainable);
		out->exact += sum;
		if (!sum)
			sizes_add(&c->bare, b->size);
	}
	for (size_t n = 0; n < c->count; n++)
		if (c->tensors[n].leaf && !c->stays[n])
			sizes_add(&c->gathered, c->tensors[n].size);
}

/* Most bytes by which a block may exceed its tensor, because the allocator does not split off a
 * smaller rest. */
static uint64_t rounded(uint64_t part)
{
	return part > SMALL ? SMALL : 511;
}

/* The gathered tensor of which a block of that size may be a part. */
static uint64_t part_of(const struct sizes *gathered, uint64_t size, uint64_t shards)
{
	for (size_t i = gathered->count; i > 0; i--) {
		uint64_t whole = gathered->items[i - 1].size, part = whole / shards;

		if (whole % shards == 0 && part <= size && size - part <= rounded(part))
			return whole;
	}
	return 0;
}

/* Bytes in blocks without a leaf that are parts of gathered leaves. */
static uint64_t parts(const struct collect *c, uint64_t shards)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->bare.count; i++)
		if (part_of(&c->gathered, c->bare.items[i].size, shards))
			bytes += c->bare.items[i].size * c->bare.items[i].count;
	return bytes;
}

/* The number of shards, if parameters that autograd never sees and leaves that are not kept are
 * parts of a whole, by the same fraction for nearly all of them. Returns the smallest such
 * number. */
static uint64_t shards_of(const struct collect *c)
{
	const struct sizes *bare = &c->bare, *gathered = &c->gathered;
	uint64_t all = 0, largest;

	for (size_t i = 0; i < bare->count; i++)
		all += bare->items[i].size * bare->items[i].count;
	if (gathered->count < 2 || !all)
		return 1;
	largest = gathered->items[gathered->count - 1].size;
	for (uint64_t n = 2; n <= SHARDS_MOST && n <= largest; n++)
		if (largest % n == 0 && parts(c, n) > all / 10 * 9)
			return n;
	return 1;
}

/* Adds blocks without tensors: as shards of a gathered tensor, or else with their own size. */
static void add_bare(struct shape *out, struct collect *c)
{
	uint64_t shards = shape_get(out, SHAPE_SHARDS);

	for (size_t i = 0; i < c->bare.count; i++) {
		uint64_t size = c->bare.items[i].size, n = c->bare.items[i].count;
		uint64_t whole = shards > 1 ? part_of(&c->gathered, size, shards) : 0;

		out->exact += (whole ? whole / shards : size) * n;
		out->trainable += (whole ? whole / shards : 0) * n;
		for (uint64_t k = 0; whole && k < n; k++)
			sizes_add(&c->whole, whole);
	}
}

void shape_find(struct shape *out, const struct step *step, const struct extent *forward,
		const struct snapshot *end, const struct snapshot *rest, uint64_t state,
		const double given[SHAPE_FIGURES])
{
	struct collect c = { .device = end->moment.device };

	*out = (struct shape){ 0 };
	for (int f = 0; f < SHAPE_FIGURES; f++)
		shape_set(out, f, given[f], FIGURE_GIVEN);
	take_tensors(&c, &end->model->tensors);
	take_saved(&c, end, step, forward);
	match(out, &c, rest);
	shape_set(out, SHAPE_SHARDS, shards_of(&c), FIGURE_INFERRED);
	add_bare(out, &c);
	shape_infer(out, &c.whole, &c.saved, out->exact, state);
	free(c.tensors);
	free(c.stays);
	free(c.saved.items);
	free(c.whole.items);
	free(c.bare.items);
	free(c.gathered.items);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of blocks that one stack of the script makes outside of modules. Blocks as large as the
 * parameters, one for each, are copies, moments or gradients of them. Blocks that accumulate from
 * pass to pass are results.
 */
#include "study.h"
#include "thresholds.h"

struct history *study_alive(struct study *st, const struct study_birth *at)
{
	struct history *h = NULL;

	if (at->seq && at->device >= 0 && at->device < MODEL_DEVICES)
		h = live_find(&st->m->devices[at->device].live, at->addr);
	return h && h->block.seq == at->seq ? h : NULL;
}

bool study_as_large(uint64_t a, uint64_t b)
{
	enum { REST = 1 << 20 };

	return a == b || (a > REST && b > REST && (a > b ? a - b : b - a) <= REST);
}

void study_count_size(struct study_sizes *s, uint64_t size, bool about)
{
	unsigned i = 0;

	while (i < STUDY_SIZES && s->of[i].blocks && s->of[i].bytes != size &&
	       !(about && study_as_large(s->of[i].bytes, size)))
		i++;
	if (i == STUDY_SIZES)
		return;
	s->of[i].bytes = size;
	s->of[i].blocks++;
}

static void note_size(struct study *st, uint64_t size)
{
	++*map_put(&st->sizes, size, NULL);
}

void study_gradient_size(struct study *st, uint64_t size)
{
	note_size(st, size);
	if (size > st->largest_gradient)
		st->largest_gradient = size;
}

/* The size of a weight or gradient, `times` as large, apart from a rest that was not split off. */
static bool is_as_large(const struct study *st, uint64_t size, unsigned times)
{
	for (size_t i = 0; i < st->sizes.room; i++)
		if (st->sizes.slots[i].used && study_as_large(times * st->sizes.slots[i].key, size))
			return true;
	return false;
}

bool study_size_is_of_weight(const struct study *st, uint64_t size)
{
	return map_get(&st->sizes, size) != NULL;
}

bool study_has_model(const struct study *st)
{
	return st->sizes.count;
}

/* The set accumulates if its first block from two passes before is still alive. */
static void begin_pass(struct study *st, struct study_set *s, const struct history *b)
{
	const struct study_birth *oldest = &s->firsts[0];

	if (oldest->seq && study_alive(st, oldest))
		s->gathers = true;
	s->firsts[0] = s->firsts[1];
	s->firsts[1] = study_birth(b);
	s->pass = b->born_forward + b->born_backward;
	if (s->passes && s->backward == b->born_backward)
		s->in_a_row++;
	s->backward = b->born_backward;
	s->passes++;
	s->at_once = 0;
	s->last = b->block.size;
}

static void note_in_set(struct study *st, struct study_set *s, const struct history *b)
{
	if (!s->passes)
		s->changes++;
	if (!s->passes || b->born_forward + b->born_backward != s->pass)
		begin_pass(st, s, b);
	s->at_once++;
	s->changes += s->last != b->block.size;
	s->last = b->block.size;
	study_count_size(&s->sizes, b->block.size, false);
}

void study_sets_born(struct study *st, const struct history *b)
{
	if (b->block.memory)
		return;
	if (b->signs & STACK_PARAM)
		note_size(st, b->block.size);
	else if (b->stage == STAGE_OUTSIDE && b->block.stack)
		note_in_set(st, map_item(&st->sets, b->block.stack), b);
}

void study_sets_leaf(struct study *st, const struct history *h)
{
	struct study_set *s = h->block.stack ? map_find(&st->sets, h->block.stack) : NULL;

	if (!s || h->stage != STAGE_OUTSIDE)
		return;
	if (!h->facts.leaf_ns)
		note_size(st, h->block.size);
	s->trained = true;
}

/* As large as a parameter, or twice as large: a copy in twice the precision. Blocks are multiples
 * of 512 bytes. */
static bool is_alike(const struct study *st, uint64_t size)
{
	uint64_t half = size / 2;

	return map_get(&st->sizes, size) || map_get(&st->sizes, half) ||
	       map_get(&st->sizes, (half + 511) & ~511ull);
}

static const struct study_set *find_set(const struct study *st, uint32_t stack)
{
	return stack ? map_find(&st->sets, stack) : NULL;
}

bool study_size_is_of_copy(const struct study *st, uint64_t size)
{
	return is_alike(st, size) || is_as_large(st, size, 1) || is_as_large(st, size, 2);
}

/* Three quarters of the blocks must have sizes of parameters or copies, but a quarter of the bytes:
 * small blocks match by chance, and large ones can have a rest that was not split off. */
bool study_is_of_a_set(const struct study *st, uint32_t stack)
{
	const struct study_set *s = find_set(st, stack);
	uint64_t blocks = 0, bytes = 0, alike = 0, alike_bytes = 0;

	if (!s || s->changes <= 1 || s->trained)
		return false;
	for (unsigned i = 0; i < STUDY_SIZES && s->sizes.of[i].blocks; i++) {
		uint64_t n = s->sizes.of[i].blocks, size = s->sizes.of[i].bytes;
		bool fits = is_alike(st, size);

		blocks += n;
		bytes += n * size;
		alike += fits ? n : 0;
		alike_bytes += fits ? n * size : 0;
	}
	return alike * 4 >= blocks * 3 && alike_bytes * 4 >= bytes;
}

/* As many as there are weights of some size, or twice as many: keys, and values. */
bool study_is_for_each_layer(const struct study *st, uint32_t stack)
{
	const struct study_set *s = find_set(st, stack);
	bool even = s && s->sizes.of[0].bytes >= CACHE_LEAST && !s->sizes.of[1].blocks;
	uint32_t n = even ? s->sizes.of[0].blocks : 1;

	for (size_t i = 0; n >= LAYERS_LEAST && i < st->sizes.room; i++)
		if (st->sizes.slots[i].used &&
		    (st->sizes.slots[i].value == n || 2 * st->sizes.slots[i].value == n))
			return true;
	return false;
}

enum { MANY = 4 };

bool study_makes_many(const struct study *st, uint32_t stack)
{
	const struct study_set *s = find_set(st, stack);

	return s && s->passes > 1 && s->at_once >= MANY && 2 * s->in_a_row >= s->passes;
}

bool study_is_of_network(const struct study *st, uint32_t stack)
{
	const struct study_set *s = find_set(st, stack);

	return s && s->at_once >= NETWORK;
}

bool study_gathers(const struct study *st, uint32_t stack)
{
	const struct study_set *s = find_set(st, stack);

	return s && s->gathers;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one line of the script makes outside of modules, taken together: blocks as large as the
 * parameters, one each, are copies, moments, gradients of them; blocks that gather from pass to
 * pass are results.
 */
#include "../base/need.h"
#include "model_parts.h"

bool model_as_large(uint64_t a, uint64_t b)
{
	enum { REST = 1 << 20 };

	return a == b || (a > REST && b > REST && (a > b ? a - b : b - a) <= REST);
}

static void note_size(struct model *m, uint64_t size)
{
	bool fresh;

	*map_put(&m->sizes, size, &fresh) = 1;
}

void model_note_gradient_size(struct model *m, uint64_t size)
{
	note_size(m, size);
	if (size > m->largest_gradient)
		m->largest_gradient = size;
}

bool model_size_is_of_weight(const struct model *m, uint64_t size)
{
	return map_get(&m->sizes, size) != NULL;
}

static struct model_set *set_of(struct model *m, uint32_t stack)
{
	bool fresh;
	uint32_t *at = map_put(&m->set_ids, stack, &fresh);

	if (fresh) {
		m->sets = need_grow(m->sets, &m->set_room, m->set_count, sizeof(*m->sets));
		*at = m->set_count++;
		m->sets[*at] = (struct model_set){ 0 };
	}
	return &m->sets[*at];
}

/* Of the passes before the latest two, is the latter's first block still there? */
static void begin_pass(struct model *m, struct model_set *s, const struct history *b)
{
	const struct model_birth *oldest = &s->firsts[0];
	struct model_device *d = model_device(m, oldest->device);
	struct history *old = d && oldest->seq ? live_find(&d->live, oldest->addr) : NULL;

	s->gathers |= old && old->block.seq == oldest->seq;
	s->firsts[0] = s->firsts[1];
	s->firsts[1] = (struct model_birth){ b->block.addr, b->block.seq, b->block.device };
	s->pass = b->born_forward + b->born_backward;
	s->passes++;
	s->at_once = 0;
	s->last = b->block.size;
}

static void note_in_set(struct model *m, struct model_set *s, const struct history *b)
{
	unsigned i = 0;

	s->changes += !s->passes;
	if (!s->passes || b->born_forward + b->born_backward != s->pass)
		begin_pass(m, s, b);
	s->at_once++;
	s->changes += s->last != b->block.size;
	s->last = b->block.size;
	while (i < MODEL_SIZES && s->sizes[i].blocks && s->sizes[i].bytes != b->block.size)
		i++;
	if (i < MODEL_SIZES) {
		s->sizes[i].bytes = b->block.size;
		s->sizes[i].blocks++;
	}
}

void model_note_size(struct model *m, const struct history *b)
{
	if (b->block.memory)
		return;
	if (b->signs & STACK_PARAM)
		note_size(m, b->block.size);
	else if (b->stage == STAGE_OUTSIDE && b->block.stack)
		note_in_set(m, set_of(m, b->block.stack), b);
}

/* As large as a parameter, or twice as large: a copy in twice the precision. Blocks are multiples
 * of 512 bytes. */
static bool is_alike(const struct model *m, uint64_t size)
{
	uint64_t half = size / 2;

	return map_get(&m->sizes, size) || map_get(&m->sizes, half) ||
	       map_get(&m->sizes, (half + 511) & ~511ull);
}

static const struct model_set *find_set(const struct model *m, uint32_t stack)
{
	const uint32_t *at = stack ? map_get(&m->set_ids, stack) : NULL;

	return at ? &m->sets[*at] : NULL;
}

bool model_is_of_a_set(const struct model *m, uint32_t stack)
{
	const struct model_set *s = find_set(m, stack);
	uint64_t all = 0, alike = 0;

	if (!s || s->changes <= 1)
		return false;
	for (unsigned i = 0; i < MODEL_SIZES && s->sizes[i].blocks; i++) {
		all += s->sizes[i].blocks;
		alike += is_alike(m, s->sizes[i].bytes) ? s->sizes[i].blocks : 0;
	}
	return alike * 4 >= all * 3;
}

enum { MANY = 4 };

bool model_makes_many(const struct model *m, uint32_t stack)
{
	const struct model_set *s = find_set(m, stack);

	return s && s->passes > 1 && s->at_once >= MANY;
}

bool model_makes_many_once(const struct model *m, uint32_t stack)
{
	const struct model_set *s = find_set(m, stack);

	return s && s->passes == 1 && s->at_once >= MANY;
}

bool model_gathers(const struct model *m, uint32_t stack)
{
	const struct model_set *s = find_set(m, stack);

	return s && s->gathers;
}

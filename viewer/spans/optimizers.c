/* SPDX-License-Identifier: Apache-2.0 */
#include "optimizers.h"

#include <stdlib.h>
#include <string.h>

#include "../base/bytes.h"
#include "../base/need.h"
#include "../stacks/owners.h"

static uint64_t mix(uint64_t hash, const char *s, unsigned line)
{
	return bytes_hash(bytes_hash(hash, s, strlen(s)), &line, sizeof(line));
}

/* The lines of the program's own on a stack inside of an optimizer's step as one number, without
 * those of the optimizer; 0 = there are none. */
static uint32_t read_caller(struct stacks *stacks, uint32_t stack)
{
	uint64_t hash = BYTES_HASH;

	stacks_read_python(stacks, stack);
	for (size_t i = 0; i < stacks->count; i++) {
		const struct frame *f = &stacks->frames[i];

		if (strstr(f->function, "profile_hook_step"))
			hash = BYTES_HASH; /* an optimizer's own lines do not tell who called it */
		if (!owners_is_plumbing(f->file))
			hash = mix(mix(hash, f->file, 0), f->function, f->line);
	}
	return hash == BYTES_HASH ? 0 : (uint32_t)(hash >> 32 ^ hash) | 1;
}

static uint32_t caller_of(struct map *callers, struct stacks *stacks, uint32_t stack)
{
	return stack ? map_known(callers, stack, read_caller(stacks, stack)) : 0;
}

/* The one that was called from there; where that is not known, the next in turn of its name. */
static struct optimizer *known(struct optimizers *o, const struct span *span, uint32_t caller,
			       unsigned last)
{
	for (unsigned i = 1; i <= o->count; i++) {
		struct optimizer *x = &o->items[(last + i) % o->count];

		if (x->name == span->name && (caller ? x->caller == caller : !x->passed))
			return x;
	}
	return NULL;
}

static struct optimizer *add(struct optimizers *o, const struct span *span, uint32_t caller)
{
	struct optimizer *new = &o->items[o->count];

	if (o->count == OPTIMIZERS_MAX)
		return &o->items[0];
	for (struct optimizer *x = o->items; x < new; x++)
		x->passed |= x->name == span->name && x->calls > 1;
	*new = (struct optimizer){ .caller = caller,
				   .name = span->name,
				   .same = (uint8_t)o->count };
	o->count++;
	return new;
}

static void note_step(struct optimizer *x, const struct span *span, size_t i, uint32_t gradients)
{
	if (!x->calls++) {
		x->first = i;
		x->gradients = gradients;
	}
	x->last = i;
	x->state |= span->blocks > 0;
	x->passed = false;
}

static bool is_one_of_two_places(const struct optimizer *a, const struct optimizer *b)
{
	return a->name && a->name == b->name && a->gradients == b->gradients && a->state &&
	       !b->state;
}

/* Every optimizer that keeps state makes it in its first step: one that never did took its steps
 * elsewhere before. Of several it is not known which. */
static void join_places(struct optimizers *o)
{
	for (unsigned b = 0; b < o->count; b++) {
		unsigned a = 0, found = 0;

		for (unsigned i = 0; i < o->count; i++)
			if (is_one_of_two_places(&o->items[i], &o->items[b])) {
				a = i;
				found++;
			}
		if (found == 1)
			o->items[b].same = (uint8_t)a;
	}
}

/* After all places have been joined: those that were keep their own beginning and end. */
static void join_times(struct optimizers *o)
{
	for (unsigned i = 0; i < o->count; i++) {
		const struct optimizer *x = &o->items[i];
		struct optimizer *to = &o->items[x->same];

		if (x == to)
			continue;
		to->first = x->first < to->first ? x->first : to->first;
		to->last = x->last > to->last ? x->last : to->last;
		to->calls += x->calls;
	}
}

void optimizers_find(struct optimizers *o, const struct spans *s, struct stacks *stacks)
{
	struct map callers = { 0 }; /* stack -> its lines */
	uint32_t gradients = 0;
	unsigned last = 0;

	o->count = 0;
	o->of_span = need_new(s->count + 1);
	for (size_t i = 0; i < s->count; i++) {
		const struct span *span = &s->items[i];
		uint32_t caller;
		struct optimizer *x;

		gradients += span->gradients;
		if (span->phase != PHASE_OPTIMIZER || span->in_backward)
			continue;
		caller = caller_of(&callers, stacks, span->stack);
		x = known(o, span, caller, last);
		x = x ? x : add(o, span, caller);
		note_step(x, span, i, gradients);
		gradients = 0;
		last = (unsigned)(x - o->items);
		o->of_span[i] = (uint8_t)last;
	}
	map_free(&callers);
	join_places(o);
	join_times(o);
}

void optimizers_free(struct optimizers *o)
{
	free(o->of_span);
}

unsigned optimizers_of(const struct optimizers *o, size_t span)
{
	return o->items[o->of_span[span]].same;
}

bool optimizers_in_turn(const struct optimizers *o, unsigned a, unsigned b)
{
	const struct optimizer *x = &o->items[a], *y = &o->items[b];

	return (x->first < y->last && y->first < x->last) || (x->calls == 1 && y->calls == 1);
}

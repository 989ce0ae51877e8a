/* SPDX-License-Identifier: Apache-2.0 */
#include "optimizers.h"

#include "../base/bytes.h"
#include "../recording/owners.h"

const char *optimizer_name(const char *of, char buf[OPTIMIZER_NAME])
{
	const char *hash = strchr(of, '#'), *name = hash ? hash + 1 : of, *dot = strrchr(name, '.');

	snprintf(buf, OPTIMIZER_NAME, "%.*s", dot ? (int)(dot - name) : 0, name);
	return buf;
}

const char *optimizer_of_spans(const struct spans *s, size_t last, const struct defs *defs,
			       char buf[OPTIMIZER_NAME])
{
	buf[0] = 0;
	for (size_t i = last < s->count ? last + 1 : s->count; i-- > 0 && !buf[0];) {
		const char *text = defs_string(defs, s->items[i].name).s;

		if (s->items[i].phase == PHASE_OPTIMIZER && strchr(text, '#'))
			optimizer_name(text, buf);
	}
	return buf;
}

const char *optimizers_of_spans(const struct spans *s, const struct defs *defs, char *buf,
				size_t room)
{
	uint32_t seen[OPTIMIZERS];
	char name[OPTIMIZER_NAME];
	size_t count = 0, known;

	buf[0] = 0;
	for (size_t i = 0; i < s->count && count < OPTIMIZERS; i++) {
		const struct span *x = &s->items[i];
		const char *text = defs_string(defs, x->name).s;

		for (known = 0; known < count && seen[known] != x->name; known++)
			;
		if (x->phase != PHASE_OPTIMIZER || known < count || !strchr(text, '#'))
			continue;
		seen[count++] = x->name;
		text_add(buf, room, "%s%s", buf[0] ? ", " : "", optimizer_name(text, name));
	}
	return buf;
}

int optimizer_tensors(const char *name)
{
	static const struct {
		const char *part;
		int tensors;
	} known[] = { { "8bit", -1 },	{ "Adamax", 2 },  { "Adam", 2 }, { "Adadelta", 2 },
		      { "Adagrad", 1 }, { "RMSprop", 1 }, { "Lion", 1 }, { "SGD", 1 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(name, known[i].part))
			return known[i].tensors;
	return -1;
}

#define UNKNOWN UINT8_MAX

static uint64_t mix(uint64_t hash, const char *s, unsigned line)
{
	return bytes_hash(bytes_hash(hash, s, strlen(s)), &line, sizeof(line));
}

uint32_t optimizers_caller(struct stacks *stacks, uint32_t stack)
{
	uint64_t hash = BYTES_HASH;

	stacks_read_python(stacks, stack);
	FOR_EACH (const struct frame, f, stacks->frames, stacks->count) {
		if (strstr(f->function, "profile_hook_step"))
			hash = BYTES_HASH; /* lines of the optimizer do not show its caller */
		if (!owners_is_plumbing(f->file))
			hash = mix(mix(hash, f->file, 0), f->function, f->line);
	}
	return hash == BYTES_HASH ? 0 : (uint32_t)(hash >> 32 ^ hash) | 1;
}

static uint32_t caller_of(struct map *callers, struct stacks *stacks, uint32_t stack)
{
	return stack ? map_known(callers, stack, optimizers_caller(stacks, stack)) : 0;
}

/* An optimizer's step, with the number of gradients that arrived since the step before it. */
struct call {
	size_t at; /* index of its span */
	const struct span *span;
	uint32_t caller, gradients;
};

struct calls {
	struct call *items;
	size_t count, room;
	struct map known; /* names of optimizers with a known caller in some steps */
};

static void collect(struct calls *calls, const struct spans *s, struct stacks *stacks)
{
	struct map callers = { 0 }; /* stack -> its lines */
	uint32_t gradients = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct span *span = &s->items[i];
		struct call call = { .at = i, .span = span };

		gradients += span->gradients;
		if (span->phase != PHASE_OPTIMIZER || span->in_backward)
			continue;
		call.caller = caller_of(&callers, stacks, span->stack);
		call.gradients = gradients;
		gradients = 0;
		if (call.caller)
			map_add(&calls->known, span->name);
		*need_item(calls->items, calls->count, calls->room) = call;
	}
	map_free(&callers);
}

static struct optimizer *called_from(struct optimizers *o, const struct call *call)
{
	FOR_EACH (struct optimizer, x, o->items, o->count)
		if (x->name == call->span->name && x->caller == call->caller)
			return x;
	return NULL;
}

static struct optimizer *add_optimizer(struct optimizers *o, const struct call *call)
{
	struct optimizer *new = &o->items[o->count];

	if (o->count == OPTIMIZERS_MAX)
		return &o->items[0];
	for (struct optimizer *x = o->items; x < new; x++)
		if (x->name == call->span->name && x->calls > 1)
			x->passed = true;
	*new = (struct optimizer){ .caller = call->caller,
				   .name = call->span->name,
				   .first = SIZE_MAX,
				   .same = (uint8_t)o->count };
	o->count++;
	return new;
}

static void note_step(struct optimizers *o, struct optimizer *x, const struct call *call)
{
	size_t i = call->at;

	if (i < x->first) {
		x->first = i;
		x->gradients = call->gradients;
	}
	x->last = i > x->last ? i : x->last;
	x->calls++;
	x->latest = call->gradients;
	if (call->span->blocks > 0)
		x->state = true;
	x->passed = false;
	o->of_span[i] = (uint8_t)(x - o->items);
}

/* The optimizer of a step without a known caller (it allocated nothing, or the recording was
 * paused): the next in turn of those that `may` allows, preferably one that had as many gradients
 * in its latest step. NULL = none. */
static struct optimizer *in_turn(struct optimizers *o, const struct call *call, unsigned last,
				 unsigned way, bool (*may)(const struct optimizers *, unsigned))
{
	struct optimizer *other = NULL;

	for (unsigned k = 1; k <= o->count; k++) {
		unsigned i = (last + k * way) % o->count;
		struct optimizer *x = &o->items[i];

		if (x->name != call->span->name || !may(o, i))
			continue;
		if (x->latest == call->gradients)
			return x;
		other = other ? other : x;
	}
	return other;
}

static bool is_one_of_two_places(const struct optimizer *a, const struct optimizer *b)
{
	return a->name && a->name == b->name && a->gradients == b->gradients && a->state &&
	       !b->state;
}

/* Every optimizer that keeps state makes it in its first step. A place where none was made is
 * therefore joined to one where the same optimizer made it, unless there are several. */
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

/* To call after all places were joined. A place that was joined keeps its own first and last. */
static void join_times(struct optimizers *o)
{
	FOR_EACH (const struct optimizer, x, o->items, o->count) {
		struct optimizer *to = &o->items[x->same];

		if (x == to)
			continue;
		to->first = x->first < to->first ? x->first : to->first;
		to->last = x->last > to->last ? x->last : to->last;
		to->calls += x->calls;
	}
}

static bool goes_on(const struct optimizers *o, unsigned i)
{
	return !o->items[i].passed;
}

/* True if it took steps from the start, in turn with the first optimizer of its name. */
static bool was_there(const struct optimizers *o, unsigned i)
{
	unsigned first = i;

	for (unsigned k = 0; k < o->count; k++)
		if (o->items[k].name == o->items[i].name &&
		    o->items[k].first < o->items[first].first)
			first = k;
	return i == first || optimizers_in_turn(o, i, first);
}

/* In order of time. A step without a caller waits if its name has one in other steps only. */
static void follow(struct optimizers *o, const struct calls *calls)
{
	unsigned last = 0;

	FOR_EACH (const struct call, c, calls->items, calls->count) {
		struct optimizer *x =
			c->caller ? called_from(o, c) : in_turn(o, c, last, 1, goes_on);

		o->of_span[c->at] = UNKNOWN;
		if (!x && !c->caller && map_get(&calls->known, c->span->name))
			continue;
		x = x ? x : add_optimizer(o, c);
		note_step(o, x, c);
		last = o->of_span[c->at];
	}
}

/* Assigns the steps that waited, from the last back to the first. */
static void follow_back(struct optimizers *o, const struct calls *calls)
{
	unsigned last = 0;

	for (size_t k = calls->count; k-- > 0;) {
		const struct call *c = &calls->items[k];

		if (o->of_span[c->at] == UNKNOWN) {
			struct optimizer *x = in_turn(o, c, last, o->count - 1, was_there);

			note_step(o, x ? x : o->items, c);
		}
		last = o->of_span[c->at];
	}
}

void optimizers_find(struct optimizers *o, const struct spans *s, struct stacks *stacks)
{
	struct calls calls = { 0 };

	o->count = 0;
	o->of_span = need_new(s->count + 1);
	collect(&calls, s, stacks);
	follow(o, &calls);
	follow_back(o, &calls);
	map_free(&calls.known);
	free(calls.items);
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

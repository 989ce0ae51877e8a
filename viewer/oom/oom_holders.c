/* SPDX-License-Identifier: Apache-2.0 */
/* Who held the memory when it ran out: by class and line, what is left from earlier steps, and the
 * few blocks that stand out among what the passes made. */
#include "oom.h"

#define LATEST (1u << 16) /* lives: what a line does shows in so many before a refusal */

/* Made in a step, but in an earlier one, or pass, than that which ran out of memory. */
static bool is_old(const struct oom *o, const struct block *b, enum category c)
{
	const struct step *steps = o->timeline->steps.items;

	if (c == CATEGORY_inputs && b->seq > o->batch_from)
		return false;
	return (o->step > 1 || o->by_call) && b->seq >= steps[1].extent.first_seq &&
	       b->seq < o->since;
}

/* Gradients add up over the passes of a step, and state stays. */
static bool may_grow(enum category c)
{
	return c != CATEGORY_gradients && c != CATEGORY_optimizer_state;
}

/* Of what is left from earlier steps: the line that grows, or that the passes left most of. */
const struct holder *oom_grown_most(const struct oom *o)
{
	const struct holder *best = NULL;

	for (size_t i = 0; i < o->holders.count; i++) {
		const struct holder *h = &o->holders.items[i];
		bool counts = o->by_pass
				      ? oom_is_passing(h->category)
				      : may_grow(h->category) &&
						leaks_at(&o->leaks, 1u << h->category, &h->owner);

		if (h->before && counts && (!best || h->before > best->before))
			best = h;
	}
	return best;
}

/* Graphs, what they hold of the inputs, and what modules returned. */
static bool is_of_graph(const struct model *m, const struct block *b, enum category c)
{
	return c == CATEGORY_activations || (oom_is_passing(c) && b->state & LIFE_SAVED) ||
	       (c == CATEGORY_forward_temporaries && model_signs(m, b->stack) & STACK_FORWARD);
}

static bool is_result(enum category c)
{
	return c == CATEGORY_activations || c == CATEGORY_forward_temporaries;
}

/* Where few steps were seen, what is there of an earlier one may go in the next. */
static void add_growth(struct oom *o, const struct block *b, enum category c,
		       const struct owner *owner)
{
	if (o->by_pass ? !oom_is_passing(c) : !may_grow(c) || !leaks_at(&o->leaks, 1u << c, owner))
		return;
	o->grown += b->size;
	if (is_of_graph(o->shot.model, b, c))
		o->grown_graph += b->size;
	if (is_result(c) && model_born(o->shot.model, b)->stage <= STAGE_FORWARD &&
	    b->seq > o->root.seq)
		o->root = *b;
}

static void collect(struct oom *o)
{
	struct snapshot *s = &o->shot;

	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];
		enum category c = s->classes[i];
		struct owner owner = owners_find(&o->timeline->owners, b);
		struct holder *h = holders_add(
			&o->holders, (struct holder){ .category = c, .owner = owner }, b->size);

		if (b->seq >= o->begin && b->seq >= o->attempts.from &&
		    oom_grows_with_batch(o, b, c, model_born(s->model, b)->stage))
			o->current += b->size;
		if (!is_old(o, b, c))
			continue;
		h->before += b->size;
		add_growth(o, b, c, &owner);
	}
	holders_sort(&o->holders);
}

static bool wanted_by_pass(const struct oom *o)
{
	return o->phase != PHASE_OPTIMIZER && !(o->wanted_signs & STACK_PARAM) &&
	       (oom_is_passing(o->wanted_category) || o->wanted_stage == STAGE_FORWARD ||
		o->wanted_stage == STAGE_BACKWARD || o->wanted_stage == STAGE_RECOMPUTE);
}

static bool is_computed(enum category c)
{
	return oom_is_passing(c) && c != CATEGORY_inputs && c != CATEGORY_kv_cache;
}

static void find_largest(struct oom *o)
{
	struct oom_spike *p = &o->spike;

	if (wanted_by_pass(o)) {
		p->largest = p->bytes = o->block;
		p->count = 1;
		p->owner = o->wanted_owner;
	}
	for (size_t i = 0; i < o->shot.moment.count; i++) {
		const struct block *b = &o->shot.moment.blocks[i];

		if (!is_computed(o->shot.classes[i]) || b->size <= p->largest)
			continue;
		p->largest = b->size;
		p->owner = owners_find(&o->timeline->owners, b);
	}
	if (p->count && p->bytes < p->largest / 2)
		p->bytes = p->count = 0;
}

enum turn { TURN_PASS, TURN_BACKWARD }; /* ends with a forward pass, or with a backward pass */

static uint32_t turn_of(const struct lives *l, uint32_t life, enum turn turn)
{
	const struct position *born = lives_position(l, lives_at(l, life)->born.position);

	return turn == TURN_BACKWARD ? born->backwards : born->forwards;
}

struct uses {
	bool saved, gone; /* a graph took one; one is gone */
};

/* A call of an operator: what it made, or will make as the next life. */
struct call {
	uint32_t life, stack;
	uint64_t size;
};

/* What became of what this call made in earlier turns. Calls with the same stack, such as the
 * layers of a Sequential, are told apart by their order in a turn; by passes, which may be calls
 * of several layers, by their size too, and only since the latest backward pass. */
static struct uses uses_before(const struct oom *o, const struct call *c, enum turn turn)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t n = lives_born_by(l, o->refusal.event.seq), from = n > LATEST ? n - LATEST : 0;
	uint32_t now = c->life < n ? c->life : n - 1, nth = 0, at = 0, last = from;
	struct uses u = { 0 };

	for (uint32_t i = from; i < c->life; i++)
		nth += lives_request(l, lives_at(l, i))->stack == c->stack &&
		       turn_of(l, i, turn) == turn_of(l, now, turn);
	for (uint32_t i = from; i < c->life; i++) {
		const struct life *x = lives_at(l, i);

		if (lives_request(l, x)->stack != c->stack ||
		    turn_of(l, i, turn) == turn_of(l, now, turn))
			continue;
		at = turn_of(l, i, turn) == turn_of(l, last, turn) ? at : 0;
		last = i;
		if (at++ != nth || (from && turn_of(l, i, turn) == turn_of(l, from, turn)) ||
		    (turn == TURN_PASS &&
		     (lives_request(l, x)->size != c->size ||
		      turn_of(l, i, TURN_BACKWARD) != turn_of(l, now, TURN_BACKWARD))))
			continue;
		u.saved |= lives_facts(l, x).save_ns != 0;
		u.gone |= x->died.position && lives_seq(l, &x->died) < o->refusal.event.seq;
	}
	return u;
}

/* No graph takes what this call makes: none took what it made before, and that is gone. */
static bool is_never_saved(const struct oom *o, const struct call *c)
{
	const struct spans *s = &o->timeline->model.spans;
	struct uses u;

	if (!s->tags)
		return s->forwards > 1;
	if (!o->timeline->model.lives.rows.count || c->life > o->timeline->model.lives.rows.count)
		return false;
	u = uses_before(o, c, TURN_BACKWARD);
	if (!u.saved && !u.gone)
		u = uses_before(o, c, TURN_PASS);
	return u.gone && !u.saved;
}

/* Half as large as the largest, or more, belongs to it: a copy, a gradient, another precision. */
static void find_spike(struct oom *o)
{
	struct oom_spike *p = &o->spike;
	uint32_t n = lives_born_by(&o->timeline->model.lives, o->refusal.event.seq);

	find_largest(o);
	p->unsaved = p->bytes && is_never_saved(o, &(struct call){ n, o->wanted.stack, o->block })
			     ? o->block
			     : 0;
	for (size_t i = 0; i < o->shot.moment.count; i++) {
		const struct block *b = &o->shot.moment.blocks[i];

		if (!is_computed(o->shot.classes[i]))
			continue;
		if (b->size >= p->largest / 2) {
			p->bytes += b->size;
			p->unsaved +=
				is_never_saved(o, &(struct call){ b->life - 1, b->stack, b->size })
					? b->size
					: 0;
			p->count++;
		} else if (b->size >= p->largest / 10000) {
			p->next = b->size > p->next ? b->size : p->next;
			p->others++;
		}
	}
}

void oom_holders(struct oom *o)
{
	collect(o);
	find_spike(o);
}

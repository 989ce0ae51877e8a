/* SPDX-License-Identifier: Apache-2.0 */
/* Who held the memory when it ran out: by class and line, what is left from earlier steps, and the
 * few blocks that stand out among what the passes made. */

#include "oom.h"

#define LATEST	   (1u << 16) /* lives: what a program does shows in so many before a refusal */
#define FEW	   3	      /* blocks of a pass say whether it has a graph; */
#define MANY_LIVES 6	      /* so many that no graph is recorded any more */

/* Made in a step, but in an earlier one, or pass, than that which ran out of memory. */
static bool is_old(const struct oom *o, const struct block *b)
{
	const struct step *steps = o->timeline->steps.items;

	if ((b->category == CATEGORY_inputs && b->seq > o->batch_from) ||
	    map_get(&o->copies, b->seq))
		return false;
	return (o->since_step > 1 || o->by_call) && b->seq >= steps[1].extent.first_seq &&
	       b->seq < o->since;
}

/* Its blocks may be left from earlier steps: gradients add up over the passes of a step, and state
 * stays. */
static bool has_left(const struct oom *o, enum category c, const struct owner *owner)
{
	return o->by_pass ? category_in(c, CLASSES_THAT(GROW_WITH_BATCH))
			  : !category_in(c, CLASSES_THAT(FOLLOW_TRAINING)) &&
				    leaks_at(&o->leaks, 1u << c, owner);
}

/* Of what is left from earlier steps: the line that grows, or that the passes left most of. */
const struct holder *oom_grown_most(const struct oom *o)
{
	return GREATEST_OF(h, o->holders.items, o->holders.count,
			   h->before && has_left(o, h->category, &h->owner), h->before);
}

/* Graphs, what they hold of the inputs, and what modules returned. */
static bool is_of_graph(const struct model *m, const struct block *b)
{
	enum category c = b->category;

	return c == CATEGORY_activations ||
	       (category_in(c, CLASSES_THAT(GROW_WITH_BATCH)) && b->state & LIFE_SAVED) ||
	       (c == CATEGORY_forward_temporaries && model_signs(m, b->stack) & STACK_FORWARD);
}

/* Where few steps were seen, what is there of an earlier one may go in the next. */
static void add_growth(struct oom *o, const struct block *b, const struct owner *owner)
{
	enum category c = b->category;

	if (!has_left(o, c, owner))
		return;
	o->grown += b->size;
	if (is_of_graph(o->shot.model, b))
		o->grown_graph += b->size;
	if (c == CATEGORY_activations || b->state & LIFE_SAVED || !o->shot.model->spans.tags)
		o->grown_saved += b->size;
	if (category_in(c, FORWARD_RESULTS) &&
	    model_born(o->shot.model, b)->stage <= STAGE_FORWARD && b->seq > o->root.seq)
		o->root = *b;
}

/* Nothing used it in a whole step, or call, nor since: by the step that is surely over. */
static bool is_step_past(const struct oom *o, uint64_t last_seq)
{
	size_t step = oom_number(o);

	return step > 1 && last_seq < o->timeline->steps.items[step - 1].extent.first_seq;
}

/* What the model keeps, and no graph needs: the passes of this step are over, or another line calls
 * another model. */
static bool is_phase_past(const struct oom *o, const struct block *b, uint32_t last)
{
	const struct uses *u = &o->timeline->model.uses;
	const struct steps *steps = &o->timeline->steps;
	uint64_t seq = uses_work(u, last)->seq;
	struct owners *owners = (struct owners *)&o->timeline->owners;
	struct owner then, now;

	if (!o->at_step || seq >= steps->items[o->at_step].extent.first_seq ||
	    !category_in(b->category, OF_THE_MODEL) || b->state & LIFE_SAVED)
		return false;
	if (o->phase == PHASE_OPTIMIZER)
		return true;
	then = owners_caller(owners, uses_kind(u, last)->stack);
	now = owners_caller(owners, o->wanted.stack);
	return steps->basis == STEPS_FORWARD && seq >= steps->items[1].extent.first_seq &&
	       now.file[0] && !owners_same(&then, &now);
}

/* Far longer than it ever waited before, so that no step takes it in turn. What libraries keep for
 * their next call may come at any time. */
static bool is_let_lie(const struct oom *o, const struct block *b, uint32_t before)
{
	struct block_uses x;

	uses_of(o->shot.model, b->life - 1, &x);
	return b->category != CATEGORY_workspace && x.works.last == before &&
	       o->works - before > 2ull * x.works.widest;
}

static void add_unused(struct oom *o, const struct block *b, struct owner owner, uint32_t last)
{
	bool step = is_step_past(o, uses_work(&o->timeline->model.uses, last)->seq);
	struct oom_unused *u = &o->unused;
	struct holder *h;

	if ((!step && !is_phase_past(o, b, last)) || !is_let_lie(o, b, last))
		return;
	h = holders_add(&u->holders, b->category, owner, b->size);
	u->bytes += b->size;
	u->steps += step ? b->size : 0;
	u->classes[b->category] += b->size;
	h->last_use = last > h->last_use ? last : h->last_use;
}

/* The last use of a holder's blocks, and what of it waits for long. */
static void note_last_use(const struct oom *o, struct holder *h, uint64_t size, uint32_t last)
{
	bool idle = last && used_long_ago(o->timeline, o->refusal.event.seq,
					  uses_work(&o->timeline->model.uses, last)->seq);

	h->last_use = last > h->last_use ? last : h->last_use;
	h->idle_use = idle && last > h->idle_use ? last : h->idle_use;
	h->idle += idle ? size : 0;
}

static void collect(struct oom *o)
{
	struct snapshot *s = &o->shot;
	bool complete = uses_complete(s->model);

	FOR_EACH (const struct block, b, s->moment.blocks, s->moment.count) {
		struct owner owner = owners_find(&o->timeline->owners, b);
		struct holder *h = holders_add(&o->holders, b->category, owner, b->size);
		uint32_t last = o->around[b - s->moment.blocks].before;
		uint64_t grown = o->grown;

		if (b->seq >= (o->by_pass ? o->since : o->begin) && b->seq >= o->attempts.from &&
		    oom_grows_with_batch(o, b, model_born(s->model, b)->stage))
			o->current += b->size;
		if (is_old(o, b)) {
			h->before += b->size;
			add_growth(o, b, &owner);
		}
		if (!last || !complete)
			continue;
		note_last_use(o, h, b->size, last);
		if (o->grown == grown)
			add_unused(o, b, owner, last);
	}
	holders_sort(&o->holders);
	holders_sort(&o->unused.holders);
}

static bool wanted_by_pass(const struct oom *o)
{
	return o->phase != PHASE_OPTIMIZER && !(o->wanted_signs & STACK_PARAM) &&
	       (category_in(o->wanted.category, CLASSES_THAT(GROW_WITH_BATCH)) ||
		o->wanted_stage == STAGE_FORWARD || o->wanted_stage == STAGE_BACKWARD ||
		o->wanted_stage == STAGE_RECOMPUTE);
}

static void find_largest(struct oom *o)
{
	const struct block *most =
		GREATEST_OF(b, o->shot.moment.blocks, o->shot.moment.count,
			    category_in(b->category, CLASSES_THAT(ARE_COMPUTED)), b->size);
	struct oom_spike *p = &o->spike;

	if (wanted_by_pass(o)) {
		p->largest = p->bytes = o->block;
		p->count = 1;
		p->least = o->block;
		p->owner = o->wanted_owner;
	}
	if (most && most->size > p->largest) {
		p->largest = most->size;
		p->owner = owners_find(&o->timeline->owners, most);
	}
	if (p->count && p->bytes < p->largest / 2)
		p->bytes = p->count = p->least = 0;
}

/* Bytes of a block that no graph takes: what used it behind its making did not save it. */
static uint64_t unsaved_bytes(const struct oom *o, const struct block *b)
{
	struct block_uses x;

	uses_of(o->shot.model, b->life - 1, &x);
	return !(b->state & LIFE_SAVED) && x.count > 1 ? b->size : 0;
}

/* Half as large as the largest, or more, belongs to it: a copy, a gradient, another precision. So
 * does a quarter, of the same function of the script: a mask, or numbers beside indices. */
static bool is_like_largest(const struct oom *o, const struct block *b)
{
	const struct oom_spike *p = &o->spike;
	struct owner owner;

	if (b->size >= p->largest / 2)
		return true;
	if (b->size < p->largest / 4 || model_born(o->shot.model, b)->stage != STAGE_OUTSIDE)
		return false;
	owner = owners_find(&o->timeline->owners, b);
	return owner.file && !strcmp(owner.function, p->owner.function) &&
	       !strcmp(owner.file, p->owner.file);
}

/* No graph is being recorded: nothing was saved since the pass began, or, after it or before any,
 * while many blocks were made. */
static bool is_without_graph(const struct oom *o)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t i = lives_born_by(l, o->refusal.event.seq), made = 0;
	const struct position *p = i ? lives_position(l, lives_at(l, i - 1)->born.position) : NULL;
	uint32_t pass = p ? p->forwards : 0;

	for (; i-- > 0 && p->forwards == pass && made < MANY_LIVES; made++) {
		p = lives_position(l, lives_at(l, i)->born.position);
		if (stage_is_backward(p->stage) || p->stage == STAGE_OPTIMIZER)
			break;
		if (lives_facts(l, lives_at(l, i)).save_ns)
			return false;
	}
	return o->shot.model->spans.tags && made >= FEW;
}

static void find_spike(struct oom *o)
{
	struct oom_spike *p = &o->spike;

	find_largest(o);
	FOR_EACH (const struct block, b, o->shot.moment.blocks, o->shot.moment.count) {
		if (!category_in(b->category, CLASSES_THAT(ARE_COMPUTED)))
			continue;
		if (is_like_largest(o, b)) {
			p->bytes += b->size;
			p->least = p->least && p->least < b->size ? p->least : b->size;
			if (++p->count <= OOM_SPIKE_MOST)
				p->unsaved += unsaved_bytes(o, b);
		} else if (b->size >= p->largest / 10000) {
			p->next = b->size > p->next ? b->size : p->next;
			p->others++;
		}
	}
	if (p->count <= OOM_SPIKE_MOST && is_without_graph(o))
		p->unsaved = p->bytes;
}

void oom_holders(struct oom *o)
{
	collect(o);
	find_spike(o);
}

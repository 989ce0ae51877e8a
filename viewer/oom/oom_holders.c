/* SPDX-License-Identifier: Apache-2.0 */
/* The holders of memory when it ran out: by class and line, blocks left from earlier steps, and
 * outliers among the blocks of the passes. */

#include "../base/arithmetic.h"
#include "oom.h"

#define UNUSED_STEPS 2

/* Made in an earlier step (or pass) than the one that ran out of memory, and not before the first
 * step. */
static bool is_old(const struct oom *o, const struct block *b)
{
	const struct step *steps = o->timeline->steps.items;

	if (map_get(&o->left.blocks, b->seq))
		return true;
	if ((b->category == CATEGORY_inputs && b->seq > o->batch_from) ||
	    map_get(&o->copies, b->seq))
		return false;
	return (o->since_step > 1 || o->by_call) && b->seq >= steps[1].extent.first_seq &&
	       b->seq < o->since;
}

/* The line with the most growth. */
const struct holder *oom_grown_most(const struct oom *o)
{
	return GREATEST_OF(h, o->holders.items, o->holders.count, h->grown, h->grown);
}

/* Part of a graph: an activation, a saved input, or the output of a module. */
static bool is_of_graph(const struct model *m, const struct block *b)
{
	enum category c = b->category;

	return c == CATEGORY_activations ||
	       (category_in(c, CLASSES_THAT(GROW_WITH_BATCH)) && b->state & LIFE_SAVED) ||
	       (c == CATEGORY_forward_temporaries && model_signs(m, b->stack) & STACK_FORWARD);
}

/* Older than the events that the ring kept. Its step is not known, but lies before all of them. */
static bool is_lost(const struct oom *o, const struct block *b, const struct holder *h)
{
	return o->since_step > 1 && b->stack && b->seq <= o->shot.model->state_seq &&
	       leaks_at(&o->leaks, 1u << b->category, &h->owner);
}

/* After few steps a block of an earlier step might be freed in the next, so only lines that grow
 * count. Gradients accumulate over the passes of a step and state stays, so neither counts. */
static void add_growth(struct oom *o, const struct block *b, struct holder *h)
{
	enum category c = b->category;

	if (!map_get(&o->left.blocks, b->seq) && (category_in(c, CLASSES_THAT(FOLLOW_TRAINING)) ||
						  !leaks_at(&o->leaks, 1u << c, &h->owner)))
		return;
	o->grown += b->size;
	h->grown += b->size;
	if (is_of_graph(o->shot.model, b))
		o->grown_graph += b->size;
	if (c == CATEGORY_activations || b->state & LIFE_SAVED || !o->shot.model->spans.tags)
		o->grown_saved += b->size;
	if (category_in(c, FORWARD_RESULTS) &&
	    model_born(o->shot.model, b)->stage <= STAGE_FORWARD && b->seq > o->root.seq)
		o->root = *b;
}

/* Fills begun if weights that this step uses were in use in an earlier step, too. */
static void find_begun(struct oom *o)
{
	uint64_t step = o->timeline->steps.items[o->since_step].extent.first_seq, first = step;
	struct block_uses x;

	FOR_BLOCKS (b, &o->shot.moment)
		if (b->category == CATEGORY_parameters &&
		    oom_work_seq(o, oom_last_use(o, b)) >= step) {
			uses_of(o->shot.model, b->life - 1, &x);
			first = arithmetic_least(first, x.first_seq);
		}
	o->begun = first < step ? first : 0;
}

/* A weight whose last use came before the weights of this step were first used. */
static bool is_replaced(const struct oom *o, const struct block *b, uint64_t last_seq)
{
	return category_in(b->category, CLASSES_THAT(ARE_WEIGHTS)) && last_seq < o->begun;
}

/* The last use lies more than UNUSED_STEPS whole steps (or calls of the model) back. */
static bool is_steps_ago(const struct oom *o, uint64_t last_seq)
{
	size_t step = oom_number(o);

	return step > UNUSED_STEPS &&
	       last_seq < o->timeline->steps.items[step - UNUSED_STEPS].extent.first_seq;
}

/* Unused for far longer than ever before, so no step uses it in turn. Excluded: workspaces, which a
 * library might use at its next call, and weights if steps are calls, because another model might
 * be called next. */
static bool is_let_lie(const struct oom *o, const struct block *b, const struct block_uses *x,
		       uint32_t before)
{
	return !(o->by_call && category_in(b->category, CLASSES_THAT(ARE_WEIGHTS))) &&
	       b->category != CATEGORY_workspace && x->works.last == before &&
	       o->works - before > 2ull * x->works.widest;
}

/* The block belongs to a model that ran before: a pass used it, and since then another model is
 * being made, or a whole step did without it. */
static bool is_earlier(const struct oom *o, const struct block *b, const struct block_uses *x)
{
	uint64_t last = oom_work_seq(o, x->works.last);
	bool made = o->wanted_stage == STAGE_OUTSIDE && o->wanted_signs & STACK_PARAM;

	if (!category_in(b->category, OF_THE_MODEL) ||
	    (model_born(o->shot.model, b)->stage == STAGE_OUTSIDE &&
	     (b->category == CATEGORY_gradients || oom_pass_at(o, last) <= oom_pass_at(o, b->seq))))
		return false;
	return made || ((used_long_ago(o->timeline, o->refusal.event.seq, last) ||
			 is_replaced(o, b, last)) &&
			is_let_lie(o, b, x, x->works.last));
}

static void add_unused(struct oom *o, const struct block *b, uint32_t last, bool grows)
{
	struct block_uses x;

	uses_of(o->shot.model, b->life - 1, &x);
	if (x.works.last == last && is_earlier(o, b, &x))
		used_up_add(&o->earlier, o->timeline, b, &x);
	if (grows || !is_let_lie(o, b, &x, last) ||
	    !(is_steps_ago(o, oom_work_seq(o, last)) || is_replaced(o, b, oom_work_seq(o, last))))
		return;
	used_up_add(&o->unused, o->timeline, b, &x);
	o->unused_saved += b->state & LIFE_SAVED ? b->size : 0;
}

/* Notes the last use of a holder's blocks, and the bytes that have been idle for long. */
static void note_last_use(const struct oom *o, struct holder *h, uint64_t size, uint32_t last)
{
	bool idle = used_long_ago(o->timeline, o->refusal.event.seq, oom_work_seq(o, last));

	h->last_use = last > h->last_use ? last : h->last_use;
	h->idle_use = idle && last > h->idle_use ? last : h->idle_use;
	h->idle += idle ? size : 0;
}

static void collect(struct oom *o)
{
	struct snapshot *s = &o->shot;
	bool complete = uses_complete(s->model);

	if (complete && o->since_step > 1)
		find_begun(o);
	o->by_script = o->wanted_stage == STAGE_OUTSIDE ? oom_asked_for_batch(o) : 0;
	FOR_BLOCKS (b, &s->moment) {
		struct owner owner = owners_find(&o->timeline->owners, b);
		struct holder *h = holders_add(&o->holders, b->category, owner, b->size);
		uint32_t last = oom_last_use(o, b);
		enum block_stage stage = model_born(s->model, b)->stage;
		uint64_t grown = o->grown;

		if (b->seq >= o->begin && b->seq >= o->attempts.from &&
		    !map_get(&o->left.blocks, b->seq) && oom_grows_with_batch(o, b, stage)) {
			bool made = stage == STAGE_OUTSIDE && b->category != CATEGORY_inputs;

			o->current += b->size;
			o->by_script += made ? b->size : 0;
		}
		if (is_old(o, b) || is_lost(o, b, h)) {
			h->before += b->size;
			add_growth(o, b, h);
		}
		if (!last || !complete)
			continue;
		note_last_use(o, h, b->size, last);
		add_unused(o, b, last, o->grown != grown);
	}
	holders_sort(&o->holders);
	holders_sort(&o->unused.holders);
	holders_sort(&o->earlier.holders);
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
	const struct block *most = LARGEST_OF(b, &o->shot.moment,
					      category_in(b->category, CLASSES_THAT(ARE_COMPUTED)));
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

/* Without tags a block counts as saved if it was alive when the next backward pass began. */
static bool was_saved(const struct oom *o, const struct lived *x)
{
	if (o->shot.model->spans.tags)
		return lives_facts(&o->timeline->model.lives, x->row).save_ns != 0;
	return x->died->backwards > x->born->backwards;
}

/* The size of a block that no graph saves, else 0: no graph saved earlier blocks of its stack, and
 * some of an earlier pass have been freed. */
static uint64_t unsaved_bytes(const struct oom *o, const struct block *b)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t n = lives_born_by(l, b->seq - 1);
	bool gone = false;

	for (uint32_t i = oom_latest(n); i < n; i++) {
		const struct lived x = lives_read(l, i);

		if (x.stack != b->stack)
			continue;
		if (was_saved(o, &x))
			return 0;
		if (x.until < o->refusal.event.seq &&
		    oom_pass_at(o, x.from) < oom_pass_at(o, b->seq))
			gone = true;
	}
	return gone ? b->size : 0;
}

/* A block of at least half the size belongs to the outlier: a copy, a gradient, another precision.
 * So does one of a quarter made by the same function of the script: a mask, or values beside
 * indices. */
static bool is_like_largest(const struct oom *o, const struct block *b)
{
	const struct oom_spike *p = &o->spike;
	struct owner owner;

	if (b->size >= p->largest / 2)
		return true;
	if (b->size < p->largest / 4 || model_born(o->shot.model, b)->stage != STAGE_OUTSIDE)
		return false;
	owner = owners_find(&o->timeline->owners, b);
	return owners_same_function(&owner, &p->owner);
}

static void find_spike(struct oom *o)
{
	struct oom_spike *p = &o->spike;

	find_largest(o);
	if (p->bytes)
		p->unsaved = unsaved_bytes(o, &o->wanted);
	FOR_BLOCKS (b, &o->shot.moment) {
		if (!category_in(b->category, CLASSES_THAT(ARE_COMPUTED)))
			continue;
		if (is_like_largest(o, b)) {
			p->bytes += b->size;
			p->least = p->least && p->least < b->size ? p->least : b->size;
			if (++p->count <= OOM_SPIKE_MOST && !is_old(o, b))
				p->unsaved += unsaved_bytes(o, b);
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

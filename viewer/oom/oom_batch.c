/* SPDX-License-Identifier: Apache-2.0 */
/* Memory whose size grows with the batch: half the batch would take half of it. */

#include "../advise/advise.h"
#include "../base/arithmetic.h"
#include "../classes/study.h"
#include "oom.h"

#define FEWEST 4 /* so many passes show that a block outlives passes */

void oom_find_copies(struct oom *o)
{
	const struct snapshot *s = &o->shot;
	struct map halves = { 0 }, known = { 0 };
	uint32_t *left;

	FOR_BLOCKS (b, &s->moment)
		if (b->category == CATEGORY_parameters)
			++*map_put(&halves, (b->size / 2 + 511) / 512, NULL);
	FOR_BLOCKS (b, &s->moment) {
		left = category_in(b->category, CLASSES_THAT(GROW_WITH_BATCH))
			       ? map_get(&halves, b->size / 512)
			       : NULL;
		if (!left || !*left || !advise_is_cast(o->timeline, &known, b->stack, b->seq))
			continue;
		--*left;
		*map_put(&o->copies, b->seq, NULL) = 1;
	}
	map_free(&halves);
	map_free(&known);
}

bool oom_is_returned(const struct oom *o, const struct block *b)
{
	const struct frame *modules[OWNER_MODULES];
	struct stacks *stacks = &o->timeline->stacks;
	struct owner owner = owners_find(&o->timeline->owners, b);

	stacks_read_python(stacks, b->stack);
	return owners_modules(stacks, modules) && !strcmp(modules[0]->function, owner.function);
}

/* Number of the pass of the request. A pass might begin with it. */
static uint32_t pass_of_request(const struct oom *o)
{
	uint32_t n = oom_lives(o);
	bool begins = o->wanted_stage == STAGE_FORWARD && n &&
		      lives_read(&o->timeline->model.lives, n - 1).born->stage != STAGE_FORWARD;

	return o->shot.model->spans.forwards + begins;
}

/* An output of an earlier pass that no graph saved. */
static bool is_earlier_output(const struct oom *o, const struct block *b, uint32_t pass)
{
	const struct position *born = model_born(o->shot.model, b);

	return o->shot.model->spans.tags && category_in(b->category, FORWARD_RESULTS) &&
	       born->stage == STAGE_FORWARD && born->forwards < pass && !(b->state & LIFE_SAVED) &&
	       oom_is_returned(o, b);
}

/* Several calls without an allocation between them count as one pass, so a script can hold outputs
 * of one line for all its samples. */
void oom_find_listed(struct oom *o)
{
	uint32_t pass = pass_of_request(o);
	struct map times = { 0 };

	FOR_BLOCKS (b, &o->shot.moment)
		if (is_earlier_output(o, b, pass))
			++*map_put(&times, b->stack, NULL);
	FOR_BLOCKS (b, &o->shot.moment) {
		const uint32_t *n = map_get(&times, b->stack);

		if (n && *n >= FEWEST && is_earlier_output(o, b, pass))
			map_put(&o->listed, b->seq, NULL);
	}
	map_free(&times);
}

bool oom_only_forward(const struct oom *o)
{
	return o->evaluation || o->timeline->steps.basis == STEPS_FORWARD;
}

uint64_t oom_latest_backward(const struct oom *o)
{
	const struct spans *s = &o->timeline->model.spans;
	const struct span *latest = GREATEST_OF(x, s->items, s->count,
						x->phase == PHASE_BACKWARD &&
							x->extent.first_seq < o->refusal.event.seq,
						x->extent.first_seq);

	return latest ? latest->extent.first_seq : 0;
}

/* The block outlives forward passes: no graph saved it, and while it lived a backward pass began,
 * or the model was called at least FEWEST times (by the count of passes, or by repeats of the first
 * stack in forward). */
static bool is_there_through_passes(const struct oom *o, uint32_t life)
{
	const struct lives *l = &o->timeline->model.lives;
	const struct lived x = lives_read(l, life);
	uint64_t refused = o->refusal.event.seq;
	uint32_t n = lives_born_by(l, arithmetic_least(x.until, refused)), stack = 0, times = 0;

	if (lives_facts(l, x.row).save_ns)
		return false;
	if (x.until >= refused && oom_latest_backward(o) > x.from)
		return true;
	for (uint32_t i = life + 1; i < n && i - life < OOM_LATEST && times < FEWEST; i++) {
		const struct lived later = lives_read(l, i);

		if (later.born->stage != STAGE_FORWARD)
			continue;
		stack = stack ? stack : later.stack;
		times += later.stack == stack;
		if (later.born->forwards >= x.born->forwards + FEWEST)
			times = FEWEST;
	}
	return times == FEWEST;
}

/* The latest earlier life of the same stack; UINT32_MAX if there is none. */
static uint32_t before(const struct oom *o, const struct block *b)
{
	return lives_before(&o->timeline->model.lives, b->seq, b->stack);
}

/* After the first step, and the first block of its stack: it might hold the rows of many batches.
 * */
static bool is_new(const struct oom *o, const struct block *b)
{
	return o->since_step > 1 && before(o, b) == UINT32_MAX;
}

/* No pass has begun and nothing was computed, so weights that are being loaded would look like a
 * batch. */
static bool nothing_ran(const struct oom *o)
{
	const struct spans *s = &o->timeline->model.spans;

	return !s->forwards && !s->backwards && !classes_sum(o->shot.bytes, FORWARD_RESULTS);
}

/* The script collects such blocks at one line, and nothing has read this one: it might be a row of
 * any later batch. */
static bool is_stored(const struct oom *o, const struct block *b, enum block_stage stage)
{
	const struct model *m = o->shot.model;
	struct block_uses x = { 0 };

	if (stage != STAGE_OUTSIDE || !uses_complete(m) || !study_gathers(m->watcher, b->stack))
		return false;
	if (b->life)
		uses_of(m, b->life - 1, &x);
	return x.works.first == x.works.last;
}

/* An input of one pass is either saved for its backward pass or freed by the next passes. An input
 * that outlives passes and was never saved is the whole data that passes take rows of, or room for
 * their results. In an evaluation a block that the script makes might hold the results of all
 * passes if it is larger than those of the latest pass. */
bool oom_grows_with_batch(const struct oom *o, const struct block *b, enum block_stage stage)
{
	enum category c = b->category;
	uint32_t life;

	/* Of a weight, before its gradient is there. */
	if (c == CATEGORY_backward_temporaries && stage == STAGE_BACKWARD &&
	    study_size_is_of_weight(o->shot.model->watcher, b->size))
		return false;
	/* Without tags or stacks steps are unknown. An engine sizes its cache by settings, not by
	 * the batch. */
	if (map_get(&o->listed, b->seq) || o->shot.model->spans.bare ||
	    (c == CATEGORY_kv_cache && stage == STAGE_OUTSIDE))
		return false;
	if (map_get(&o->copies, b->seq) || (oom_only_forward(o) && c != CATEGORY_inputs &&
					    stage == STAGE_OUTSIDE && b->size / 2 > o->of_pass))
		return false;
	if ((c == CATEGORY_inputs && nothing_ran(o)) || is_stored(o, b, stage))
		return false;
	if (c != CATEGORY_inputs || !o->shot.model->spans.tags || b->size < o->allocated / 100)
		return category_in(c, CLASSES_THAT(GROW_WITH_BATCH));
	life = b->life ? b->life - 1 : before(o, b);
	return !is_new(o, b) && (life == UINT32_MAX || !is_there_through_passes(o, life));
}

uint64_t oom_first_inputs(const struct oom *o)
{
	if (o->since_step > 1)
		return 0;
	return BYTES_OF(b, &o->shot.moment,
			b->category == CATEGORY_inputs && !model_born(o->shot.model, b)->forwards);
}

bool oom_is_room(const struct oom *o, const struct block *b)
{
	char op[64];

	instant_operator(&o->timeline->stacks, b->stack, b->seq, op, sizeof(op));
	return strstr(op, "zeros") || strstr(op, "empty") || strstr(op, "full");
}

uint64_t oom_results(const struct oom *o, struct owner *owner)
{
	const struct snapshot *s = &o->shot;
	uint64_t bytes = 0;
	bool asked = false;

	if (!oom_only_forward(o) || o->wanted_stage != STAGE_OUTSIDE)
		return 0;
	FOR_BLOCKS (b, &s->moment) {
		/* before the first pass of an evaluation it might be classified as inputs */
		bool room = b->category == CATEGORY_forward_temporaries ||
			    (o->evaluation && b->category == CATEGORY_inputs);

		if (!room || b->seq < o->evaluation || !is_there_through_passes(o, b->life - 1) ||
		    !oom_is_room(o, b))
			continue;
		bytes += b->size;
		if (b->size == o->block) {
			asked = true;
			*owner = owners_find(&o->timeline->owners, b);
		}
	}
	return asked ? bytes : 0;
}

/* No tensor of the requesting frame has a dimension that is a multiple of the batch size and
 * divides the request. False if the frame has no tensors. */
static bool is_of_no_sample(const struct oom *o)
{
	size_t tensors = 0;

	for (size_t i = 0; i < o->variable_count; i++) {
		const struct variable_at *x = &o->variables[i];
		const struct defs_variable *v = x->variable;

		if (v->head.tensors || x->owner.line != o->wanted_owner.line ||
		    strcmp(x->owner.file, o->wanted_owner.file) != 0)
			continue;
		tensors++;
		for (unsigned k = 0; k < v->head.dims; k++)
			if (v->sizes[k] && v->sizes[k] % o->samples == 0 &&
			    o->block % v->sizes[k] == 0)
				return false;
	}
	return tensors;
}

/* The largest tensor of a picture, a sequence or the like that the program's frames hold in a
 * block that was made outside of modules. */
static const struct defs_variable *tensor_in(const struct oom *o, const struct block *b)
{
	const struct variable_at *x =
		FIRST_OF(i, o->variables, o->variable_count,
			 i->own && !i->variable->head.tensors && i->variable->head.dims > 2 &&
				 variable_is_in(i, b));

	return x && model_born(o->shot.model, b)->stage == STAGE_OUTSIDE ? x->variable : NULL;
}

bool oom_is_of_pieces(const struct oom *o)
{
	enum { OVERLAP = 4 }; /* all pieces together, in units of the sample, at most */
	uint64_t pieces = 0;

	if (o->samples <= 1 || !oom_only_forward(o))
		return false;
	FOR_BLOCKS (b, &o->shot.moment) {
		const struct defs_variable *v = tensor_in(o, b);

		pieces += v && v->sizes[0] != 1 ? b->size : 0;
	}
	FOR_BLOCKS (b, &o->shot.moment) {
		const struct defs_variable *v = tensor_in(o, b);

		if (v && v->sizes[0] == 1 && b->size <= pieces && OVERLAP * b->size > pieces)
			return true;
	}
	return false;
}

bool oom_is_of_samples(const struct oom *o)
{
	uint64_t asked = oom_asked_for_batch(o);

	return o->samples > 1 && (stage_is_backward(o->wanted_stage) || asked) &&
	       2 * o->by_script < o->current + asked;
}

/* A backward node requests far more than any block made outside of backward: rows of a Jacobian, or
 * the gradient of an expanded view. */
static bool is_beyond_forward(const struct oom *o)
{
	enum { TIMES = 4 };
	const struct lives *l = &o->timeline->model.lives;
	uint32_t n = oom_lives(o);

	if (o->wanted_stage != STAGE_BACKWARD)
		return false;
	for (uint32_t i = oom_latest(n); i < n; i++) {
		const struct lived x = lives_read(l, i);

		if (!stage_is_backward(x.born->stage) && x.born->layer == LIFE_BLOCK &&
		    x.size > o->block / TIMES)
			return false;
	}
	return true;
}

/* Excluded: a request that might be the gradient of a weight or, between a backward pass and the
 * next forward pass, an update of one or a new result for all rows. */
uint64_t oom_asked_for_batch(const struct oom *o)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t n = oom_lives(o);
	bool between =
		o->wanted_stage == STAGE_OUTSIDE && n && !lives_read(l, n - 1).born->after_forward;
	bool weight = o->wanted.category != CATEGORY_inputs &&
		      study_size_is_of_weight(o->shot.model->watcher, o->block);

	if ((o->samples > 1 && is_of_no_sample(o)) || is_beyond_forward(o))
		return 0;
	if ((weight && (between || o->wanted_stage == STAGE_BACKWARD)) ||
	    (between && is_new(o, &o->wanted)) ||
	    !oom_grows_with_batch(o, &o->wanted, o->wanted_stage))
		return 0;
	return o->block;
}

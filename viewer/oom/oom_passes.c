/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward passes inside of one step. A training step holds the results of a few passes until
 * backward has used them. An evaluation that holds results of many passes keeps memory that it
 * does not need.
 */
#include "oom.h"
#include "../../format/record.h"

/*
 * Attempts: graphs of passes that ran out of memory and were followed by another pass. No step
 * needs them.
 */

#define OUTSIDE 64 /* most frames that are compared */

static uint32_t forwards_at(const struct oom *o, uint64_t seq)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t n = lives_born_by(l, seq);

	return n ? lives_read(l, n - 1).born->forwards : 0;
}

/* If steps are calls of the model, each call is a pass of its own. */
uint32_t oom_pass_at(const struct oom *o, uint64_t seq)
{
	return o->timeline->steps.basis == STEPS_FORWARD
		       ? (uint32_t)steps_at(&o->timeline->steps, seq)
		       : forwards_at(o, seq);
}

/* The lines outside of modules on the way to the call of the model, outermost first. Returns their
 * number. */
static size_t lines_outside(struct stacks *s, uint32_t stack, uint64_t out[OUTSIDE])
{
	size_t n = 0;

	stacks_read_python(s, stack);
	for (size_t i = s->count; i-- > 0 && n < OUTSIDE; n++) {
		if (owners_is_forward(s->frames[i].function))
			return n;
		out[n] = s->python[i];
	}
	return n;
}

/* The same line called the model both times, but on another path: from an exception handler, for
 * example. */
static bool is_another_call(const struct oom *o, uint32_t then, uint32_t now)
{
	struct owners *owners = &o->timeline->owners;
	struct owner first = owners_caller(owners, then), second = owners_caller(owners, now);
	uint64_t a[OUTSIDE], b[OUTSIDE];
	size_t n = lines_outside(&o->timeline->stacks, then, a);

	return first.file[0] && owners_same(&first, &second) &&
	       (lines_outside(&o->timeline->stacks, now, b) != n ||
		memcmp(a, b, n * sizeof(*a)) != 0);
}

/* A block of the pass or its batch that nothing has used since the refusal. */
static bool is_of_attempt(const struct oom *o, const struct block *b, uint64_t refused,
			  uint32_t pass)
{
	const struct position *born = model_born(o->shot.model, b);
	uint32_t last = oom_last_use(o, b);

	if (b->seq >= refused || b->seq < o->attempts.from ||
	    !category_in(b->category, OF_ONE_PASS) || born->forwards > pass ||
	    born->forwards + (b->category == CATEGORY_inputs) < pass)
		return false;
	return last ? oom_work_seq(o, last) < refused
		    : b->state & LIFE_SAVED || born->stage == STAGE_FORWARD;
}

static void add_attempt(struct oom *o, const struct lives_mark *refused, uint32_t now)
{
	uint32_t pass = forwards_at(o, refused->seq);
	const struct spans *s = &o->timeline->model.spans;

	/* Another pass has begun, or gradients were cleared: nothing goes backward through it. */
	if ((pass >= now || !(pass || refused->stage == STAGE_FORWARD)) &&
	    !is_another_call(o, refused->stack, o->refusal.event.stack) &&
	    !ANY_OF(x, s->items, s->count,
		    x->phase == PHASE_ZERO_GRAD && x->extent.first_seq > refused->seq &&
			    x->extent.first_seq < o->refusal.event.seq))
		return;
	FOR_BLOCKS (b, &o->shot.moment)
		if (is_of_attempt(o, b, refused->seq, pass))
			oom_hold(&o->attempts, b);
	o->attempts.from = refused->seq;
}

void oom_attempts(struct oom *o)
{
	const struct lives *l = &o->timeline->model.lives;
	uint32_t now = forwards_at(o, o->refusal.event.seq);
	bool reported = refusals_reported(l);

	for (uint32_t i = 0; i < l->marks.count; i++) {
		const struct lives_mark *m = rows_at(&l->marks, i);

		if (m->seq < o->refusal.event.seq && refusals_is_one(m, reported))
			add_attempt(o, m, now);
	}
}

#define FEWEST 4 /* so many passes are a habit */

uint64_t oom_evaluation(const struct oom *o)
{
	const struct timeline *t = o->timeline;
	const struct span *at = steps_span(&t->steps, &t->model.spans, o->refusal.event.seq);
	bool evaluates = false;

	for (; at && (at->phase == PHASE_EVALUATION || at->phase == PHASE_OTHER); at--) {
		if (at->phase == PHASE_EVALUATION)
			evaluates = true;
		if (at == t->model.spans.items ||
		    (at[-1].phase != PHASE_EVALUATION && at[-1].phase != PHASE_OTHER))
			return evaluates ? at->extent.first_seq : 0;
	}
	return 0;
}

/* If an evaluation ends right before, its results cannot be distinguished from the next batch, and
 * where steps are calls, the inputs of a call are made before it: returns the birth of the last
 * forward result before. UINT64_MAX = neither. */
static uint64_t batch_from(const struct oom *o)
{
	const struct spans *s = &o->timeline->model.spans;
	const struct lives *l = &o->timeline->model.lives;
	size_t first = oom_batch_span(o, o->since_step);
	bool behind = first && first < s->count && s->items[first - 1].phase == PHASE_EVALUATION;
	uint64_t begin = o->by_call ? o->since : behind ? s->items[first].extent.first_seq : 0;

	for (uint32_t i = begin ? lives_born_by(l, begin - 1) : 0; i-- > 0;) {
		const struct lived x = lives_read(l, i);

		if (x.born->stage == STAGE_FORWARD)
			return x.from;
	}
	return UINT64_MAX;
}

void oom_find_since(struct oom *o)
{
	o->since = o->evaluation ? o->evaluation : oom_batch_begin(o, oom_number(o));
	o->batch_from = batch_from(o);
	/* The batch of the first step might be made before the step. */
	o->begin = o->since_step > 1 || o->evaluation || o->by_call ? o->since : 0;
	o->passes = snapshot_passes(&o->shot, o->since, FORWARD_RESULTS);
}

/* Number of passes that copied something to the host before the next pass. */
static size_t passes_read(const struct oom *o)
{
	const struct uses *u = &o->timeline->model.uses;
	uint32_t latest = 0, pass;
	size_t n = 0;

	for (uint32_t i = 1; i <= o->works; i++) {
		if (uses_kind(u, i)->transfer != GMT_TRANSFER_SOURCE ||
		    !strstr(defs_string(o->timeline->model.defs, uses_kind(u, i)->name).s, "DtoH"))
			continue;
		pass = forwards_at(o, uses_work(u, i)->seq);
		n += pass != latest;
		latest = pass;
	}
	return n;
}

/* Passes without a graph used results of most of the passes whose graphs are kept. No backward pass
 * can follow from those passes. */
static bool is_served(const struct oom *o)
{
	const struct moment *mo = &o->shot.moment;
	struct map kept = { 0 }, served = { 0 };
	bool most;

	FOR_BLOCKS (b, mo)
		if (b->state & LIFE_SAVED && category_in(b->category, FORWARD_RESULTS))
			map_put(&kept, oom_pass_at(o, b->seq), NULL);
	FOR_BLOCKS (b, mo) {
		uint32_t last = oom_last_use(o, b), pass = oom_pass_at(o, b->seq);

		if (last && model_born(o->shot.model, b)->stage == STAGE_FORWARD &&
		    map_get(&kept, pass) && !map_get(&kept, oom_pass_at(o, oom_work_seq(o, last))))
			map_put(&served, pass, NULL);
	}
	most = served.count >= FEWEST && 4 * served.count >= 3 * (kept.count - 1);
	map_free(&kept);
	map_free(&served);
	return most;
}

void oom_find_calls(struct oom *o)
{
	const struct model *m = o->shot.model;

	if (o->timeline->steps.basis != STEPS_FORWARD || o->passes < 2)
		return;
	o->calls = BYTES_OF(b, &o->shot.moment,
			    oom_is_in_graph(b) && model_born(m, b)->forwards < m->spans.forwards);
	o->served = is_served(o);
	o->read_each = o->passes >= FEWEST && passes_read(o) + 1 >= m->spans.forwards;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the open ranges of each thread, and finds the stage of each event. */
#include "doing.h"

#include "../../format/record.h"

/* Autograd names its threads "pt_autograd_0". */
static bool is_engine(const struct spans *s, uint32_t thread)
{
	const struct defs_thread *t = defs_thread(s->defs, thread);

	return t && !strncmp(t->name.s, "pt_autograd", 11);
}

bool spans_is_engine(const struct spans *s, uint32_t thread)
{
	const uint32_t *at = map_get(&s->thread_ids, thread);

	return at ? s->threads[*at]->engine : is_engine(s, thread);
}

static struct span_thread *thread_of(struct spans *s, uint32_t id)
{
	bool fresh;
	uint32_t *at;

	if (s->now.thread && s->now.thread->id == id)
		return s->now.thread;
	at = map_put(&s->thread_ids, id, &fresh);
	if (fresh) {
		struct span_thread *t = need_new(sizeof(*t));

		*t = (struct span_thread){ .id = id, .engine = is_engine(s, id) };
		*at = s->thread_count;
		*need_item(s->threads, s->thread_count, s->thread_room) = t;
	}
	return s->threads[*at];
}

static unsigned kept(const struct span_thread *t)
{
	return t->depth < SPAN_RANGES ? t->depth : SPAN_RANGES;
}

uint32_t spans_range(const struct span_thread *t)
{
	return kept(t) ? t->name[kept(t) - 1] : 0;
}

enum range_kind spans_range_kind(struct spans *s, uint32_t id)
{
	static const struct {
		const char *start;
		enum range_kind kind;
	} known[] = { { "Optimizer.step", RANGE_STEP },
		      { "Optimizer.zero_grad", RANGE_ZERO_GRAD },
		      { "ProfilerStep#", RANGE_PROFILER } };
	struct defs_text name = defs_string(s->defs, id);
	bool fresh;
	uint32_t *at = map_put(&s->names, id, &fresh);

	if (!fresh)
		return *at;
	*at = RANGE_OTHER;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (name.len && !strncmp(name.s, known[i].start, strlen(known[i].start)))
			*at = known[i].kind;
	return *at;
}

/* Finds the optimizer's ranges among the open ones. */
static void look_at_ranges(struct spans *s, struct span_thread *t)
{
	t->step = t->outer_step = t->zero_grad = t->outer_name = 0;
	for (unsigned i = 0; i < kept(t); i++) {
		enum range_kind kind = spans_range_kind(s, t->name[i]);

		if (kind == RANGE_ZERO_GRAD)
			t->zero_grad = t->number[i];
		if (kind != RANGE_STEP)
			continue;
		t->step = t->number[i];
		if (t->outer_step)
			continue;
		t->outer_step = t->number[i];
		t->outer_name = t->name[i];
	}
}

struct step_end spans_step_end(const struct spans *s, uint64_t number)
{
	const struct step_end *end = map_find(&s->step_ends, number);

	return end ? *end : (struct step_end){ 0 };
}

static void take_at(struct span_thread *t, unsigned i)
{
	unsigned n = kept(t);

	memmove(&t->number[i], &t->number[i + 1], (n - i - 1) * sizeof(t->number[0]));
	memmove(&t->name[i], &t->name[i + 1], (n - i - 1) * sizeof(t->name[0]));
	t->depth--;
}

static bool take_out(struct span_thread *t, uint64_t number)
{
	for (unsigned i = kept(t); i-- > 0;) {
		if (t->number[i] != number)
			continue;
		take_at(t, i);
		return true;
	}
	return false;
}

/* Closes open ranges of that name. An optimizer's ranges do not nest, so their ends were lost. */
static void take_lost(struct span_thread *t, uint32_t name)
{
	for (unsigned i = kept(t); i-- > 0;)
		if (t->name[i] == name)
			take_at(t, i);
}

static void begin_range(struct spans *s, struct span_thread *t, const struct gmt_event *e)
{
	enum range_kind kind = spans_range_kind(s, e->name);

	if (kind == RANGE_STEP || kind == RANGE_ZERO_GRAD)
		take_lost(t, e->name);
	if (t->depth < SPAN_RANGES) {
		t->number[t->depth] = e->arg0;
		t->name[t->depth] = e->name;
	}
	t->depth++;
	look_at_ranges(s, t);
	s->now.backward_over = s->in_backward && !t->engine;
	if (kind == RANGE_PROFILER)
		s->profiler = e->arg0;
	if (kind != RANGE_STEP)
		return;
	s->steps++;
	s->stepped = true;
	*map_item(&s->step_ends, e->arg0) = (struct step_end){ 0 };
}

/* Removes the range that ends, and returns its thread, which might not be the one that ends it.
 * Inner ranges stay open. NULL if its beginning was lost or it was too deep to be kept. */
static struct span_thread *open_on(struct spans *s, struct span_thread *t, uint64_t number)
{
	if (take_out(t, number))
		return t;
	for (size_t i = 0; i < s->thread_count; i++)
		if (s->threads[i] != t && take_out(s->threads[i], number))
			return s->threads[i];
	return NULL;
}

/* Notes a step's end, or that memory ran out in it. The first of the two counts. */
static void close_step(struct spans *s, uint64_t number, uint64_t seq, bool refused)
{
	struct step_end *end = map_find(&s->step_ends, number);

	if (end && !end->seq)
		*end = (struct step_end){ seq, refused };
}

static void end_range(struct spans *s, struct span_thread *t, const struct gmt_event *e)
{
	enum range_kind kind = spans_range_kind(s, e->name);
	struct span_thread *at = t->depth > SPAN_RANGES ? NULL : open_on(s, t, e->arg0);

	if (kind == RANGE_STEP)
		close_step(s, e->arg0, e->seq, false);
	if (kind == RANGE_PROFILER)
		s->profiler = 0;
	if (!at && t->depth > SPAN_RANGES)
		t->depth--;
	else if (!at && (kind == RANGE_STEP || kind == RANGE_ZERO_GRAD))
		take_lost(t, e->name);
	look_at_ranges(s, at ? at : t);
}

/* Frames decide where a range or a thread covers several stages: an optimizer's closure runs passes
 * inside its step, and checkpointing runs forward passes inside backward. */
static enum block_stage stage_of(const struct span_thread *t, const struct gmt_event *e, uint32_t s)
{
	bool passes = s & (STACK_FORWARD | STACK_BACKWARD);
	bool node = e->scope || t->engine || e->kind == GMT_TAG_GRAD;

	if (!node && (s & STACK_ZERO_GRAD || (t->zero_grad && !passes)))
		return STAGE_ZERO_GRAD;
	if (s & STACK_STEP || (t->step && !passes))
		return STAGE_OPTIMIZER;
	if (node)
		return s & (STACK_FORWARD | STACK_RECOMPUTE) ? STAGE_RECOMPUTE : STAGE_BACKWARD;
	if (s & STACK_FORWARD)
		return STAGE_FORWARD;
	return s & STACK_BACKWARD ? STAGE_BACKWARD : STAGE_OUTSIDE;
}

enum act doing_note(struct spans *s, const struct gmt_event *e)
{
	static const uint8_t acts[] = {
		[GMT_BLOCK_ALLOC] = ACT_BIRTH, [GMT_BLOCK_FREE] = ACT_DEATH,
		[GMT_BLOCK_OOM] = ACT_OTHER,   [GMT_MEM_ALLOC] = ACT_BIRTH,
		[GMT_MEM_FREE] = ACT_DEATH,    [GMT_MEM_FAIL] = ACT_OTHER,
		[GMT_PHYS_CREATE] = ACT_BIRTH, [GMT_PHYS_RELEASE] = ACT_DEATH,
		[GMT_PHYS_RETAIN] = ACT_OTHER, [GMT_MAP] = ACT_BIRTH,
		[GMT_UNMAP] = ACT_DEATH,       [GMT_CTX_DESTROY] = ACT_DEATH,
		[GMT_TAG_SAVED] = ACT_OTHER,   [GMT_TAG_GRAD] = ACT_OTHER,
		[GMT_RANGE_BEGIN] = ACT_RANGE, [GMT_RANGE_END] = ACT_RANGE,
		[GMT_THINNED] = ACT_BIRTH,
	};
	enum act act = e->kind < sizeof(acts) ? acts[e->kind] : ACT_NONE;
	struct span_thread *t = thread_of(s, e->thread);

	s->now = (struct span_now){ .thread = t };
	if (e->kind == GMT_RANGE_BEGIN)
		begin_range(s, t, e);
	else if (e->kind == GMT_RANGE_END)
		end_range(s, t, e);
	else if (e->kind == GMT_BLOCK_OOM)
		close_step(s, t->step, e->seq, true);
	if (act == ACT_NONE || act == ACT_RANGE)
		return act;
	s->now.is_work = act == ACT_BIRTH || act == ACT_DEATH;
	s->now.signs = signs_find(s->signs, e->stack);
	s->now.stage = stage_of(t, e, s->now.signs);
	return act;
}

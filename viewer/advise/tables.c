/* SPDX-License-Identifier: Apache-2.0 */
/* Access of the findings to the tables: lives, spans, stacks. */

#include "advise.h"

struct finding *advise_add(struct advise *a, const char *kind)
{
	struct finding *f = need_item(a->items, a->count, a->room);

	*f = (struct finding){ .kind = kind, .order = a->count - 1 };
	return f;
}

void advise_without(const struct advise *a, struct finding *f, const struct advised *l,
		    uint64_t from)
{
	plan_without(&f->plan, l->life, from, l->until, l->size);
	l->course->shortened = true;
	if (!advise_counts(a, l))
		return;
	f->bytes += l->size;
	f->blocks++;
}

void advise_name(struct advise *a, struct finding *f, const struct advised *l)
{
	if (l->size <= f->largest)
		return;
	f->largest = l->size;
	f->owner = advise_owner(a, l);
}

void advise_with_in(const struct advise *a, struct life_plan *p, enum phase phase, uint64_t bytes)
{
	const struct spans *s = &a->timeline->model.spans;

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].phase == phase)
			plan_with(p, PLAN_NONE, s->items[i].extent.first_seq,
				  s->items[i].extent.last_seq + 1, bytes);
}

bool advise_knows_graphs(const struct advise *a)
{
	return a->timeline->model.spans.tags;
}

bool advise_knows_steps(const struct advise *a)
{
	enum steps_basis basis = a->timeline->steps.basis;

	return !a->open || basis == STEPS_OPTIMIZER || basis == STEPS_PROFILER;
}

uint32_t advise_lives(const struct advise *a)
{
	return a->lives->rows.count + (uint32_t)a->wanted_count;
}

bool advise_life(const struct advise *a, uint32_t life, unsigned classes, struct advised *out)
{
	struct lived x;
	bool over;

	if (!advise_counted(a, life) || !(a->courses[life].classes & classes))
		return false;
	if (life >= a->lives->rows.count) {
		*out = a->wanted[life - a->lives->rows.count];
		out->course = &a->courses[life];
		return true;
	}
	x = lives_read(a->lives, life);
	over = x.until <= a->until;
	*out = (struct advised){ .life = life,
				 .stack = x.stack,
				 .born = x.born,
				 .died = over ? x.died : lives_position(a->lives, 0),
				 .name = x.name,
				 .size = x.size,
				 .from = x.from,
				 .until = over ? x.until : PLAN_END,
				 .classes = a->courses[life].classes,
				 .course = &a->courses[life] };
	return true;
}

bool advise_following(const struct advise *a, unsigned classes, struct advised *l)
{
	size_t nth = l->nth;

	while (nth < a->known_count && !(a->courses[a->known[nth]].classes & classes))
		nth++;
	if (nth == a->known_count)
		return false;
	if (a->read)
		*l = a->read[nth];
	else
		advise_life(a, a->known[nth], classes, l);
	l->nth = nth + 1;
	return true;
}

bool advise_counts(const struct advise *a, const struct advised *l)
{
	return l->from <= a->peak_seq && a->peak_seq < l->until;
}

void advise_works(const struct advise *a, advise_work *look, void *ctx)
{
	const struct uses *u = &a->timeline->model.uses;
	uint32_t *lives = NULL, work = 0;
	size_t count = 0, room = 0;
	struct uses_cursor c;
	bool more;

	uses_first(&c, u);
	do { /* a work may have several rows */
		chunks_rest(a->lives->pool);
		more = uses_next(&c) &&
		       (a->until == PLAN_END || uses_work(u, c.work)->seq < a->until);
		if (count && (!more || c.work != work)) {
			look(ctx, work, lives, count);
			count = 0;
		}
		work = c.work;
		if (more && count + c.count > room)
			lives = need_resize(lives, (room = 2 * (count + c.count)) * sizeof(*lives));
		if (more)
			memcpy(lives + count, c.lives, c.count * sizeof(*lives));
		count += more ? c.count : 0;
	} while (more);
	free(lives);
}

struct watching {
	const struct advise *advise;
	advise_work *look;
	void *ctx;
};

static void look_if_watched(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	const struct watching *w = ctx;

	if (ANY_OF(x, lives, count,
		   advise_counted(w->advise, *x) && w->advise->courses[*x].watched))
		w->look(w->ctx, work, lives, count);
}

void advise_watched_works(const struct advise *a, advise_work *look, void *ctx)
{
	struct watching w = { a, look, ctx };

	if (ANY_OF(x, a->known, a->known_count, a->courses[*x].watched))
		advise_works(a, look_if_watched, &w);
	FOR_EACH (const uint32_t, x, a->known, a->known_count)
		a->courses[*x].watched = false;
}

bool advise_made_of(const struct advise *a, const struct advised *copy, struct advised *original)
{
	uint32_t of = copy->course->made_of;

	return of && advise_life(a, of - 1, UINT16_MAX, original);
}

bool advise_is_half(uint64_t narrow, uint64_t wide)
{
	uint64_t twice = 2 * narrow, slack = wide / 16;

	return (twice > wide ? twice - wide : wide - twice) <= slack;
}

void advise_block(const struct advise *a, const struct advised *l, struct block *b)
{
	if (!l->wanted)
		model_block(&a->timeline->model, l->life, b);
	else
		*b = (struct block){
			.size = l->size, .seq = l->from, .stack = l->stack, .name = l->name
		};
}

struct owner advise_owner(struct advise *a, const struct advised *l)
{
	struct block b;

	advise_block(a, l, &b);
	return owners_find(&a->timeline->owners, &b);
}

size_t advise_spans_begun(const struct advise *a, uint64_t seq)
{
	const struct spans *s = &a->timeline->model.spans;

	return s->count ? extents_begun(&s->items->extent, sizeof(*s->items), s->count, seq) : 0;
}

uint64_t advise_next(const struct advise *a, uint64_t seq, enum phase phase)
{
	const struct spans *s = &a->timeline->model.spans;
	size_t next = a->next[advise_spans_begun(a, seq)][phase];

	return next < s->count ? s->items[next].extent.first_seq : PLAN_END;
}

/* The event lies in a span of that phase. */
static bool is_in(const struct advise *a, uint64_t seq, enum phase phase)
{
	size_t next = advise_spans_begun(a, seq);

	return next && a->timeline->model.spans.items[next - 1].phase == phase;
}

bool advise_by_backward(const struct advise *a, const struct advised *l)
{
	uint64_t released = l->course->released;

	return stage_is_backward(l->died->stage) ||
	       (released && is_in(a, released, PHASE_BACKWARD));
}

bool advise_in_graph(const struct advised *l)
{
	return l->course->saved > l->course->released;
}

bool advise_held(const struct advise *a, const struct advised *l)
{
	uint64_t done = l->course->released;

	if (advise_in_graph(l))
		return false;
	if (!done)
		done = advise_next(a, advise_next(a, l->from, PHASE_BACKWARD), PHASE_OPTIMIZER);
	return l->until > done && (l->until == PLAN_END || lives_born_by(a->lives, l->until) >
								   lives_born_by(a->lives, done));
}

void advise_find_passes(struct advise *a)
{
	struct advise_passes *p = &a->passes;

	p->count = a->timeline->model.spans.forwards + 2u;
	p->items = need_new(p->count * sizeof(*p->items));
	ADVISE_EACH (a, UINT16_MAX, l) {
		struct advise_pass *x;

		if (l.born->forwards >= p->count)
			continue;
		x = &p->items[l.born->forwards];
		x->begin = x->begin ? x->begin : l.from;
		x->end = l.born->stage == STAGE_FORWARD ? l.from + 1 : x->end;
		if (l.born->stage != STAGE_FORWARD || l.wanted || !l.course->saved)
			continue;
		x->kept = true;
		if (l.course->released > x->walked && is_in(a, l.course->released, PHASE_BACKWARD))
			x->walked = l.course->released;
	}
	for (size_t i = p->count, after = i; i-- > 0; after = p->items[i].begin ? i : after)
		p->items[i].after = after;
}

/* Passes inside rows of equal steps are not stored; `after` skips them. */
size_t advise_pass_after(const struct advise *a, size_t pass)
{
	return pass < a->passes.count ? a->passes.items[pass].after : pass + 1;
}

uint64_t advise_pass_end(const struct advise *a, size_t pass)
{
	size_t next = advise_pass_after(a, pass);

	return next < a->passes.count ? a->passes.items[next].begin : PLAN_END;
}

uint64_t advise_next_pass(const struct advise *a, const struct advised *l)
{
	bool ahead = l->classes & CLASS_BIT(inputs) && l->born->stage != STAGE_FORWARD;
	size_t pass = l->born->forwards;

	return advise_pass_end(a, ahead ? advise_pass_after(a, pass) : pass);
}

/* Made by a library that keeps a shard of the state. */
static bool is_share(struct stacks *s, uint32_t stack)
{
	return stacks_in_file(s, stack,
			      ONE_OF("zero_redundancy_optimizer.py", "/runtime/zero/",
				     "/distrib_optimizer.py", "/fsdp/"));
}

bool advise_in_shards(struct advise *a)
{
	struct map read = { 0 };
	bool found = false;

	ADVISE_EACH (a, UINT16_MAX, l) {
		if (found || !l.stack)
			continue;
		found = model_signs(&a->timeline->model, l.stack) & STACK_UNSHARDED;
		if (!found && l.classes & CLASS_BIT(optimizer_state) && map_add(&read, l.stack))
			found = is_share(&a->timeline->stacks, l.stack);
	}
	map_free(&read);
	return found;
}

unsigned advise_tags(const struct advise *a, const struct advised *l)
{
	return !l->wanted ? lives_facts(a->lives, lives_at(a->lives, l->life)).tags : 0;
}

bool advise_leaf(const struct advise *a, const struct advised *l)
{
	return advise_tags(a, l) & BLOCK_LEAF;
}

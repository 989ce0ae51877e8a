/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes that save tensors for backward although no backward pass reads any of them: an
 * evaluation without no_grad, or a teacher whose outputs are detached. A place is a call of a
 * module with its path. The outermost place whose saved tensors are never read is reported. In
 * a recording that ends within the program only outermost modules count, and one of these must
 * hold: earlier passes of the place were freed without a backward pass, many of its passes are
 * held at once, or the program has trained so long that every place had its turn. Tensors
 * packed by a hook are left out, because checkpointing computes them again.
 */

#include "advise.h"

enum { PASSES = 4, TIMES = 3, SETTLED = 3 };

/* Another module might save and read a module's results, too: a loss that compares them with a
 * student's, for example. Such reads are ignored below 1/RESULTS of the saved bytes, and 1/BLOCKS
 * of the blocks. */
#define RESULTS 8
#define BLOCKS	4

struct place {
	bool read;	  /* a backward node read something */
	bool gone, there; /* whether the latest pass's saved blocks were freed, are alive */
	uint32_t latest;  /* number of the latest pass */
	uint32_t held,
		dropped; /* numbers of passes with live blocks, and of passes that freed all */
	bool earlier;	 /* some was saved in an earlier step */
	bool inside;	 /* called by another module, which saves more */
	bool packed;	 /* a hook packed something, so backward might compute it again */
	bool perhaps;	 /* only its first pass is known, so backward might still read it */
	bool nothing;	 /* no backward pass follows: judge_place */
	uint64_t bytes, read_bytes;
	uint32_t blocks, read_blocks; /* saved ones */
	const char *function;	      /* of the module */
	struct owner caller;	      /* line that calls the model */
};

struct search {
	struct advise *advise;
	MAP_OF(struct place) places; /* by key of the call */
	uint64_t *keys;		     /* by pass: key of its outermost call; 0 = none */
	uint32_t most;		     /* most passes before one backward pass */
	bool first;		     /* of the place that is found only the first pass is known */
	bool inside;		     /* the largest place is called by a module */
};

/* Number of the pass that the life belongs to. Blocks made before a pass belong to it. */
static size_t pass_of(const struct advise *a, const struct advised *l)
{
	size_t pass = l->born->forwards;

	return l->born->stage == STAGE_FORWARD ? pass : advise_pass_after(a, pass);
}

/* Saved during its own pass. A later pass might save the output of a pass without gradients. */
static bool is_saved_in_pass(const struct advise *a, const struct advised *l)
{
	uint64_t saved = l->course->saved;

	return saved && saved < advise_pass_end(a, pass_of(a, l)) &&
	       !(advise_tags(a, l) & BLOCK_PACKED);
}

/* Only complete backward passes count, because more forward passes might precede the current one.
 * */
uint32_t advise_most_before_backward(const struct spans *s, uint64_t until)
{
	uint32_t most = 0, saved = 0, pass = 0;
	bool back = false;

	FOR_EACH (const struct span, x, s->items, s->count) {
		if (x->extent.first_seq > until)
			break;
		if (back && x->phase != PHASE_BACKWARD) {
			most = saved > most ? saved : most;
			saved = 0;
		}
		back = x->phase == PHASE_BACKWARD;
		if (span_is_forward(x)) {
			saved += x->kept || !s->tags ? x->pass - pass : 0;
			pass = x->pass;
		}
	}
	return most;
}

/* Far more passes than ever came before one backward pass. Unknown until the first backward pass is
 * over. */
static bool is_many(const struct search *s, uint32_t passes)
{
	return s->most && passes >= PASSES && passes >= TIMES * s->most;
}

/* Memory ran out in the first pass that a line called, after steps whose backward passes read the
 * passes of other lines; after few steps, such passes of the same module that other functions
 * called. */
static bool is_behind_training(const struct search *s, const struct place *p)
{
	bool few = s->advise->steps < SETTLED, read = false;

	if (!s->advise->open || s->advise->steps < 2 || p->earlier || !p->caller.line ||
	    strcasestr(p->caller.function, "train"))
		return false;
	FOR_EACH (const struct place, x, s->places.items, s->places.count) {
		if (x->read && x->caller.line &&
		    (few ? owners_same_function(&x->caller, &p->caller)
			 : owners_same(&x->caller, &p->caller)))
			return false;
		read |= x->read && (!few || !strcmp(x->function, p->function));
	}
	return read;
}

/* Backward read more of the place than its results. Large blocks that it does not read might be
 * saved for their shape alone. */
static bool is_read(const struct place *p)
{
	return RESULTS * p->read_bytes >= p->bytes || BLOCKS * p->read_blocks >= p->blocks;
}

static void judge_place(const struct search *s, struct place *p)
{
	const struct advise *a = s->advise;

	if (p->inside ? a->open || p->packed || is_read(p) : p->read)
		return;
	p->perhaps = a->open && !p->dropped && !is_many(s, p->held) &&
		     !(a->timeline->model.spans.backwards && a->steps >= SETTLED && p->earlier);
	p->nothing = !p->perhaps || is_behind_training(s, p);
}

static bool is_for_nothing(const struct search *s, uint64_t key)
{
	const struct place *p = map_find(&s->places, key);

	return p && p->nothing;
}

/* The whole pass, as far as is known. */
static bool is_pass_for_nothing(const struct search *s, size_t pass)
{
	return pass < s->advise->passes.count && is_for_nothing(s, s->keys[pass]);
}

/* Counts the latest pass, after which another one began. */
static void end_pass(const struct search *s, struct place *p)
{
	p->held += p->there;
	if (p->gone && !p->there && advise_pass_end(s->advise, p->latest) != PLAN_END)
		p->dropped++;
	p->gone = p->there = false;
}

static void note_saved(struct search *s, const struct site_of_stack *call, const struct advised *l,
		       bool inside)
{
	struct place *p = map_item(&s->places, call->key);
	const struct advise *a = s->advise;
	const struct steps *steps = &a->timeline->steps;

	if (!inside && !p->caller.line)
		p->caller = owners_caller(&s->advise->timeline->owners, l->stack);
	if (l->born->forwards != p->latest)
		end_pass(s, p);
	p->function = call->function;
	p->latest = l->born->forwards;
	p->inside = inside;
	p->read |= l->course->read;
	p->blocks++;
	p->read_blocks += l->course->read;
	p->bytes += l->size;
	p->read_bytes += l->course->read ? l->size : 0;
	if (l->until == PLAN_END)
		p->there = true;
	if (l->until != PLAN_END)
		p->gone = true;
	if (steps_at(steps, l->from) < steps_at(steps, a->until))
		p->earlier = true;
}

static void collect(struct search *s)
{
	struct advise *a = s->advise;

	ADVISE_EACH (a, UINT16_MAX, l) {
		struct site_path p = { 0 };

		if (l.born->stage == STAGE_FORWARD)
			p = sites_find(a, l.stack);
		if (!p.count)
			continue;
		if (l.born->forwards < a->passes.count && !s->keys[l.born->forwards])
			s->keys[l.born->forwards] = p.items[0].key;
		for (size_t i = 0; i < p.count; i++) {
			if (advise_tags(a, &l) & BLOCK_PACKED)
				map_item(&s->places, p.items[i].key)->packed = true;
			else if (is_saved_in_pass(a, &l))
				note_saved(s, &p.items[i], &l, i);
		}
	}
	FOR_EACH (struct place, p, s->places.items, s->places.count)
		end_pass(s, p);
	FOR_EACH (struct place, p, s->places.items, s->places.count)
		judge_place(s, p);
}

/* Index of the outermost call on the stack whose saved tensors nothing reads; p->count = none. */
static size_t unread_call(struct search *s, const struct site_path *p)
{
	const struct site_of_stack *call =
		FIRST_OF(x, p->items, p->count, is_for_nothing(s, x->key));

	return call ? (size_t)(call - p->items) : p->count;
}

/* Only the graph of an unread pass holds it, so without the graph it is freed after its use. */
static bool is_let_go(struct search *s, const struct advised *l)
{
	struct advise *a = s->advise;
	size_t pass = pass_of(a, l);
	struct site_path p = { 0 };

	if (!is_saved_in_pass(a, l) || pass >= a->passes.count || advise_held(a, l) ||
	    l->course->read)
		return false;
	if (l->born->stage != STAGE_FORWARD)
		return is_pass_for_nothing(s, pass);
	p = sites_find(a, l->stack);
	return unread_call(s, &p) < p.count;
}

/* The line that makes the call: in the script, or in the module around it. */
static struct owner caller_of(struct search *s, const struct advised *l)
{
	struct advise *a = s->advise;
	struct stacks *stacks = &a->timeline->stacks;
	const struct frame *forward[OWNER_MODULES];
	struct site_path p = sites_find(a, l->stack);
	size_t i = unread_call(s, &p), count;

	s->inside = i;
	stacks_read_python(stacks, l->stack);
	count = owners_modules(stacks, forward);
	while (i && (i > count || owners_is_plumbing(forward[i - 1]->file)))
		i--;
	if (!i)
		return owners_caller(&a->timeline->owners, l->stack);
	return (struct owner){ .function = forward[i - 1]->function,
			       .file = forward[i - 1]->file,
			       .line = forward[i - 1]->line };
}

static bool is_perhaps(const struct search *s, size_t pass)
{
	const struct place *p = map_find(&s->places, s->keys[pass]);

	return p && p->perhaps;
}

static void add_no_grad(struct search *s)
{
	struct advise *a = s->advise;
	struct finding *f = advise_add(a, "no_grad");

	f->range = true;
	ADVISE_EACH (a, CLASSES_THAT(ARE_SAVED), l) {
		size_t pass = pass_of(a, &l);
		uint64_t end;
		bool batch;

		if (!is_let_go(s, &l))
			continue;
		l.course->unread = is_pass_for_nothing(s, pass);
		batch = l.born->stage != STAGE_FORWARD;
		end = batch ? advise_pass_end(a, pass) : layers_after_next(a, l.from);
		advise_without(a, f, &l, batch ? end : l.course->saved + 1);
		if (!batch) /* the program might hold the batch itself */
			plan_without(&f->cautious, l.life, end, l.until, l.size);
		if (!advise_counts(a, &l) || l.size <= f->largest || batch)
			continue;
		f->largest = l.size;
		f->owner = caller_of(s, &l);
		s->first = is_perhaps(s, pass);
	}
	if (s->inside || s->first)
		f->words = s->inside ? "no_grad_inside" : "no_grad_perhaps";
	if (a->wanted_count)
		a->no_backward = is_pass_for_nothing(s, a->wanted->born->forwards);
}

void advise_no_grad(struct advise *a)
{
	struct search s = { .advise = a,
			    .most = advise_most_before_backward(&a->timeline->model.spans,
								a->until) };

	s.keys = need_new((a->passes.count + 1) * sizeof(*s.keys));
	collect(&s);
	add_no_grad(&s);
	free(s.keys);
	map_items_free(&s.places);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of earlier forward passes that are still allocated, in programs where no optimizer ends
 * a step. A result counts as left if more passes have begun since its last use than any result
 * of its stack ever waited for. While a pass's graph is alive a later loss might need it,
 * unless far more graphs wait than ever before.
 */
#include "../advise/advise.h"
#include "oom.h"

#define FEWEST 3 /* so many passes that left a result show a habit */

/* All results of one stack. */
struct line {
	uint32_t lag;		 /* most passes between a result and its last use */
	uint32_t passes, latest; /* passes that left a result, and the latest of them */
};

struct search {
	const struct oom *oom;
	MAP_OF(struct line) lines; /* by stack */
	struct map graphs;	   /* passes whose graph is alive */
	uint32_t now;		   /* the pass that ran out of memory */
};

static struct lived life_of(const struct oom *o, uint32_t life)
{
	return lives_read(&o->timeline->model.lives, life);
}

/* The pass of the life. A block made between two passes belongs to the next one. */
static uint32_t own_pass(const struct oom *o, uint32_t life)
{
	const struct lived x = life_of(o, life);

	return oom_pass_at(o, x.from) + (x.born->stage == STAGE_OUTSIDE);
}

static struct line *line_of(struct search *s, uint32_t life)
{
	return map_item(&s->lines, life_of(s->oom, life).stack);
}

/* The birth, last use and end of a result, counted in passes. */
struct course {
	uint64_t from;	    /* seq of the birth */
	uint32_t own, last; /* last: at least own; 0 = unused, or not of a forward pass */
	uint32_t end;	    /* pass in which it was freed or memory ran out */
	bool live;	    /* still alive when memory ran out */
};

static struct course course_of(const struct search *s, uint32_t life)
{
	const struct lived row = life_of(s->oom, life);
	bool live = row.until >= s->oom->refusal.event.seq;
	struct course c = { row.from, own_pass(s->oom, life), 0,
			    live ? s->now : oom_pass_at(s->oom, row.until), live };
	struct block_uses x;

	uses_of(s->oom->shot.model, life, &x);
	if (!x.count || row.born->stage > STAGE_FORWARD)
		return c;
	c.last = oom_pass_at(s->oom, x.last_seq);
	c.last = c.last > c.own ? c.last : c.own;
	return c;
}

/* More passes began since its last use than any result of its stack ever waited for. */
static bool is_left(struct search *s, uint32_t life, const struct course *c)
{
	return c->last && c->end > c->last && c->end - c->last > 2 * line_of(s, life)->lag;
}

/* A result that an evaluation collects: no later pass used it. */
static bool is_gathered(const struct search *s, const struct course *c)
{
	return s->oom->evaluation && c->from >= s->oom->evaluation && c->live && c->last &&
	       c->last == c->own && c->last < s->now;
}

/* Learns the habits of stacks from the latest lives before the refusal. */
static void look_at_lives(struct search *s)
{
	uint32_t n = oom_lives(s->oom), from = oom_latest(n);

	for (uint32_t i = from; i < n; i++) {
		struct course c = course_of(s, i);
		struct line *line = line_of(s, i);

		if (c.last > c.own + line->lag)
			line->lag = c.last - c.own;
	}
	for (uint32_t i = from; i < n; i++) {
		struct course c = course_of(s, i);
		struct line *line = line_of(s, i);

		if ((is_left(s, i, &c) || is_gathered(s, &c)) && line->latest != c.own) {
			line->passes++;
			line->latest = c.own;
		}
	}
}

static void add_left(struct oom *o, const struct block *b, uint32_t passes)
{
	if (passes >= FEWEST) {
		*map_put(&o->left.blocks, b->seq, NULL) = 1;
		o->left.bytes += b->size;
	} else if (o->by_call && oom_is_returned(o, b)) {
		oom_hold(&o->left.call, b);
	}
}

void oom_left(struct oom *o)
{
	struct search s = { .oom = o, .now = oom_pass_at(o, o->refusal.event.seq) };
	const struct moment *mo = &o->shot.moment;
	uint64_t step = o->evaluation ? o->evaluation : oom_batch_begin(o, oom_number(o));
	bool passes = o->timeline->steps.basis == STEPS_BACKWARD && o->since_step < 2, many;
	bool known = uses_complete(o->shot.model) && o->shot.model->spans.tags; /* graphs, too */
	bool used = known && (oom_only_forward(o) || passes);
	bool gathers = known && o->evaluation;
	uint32_t most =
		advise_most_before_backward(&o->timeline->model.spans, o->refusal.event.seq);

	if (used || gathers)
		look_at_lives(&s);
	FOR_BLOCKS (b, mo)
		if (b->life && b->seq >= step &&
		    (o->shot.model->spans.tags ? b->state & LIFE_SAVED
					       : category_in(b->category, FORWARD_RESULTS)))
			map_put(&s.graphs, own_pass(o, b->life - 1), NULL);
	many = most && o->phase != PHASE_BACKWARD && s.graphs.count > FEWEST &&
	       s.graphs.count > 2 * most;
	FOR_BLOCKS (b, mo) {
		uint32_t own = b->life ? own_pass(o, b->life - 1) : s.now;
		struct course c;

		/* also a loss outside of the model */
		if (many && category_in(b->category, FORWARD_RESULTS))
			own = oom_pass_at(o, b->seq);
		if (own >= s.now || b->seq < (many ? step : o->evaluation) ||
		    !category_in(b->category, OF_ONE_PASS))
			continue;
		if (many && map_get(&s.graphs, own)) {
			add_left(o, b, FEWEST);
			continue;
		}
		c = b->life ? course_of(&s, b->life - 1) : (struct course){ 0 };
		if (used && !map_get(&s.graphs, own) && is_left(&s, b->life - 1, &c)) {
			add_left(o, b, line_of(&s, b->life - 1)->passes);
		} else if (gathers && is_gathered(&s, &c) &&
			   line_of(&s, b->life - 1)->passes >= FEWEST) {
			o->left.gathered = true;
			add_left(o, b, FEWEST);
		}
	}
	map_free(&s.graphs);
	map_items_free(&s.lines);
}

/* A graph is kept alive by the last tensor of its pass, which the program holds. */
static void say_let_go(const struct oom *o, const struct holder *h, char *what)
{
	const char *one = PASS_OR_STEP(o), *of = BY_PASS(o) ? "passes" : "steps";
	struct owner root = owners_find(&o->timeline->owners, &o->root);

	if (h->category == CATEGORY_kv_cache)
		oom_say(what,
			"Limit the cache of keys and values that grows in %s: fewer tokens, a "
			"window, smaller elements, or host memory",
			WHO(&h->owner));
	else if (o->root.seq && o->grown_graph > o->grown / 2 && o->grown_saved &&
		 !owners_same(&root, &h->owner))
		oom_say(what,
			"Free the tensors of %s from earlier %s: their graph is kept alive, most "
			"likely by the tensor of %s, the last of each %s (keep loss.item() or "
			".detach() instead, or call backward at once)",
			WHO(&h->owner), of, WHO(&root), one);
	else
		oom_say(what,
			h->category == CATEGORY_activations
				? "Free the graphs of %s from earlier %s (.detach() on a state or "
				  "a result that goes on to the next, loss.item() instead of a "
				  "loss)"
				: "Free the tensors of %s from earlier %s (keep x.item() or "
				  "x.detach().cpu() instead, or del), or limit how many are kept",
			WHO(&h->owner), of);
}

/* Calls of a model before any backward pass: one might still follow. */
uint64_t remedy_backward_each(const struct oom *o, char *what, char *how)
{
	const struct block *most = LARGEST_OF(
		b, &o->shot.moment, b->category == CATEGORY_activations && b->state & LIFE_SAVED);
	struct owner at = { .file = "" };
	char place[OWNER_WORDS + 8] = "";

	if (!o->calls)
		return 0;
	if (most)
		at = owners_caller(&o->timeline->owners, most->stack);
	if (at.file[0])
		snprintf(place, sizeof(place), " (%s)", WHO(&at));
	oom_say(what, "If no backward pass follows, call the model under torch.no_grad()%s%s",
		place,
		o->served ? ""
			  : ", or keep loss.item(). Otherwise call backward() on the loss of each "
			    "pass as soon as it is computed, or, if a pass goes on with the state "
			    "of the one before, after fewer passes, and .detach() that state");
	oom_say(how, "%s that graphs of earlier passes hold. %zu passes have results in memory",
		B(o->calls), o->passes);
	return o->calls;
}

/* A single earlier call is no evidence: its results might be read later. */
static uint64_t say_call_before(const struct oom *o, char *what, char *how)
{
	const struct oom_held *call = &o->left.call;
	struct owner owner = owners_find(&o->timeline->owners, &call->largest);

	oom_say(what,
		"Delete the results of the call before (of %s) before the next one, if nothing "
		"reads them any more: a variable of the loop, for instance",
		WHO(&owner));
	oom_say(how, "Results of earlier calls that this call has not used");
	return call->bytes;
}

uint64_t remedy_let_go(const struct oom *o, char *what, char *how)
{
	const struct holder *h = oom_grown_most(o);
	const char *one = o->by_call ? "pass" : "step";

	if (!h)
		return say_call_before(o, what, how);
	say_let_go(o, h, what);
	if (BY_LEFT(o))
		oom_say(how, o->grown_saved
				     ? "Made by earlier passes, more than any backward pass came "
				       "after, and still held"
			     : o->left.gathered
				     ? "No later pass has used them"
				     : "Nothing has used them since, for more passes than any "
				       "result of their lines ever waited");
	else if (o->leaks.count)
		oom_say(how,
			"Blocks from before %s %zu at lines that grew by %s %s %s%s, from %s %zu "
			"to %s %zu",
			one, oom_number(o), B(o->leaks.bytes_per_step),
			o->leaks.each ? "with each" : "a", one, o->leaks.each ? "" : " on average",
			one, o->leaks.from_step, one, o->leaks.to_step);
	else
		oom_say(how, "Blocks that were made before %s %zu, and that are still held", one,
			oom_number(o));
	return o->grown;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes that keep what backward would need, and no backward pass comes: an evaluation without
 * no_grad, say. A place is the outermost module's call, with all that leads to it. One that
 * backward never used anything of keeps it for nothing, if something that it saved was let go, or
 * many of its passes are held at once, or the program trains for so long that every place had its
 * turn.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "advise.h"
#include "layers.h"

#define B(n) human_bytes((char[HUMAN_MAX]){ 0 }, n)

enum { BY_BACKWARD = 1, BEFORE_BACKWARD = 2, PASSES = 4, TIMES = 3, SETTLED = 3 };

struct search {
	struct advise *advise;
	struct sites sites;
	struct map places; /* key of the outermost call -> index */
	struct place {
		unsigned ends;		 /* BY_BACKWARD, BEFORE_BACKWARD */
		uint32_t passes, latest; /* that hold something */
		bool earlier;		 /* some of it was made in a step that is over */
	} * items;
	size_t count, room;
	struct layers layers;
	struct advise_passes of_run;
	uint64_t *keys; /* of passes: of their outermost calls, 0 = none */
};

static size_t next_pass(const struct search *s, size_t pass)
{
	while (++pass < s->of_run.count && !s->of_run.items[pass].begin)
		;
	return pass;
}

/* Who calls a pass has its batch until then. */
static uint64_t end_of_pass(const struct search *s, size_t pass)
{
	pass = next_pass(s, pass);
	return pass < s->of_run.count ? s->of_run.items[pass].begin : PLAN_END;
}

/* The pass that a life is of: what a script made before a pass is for that one. */
static size_t pass_of(const struct search *s, const struct advised *l)
{
	size_t pass = l->born->forwards;

	return l->born->stage == STAGE_FORWARD ? pass : next_pass(s, pass);
}

/* Saved while its pass was at work: a later one may take the result of one without gradients. */
static bool is_saved_in_pass(const struct search *s, const struct advised *l)
{
	uint64_t saved = s->advise->saved[l->life];

	return saved && saved < end_of_pass(s, pass_of(s, l));
}

/* Where the rest of the run is not known: it was made in a step before. */
static bool is_earlier(const struct advise *a, const struct advised *l)
{
	const struct steps *s = &a->timeline->steps;

	return !a->open || steps_at(s, l->from) < steps_at(s, a->until);
}

/* A backward pass follows before another forward pass, though it may leave the graph as it is. */
static bool comes_backward(const struct advise *a, const struct advised *l)
{
	uint64_t back = advise_next(a, l->from, PHASE_BACKWARD);

	return back <= a->until && back < advise_next(a, l->from, PHASE_FORWARD);
}

static struct place *place_of(struct search *s, uint64_t key)
{
	uint32_t at = map_number(&s->places, key, s->count);

	if (at == s->count)
		*need_item(s->items, s->count, s->room) = (struct place){ 0 };
	return &s->items[at];
}

/* Backward went through such a pass at some time, even if it kept the graph. */
static void note_used(void *ctx, uint32_t stack)
{
	struct search *s = ctx;
	struct site_path p = sites_find(&s->sites, stack);

	if (p.count)
		place_of(s, p.items[0].key)->ends |= BY_BACKWARD;
}

/* Far more passes than one backward pass goes back through. Before the first of those a step may
 * not be over yet. */
static bool is_many(const struct advise *a, uint32_t passes)
{
	const struct spans *s = &a->timeline->model.spans;

	return s->backwards && passes >= PASSES &&
	       passes >= TIMES * (uint64_t)s->forwards_before / s->backwards;
}

static bool is_for_nothing(const struct search *s, uint64_t key)
{
	const struct advise *a = s->advise;
	const uint32_t *at = map_get(&s->places, key);
	const struct place *p = at ? &s->items[*at] : NULL;

	return p && !(p->ends & BY_BACKWARD) &&
	       (p->ends & BEFORE_BACKWARD || is_many(a, p->passes) ||
		(a->timeline->model.spans.backwards && a->steps >= SETTLED && p->earlier));
}

static void collect(struct search *s)
{
	struct advise *a = s->advise;
	struct advised l;

	ADVISE_EACH(a, UINT16_MAX, l)
	{
		struct site_path p = { 0 };
		struct place *place;

		if (l.born->stage == STAGE_FORWARD)
			p = sites_find(&s->sites, l.stack);
		if (!p.count)
			continue;
		layers_note(&s->layers, &p, &l);
		if (l.born->forwards < s->of_run.count && !s->keys[l.born->forwards])
			s->keys[l.born->forwards] = p.items[0].key;
		if (!is_saved_in_pass(s, &l))
			continue;
		place = place_of(s, p.items[0].key);
		place->earlier |= is_earlier(a, &l);
		if (l.until == PLAN_END && comes_backward(a, &l))
			place->ends |= BY_BACKWARD;
		else if (l.until != PLAN_END)
			place->ends |= advise_by_backward(a, &l) ? BY_BACKWARD : BEFORE_BACKWARD;
		else if (l.born->forwards != place->latest)
			place->passes++;
		place->latest = l.born->forwards;
	}
}

/* Without a graph it goes as soon as it has been used: it is of such a pass, or a batch that only
 * the graph of one held. */
static bool is_let_go(struct search *s, const struct advised *l)
{
	size_t pass = pass_of(s, l);
	struct site_path p = { 0 };

	if (!is_saved_in_pass(s, l) || pass >= s->of_run.count)
		return false;
	if (l->born->stage != STAGE_FORWARD)
		return !advise_held(s->advise, l) && is_for_nothing(s, s->keys[pass]);
	p = sites_find(&s->sites, l->stack);
	return p.count && is_for_nothing(s, p.items[0].key);
}

static void look_at(struct search *s)
{
	struct advise *a = s->advise;
	struct finding *f = advise_add(a, "no_grad");
	uint64_t bytes = 0, largest = 0;
	struct advised l;

	f->range = true;
	ADVISE_EACH(a, CLASS_BIT(activations) | CLASS_BIT(inputs), l)
	{
		uint64_t end;
		bool batch;

		if (!is_let_go(s, &l))
			continue;
		batch = l.born->stage != STAGE_FORWARD;
		end = batch ? end_of_pass(s, pass_of(s, &l))
			    : layers_after_next(&s->layers, l.from);
		plan_without(&f->plan, batch ? end : a->saved[l.life] + 1, l.until, l.size,
			     a->peak_seq);
		plan_without(&f->cautious, end, l.until, l.size, a->peak_seq);
		if (!advise_counts(a, &l))
			continue;
		bytes += l.size;
		if (l.size <= largest || l.born->stage != STAGE_FORWARD)
			continue;
		largest = l.size;
		f->owner = owners_caller(&a->timeline->owners, l.stack);
	}
	advise_put(f->what, "Run the passes that this line calls under torch.no_grad() or "
			    "torch.inference_mode(): no backward pass ever comes after them");
	advise_put(f->how,
		   "%s saved for backward in such passes %s; at least: where what a "
		   "layer makes is there until the next two are through",
		   B(bytes), a->when);
}

void advise_no_grad(struct advise *a)
{
	struct search s = { .advise = a,
			    .sites = { .stacks = &a->timeline->stacks },
			    .of_run = advise_passes(a) };

	s.keys = need_new((s.of_run.count + 1) * sizeof(*s.keys));
	collect(&s);
	classify_graph_stacks(&a->timeline->model, note_used, &s);
	look_at(&s);
	layers_free(&s.layers);
	free(s.of_run.items);
	free(s.keys);
	free(s.items);
	map_free(&s.places);
	sites_free(&s.sites);
}

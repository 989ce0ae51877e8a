/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the moment of one recording that is similar to a moment of the other: in the same phase, at
 * the same place of a step, and about as far in it, because passes of two versions differ in
 * length. Also finds the passes that differ most.
 */

#include "diff_side.h"

const struct span *diff_highest(const struct diff_side *s, enum phase phase)
{
	const struct spans *all = &s->timeline.model.spans;

	return GREATEST_OF(x, all->items, all->count, x->phase == phase, x->extent.peak);
}

/* Index of a span among the step's spans of that phase, from 0, and their number. */
struct place {
	size_t nth, of;
};

static size_t count_spans(const struct diff_side *s, const struct step *step, enum phase phase)
{
	const struct spans *all = &s->timeline.model.spans;

	return SUM_OF(x, &all->items[step->first], step_spans(all, step), x->phase == phase);
}

static struct place place_of_moment(const struct diff_side *s, const struct step *step,
				    const struct span *span)
{
	const struct spans *all = &s->timeline.model.spans;

	return (struct place){ SUM_OF(x, &all->items[step->first], step_spans(all, step),
				      x->phase == span->phase && x < span),
			       count_spans(s, step, span->phase) };
}

static const struct span *nth_of(const struct diff_side *s, const struct step *step,
				 enum phase phase, struct place p)
{
	const struct spans *all = &s->timeline.model.spans;

	if (count_spans(s, step, phase) != p.of)
		return NULL;
	FOR_EACH (const struct span, x, &all->items[step->first], step_spans(all, step))
		if (x->phase == phase && p.nth-- == 0)
			return x;
	return NULL;
}

/* Steps from `first` up to `end`. */
struct range {
	size_t first, end;
};

/* Counterpart of an item: all steps for a step; for the time before or after the steps the same
 * time. */
static struct range counterpart_of(const struct steps *ours, const struct steps *theirs,
				   size_t item)
{
	size_t steps = steps_number(ours);

	if (!item)
		return (struct range){ 0, 1 };
	if (item > steps_number(theirs))
		return (struct range){ steps + 1, ours->count };
	return (struct range){ 1, steps + 1 };
}

/* Among the spans at that place of a step that are nearly as high as the highest one, the one whose
 * step is nearest. */
static const struct span *nearest(const struct diff_side *s, enum phase phase, struct place p,
				  struct range in, size_t step)
{
	const struct span *span, *best = NULL;
	size_t least = SIZE_MAX;
	uint64_t most = 0;

	for (size_t i = in.first; i < in.end; i++)
		if ((span = nth_of(s, &s->timeline.steps.items[i], phase, p)))
			most = span->extent.peak > most ? span->extent.peak : most;
	for (size_t i = in.first; i < in.end; i++) {
		size_t far = i < step ? step - i : i - step;

		span = nth_of(s, &s->timeline.steps.items[i], phase, p);
		if (!span || span->extent.peak < most / 50 * 49 || far >= least)
			continue;
		best = span;
		least = far;
	}
	return best;
}

const struct span *diff_span_like(const struct diff_side *s, const struct diff_side *other,
				  uint64_t seq)
{
	const struct timeline *t = &other->timeline;
	const struct span *theirs = steps_span(&t->steps, &t->model.spans, seq), *found;
	size_t step = steps_at(&t->steps, seq);
	struct range in = counterpart_of(&s->timeline.steps, &t->steps, step);
	struct place p;

	if (!theirs)
		return NULL;
	p = place_of_moment(other, &t->steps.items[step], theirs);
	found = nearest(s, theirs->phase, p, in, step);
	return found ? found : diff_highest(s, theirs->phase);
}

/* The next span of that phase from *at on; moves *at behind it. */
static const struct span *next_of(const struct diff_side *s, enum phase phase, size_t *at)
{
	const struct spans *all = &s->timeline.model.spans;

	while (*at < all->count && all->items[*at].phase != phase)
		++*at;
	return *at < all->count ? &all->items[(*at)++] : NULL;
}

/* Matches the spans of a phase in order, if both steps have equally many. */
static void compare_step(struct diff_spans *out, const struct diff_side *old,
			 const struct diff_side *new, size_t step)
{
	const struct step *theirs = &old->timeline.steps.items[step];
	const struct step *ours = &new->timeline.steps.items[step];

	for (unsigned p = 0; p < PHASES; p++) {
		size_t at = theirs->first, by = ours->first, count = count_spans(new, ours, p);

		if (count_spans(old, theirs, p) != count)
			continue;
		while (count-- > 0) {
			const struct span *a = next_of(old, p, &at), *b = next_of(new, p, &by);
			uint64_t apart = diff_apart(a->extent.peak, b->extent.peak);

			if (apart > out->apart)
				*out = (struct diff_spans){ a, b, apart };
		}
	}
}

struct diff_spans diff_furthest_apart(const struct diff_side *old, const struct diff_side *new)
{
	const struct steps *a = &old->timeline.steps, *b = &new->timeline.steps;
	struct diff_spans out = { 0 };

	for (size_t i = 0; i < a->count && i < b->count; i++)
		compare_step(&out, old, new, i);
	return out;
}

/* The maker of a block, by a name that both recordings have: the backward node, or the function of
 * the line. */
static uint64_t maker(struct diff_side *s, uint32_t stack, uint32_t node)
{
	const struct block b = { .stack = stack, .name = node };

	if (node)
		return map_hash_text(1, defs_string(&s->recording.defs, node).s);
	return map_hash_text(2, owners_find(&s->timeline.owners, &b).function);
}

/* Finds the highest moment between two events, and the highest one with blocks of that maker. */
struct search {
	struct diff_side *side;
	uint64_t from, to, maker;
	uint64_t bytes; /* after the latest change */
	struct found {
		uint64_t bytes, seq;
	} any, alike;
};

static void look_at_birth(struct search *s, const struct life_request *made,
			  const struct position *p, uint64_t seq)
{
	struct found now = { s->bytes, seq };

	if (seq < s->from)
		return;
	if (now.bytes > s->any.bytes || !s->any.seq)
		s->any = now;
	if (s->maker && !p->memory && now.bytes > s->alike.bytes &&
	    maker(s->side, made->stack, made->name) == s->maker)
		s->alike = now;
}

static void look_at_moment(struct search *s)
{
	const struct timeline *t = &s->side->timeline;
	const struct lives *l = &t->model.lives;
	struct lives_walk w;

	for (lives_walk_first(&w, l); w.change && w.now.seq <= s->to; lives_walk_next(&w)) {
		const struct life *life;
		const struct life_request *made;
		const struct position *p;

		chunks_rest(l->pool);
		if (w.change != CHANGE_BORN && w.change != CHANGE_DIED)
			continue;
		life = lives_at(l, w.now.life);
		made = lives_request(l, life);
		p = lives_position(l, life->born.position);
		if (p->device != t->device || !series_counts(&t->model, p))
			continue;
		if (w.now.seq > s->from && !s->any.seq)
			s->any = (struct found){ s->bytes, s->from };
		s->bytes += w.change == CHANGE_BORN ? made->size : -made->size;
		if (w.change == CHANGE_BORN)
			look_at_birth(s, made, p, w.now.seq);
		else if (w.now.seq >= s->from && !s->any.seq)
			s->any = (struct found){ s->bytes, w.now.seq };
	}
	if (!s->any.seq)
		s->any = (struct found){ s->bytes, s->from };
}

/* The similar moment if it is nearly as high, because either of two moments of about equal height
 * can be the peak. */
static uint64_t best_of(const struct search *s, uint64_t otherwise)
{
	if (s->alike.seq && (double)s->alike.bytes > 0.8 * (double)s->any.bytes)
		return s->alike.seq;
	return s->any.seq ? s->any.seq : otherwise;
}

/* Whether both began, peaked and ended with the same events: so far the runs are identical. */
static bool is_same(const struct extent *x, const struct extent *y)
{
	return x->first_seq == y->first_seq && x->last_seq == y->last_seq &&
	       x->peak_seq == y->peak_seq && x->peak == y->peak;
}

uint64_t diff_moment_like(struct diff_side *s, const struct span *span, struct diff_side *other,
			  uint64_t seq)
{
	const struct span *theirs =
		steps_span(&other->timeline.steps, &other->timeline.model.spans, seq);
	/* An optimizer allocates its state during its step, so the whole step is searched. */
	const double window = theirs && theirs->phase == PHASE_OPTIMIZER ? 1 : 0.1;
	struct search search = { .side = s };
	const struct extent *x, *y;
	double at, length;

	if (!span || !theirs)
		return s->peak_seq;
	x = &theirs->extent;
	y = &span->extent;
	if (is_same(x, y))
		return seq;
	at = x->last_seq > x->first_seq
		     ? (double)(seq - x->first_seq) / (double)(x->last_seq - x->first_seq)
		     : 0;
	length = (double)(y->last_seq - y->first_seq);
	search.from = y->first_seq + (uint64_t)(at > window ? (at - window) * length : 0);
	search.to = y->first_seq + (uint64_t)((at + window < 1 ? at + window : 1) * length);
	if (x->peak_seq == seq)
		search.maker = maker(other, x->peak_stack, x->peak_node);
	look_at_moment(&search);
	return best_of(&search, y->peak_seq);
}

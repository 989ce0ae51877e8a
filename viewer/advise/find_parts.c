/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loss computed in parts, with one backward pass for their sum: the graphs of all parts wait
 * for it. With a backward pass for each part, a part's graph would be freed before the next
 * part begins. A part ends where one line made a scalar again. Excluded are layers and steps
 * of a recurrent network: graphs of later parts save results of earlier ones, or parts have
 * weights of their own.
 */

#include "../base/ending.h"
#include "../base/sorted.h"
#include "advise.h"

#define LARGE (8 * LIVES_SMALL)

enum { FEWEST = 3, CANDIDATES = 8, PARTS = 1, LAYERS = 2 };

/* Blocks made between two backward passes. */
struct window {
	uint64_t from, until;	  /* events; until: begin of the backward pass, or the moment */
	const struct span *after; /* the backward pass; NULL = none so far */
	struct item {
		struct advised l;
		uint32_t part;
		uint64_t gone; /* when its graph released it; PLAN_END = it has not */
	} * items;
	size_t count, room;
	uint64_t *ends; /* events at which parts end; blocks after the last end belong to an
			   unfinished part */
	size_t parts, ends_room;
	struct map repeated; /* stack -> number of parts in which it made a large block */
};

struct search {
	struct advise *advise;
	struct window w;
	struct map lines; /* stack of a scalar -> PARTS (proved by a backward pass) or LAYERS */
	struct row_store taken; /* struct lives_retaken: when graphs saved weights */
	uint64_t parts;
};

static uint64_t gone_at(const struct advised *l)
{
	uint64_t released = l->course->released;

	return l->course->saved > released ? l->until : released;
}

static void collect(struct search *s, size_t *next)
{
	struct advise *a = s->advise;
	struct window *w = &s->w;
	struct advised l;

	w->count = 0;
	for (; *next < a->known_count; ++*next) {
		uint32_t life = a->known[*next];

		if (life >= a->lives->rows.count)
			return;
		if (lives_read(a->lives, life).from >= w->until)
			return;
		if (advise_life(a, life, CLASSES_THAT(ARE_OF_FORWARD), &l) && l.from > w->from &&
		    !stage_is_backward(l.born->stage))
			*need_item(w->items, w->count, w->room) =
				(struct item){ .l = l, .gone = gone_at(&l) };
	}
}

static bool is_small(const struct advised *l)
{
	return l->size <= LIVES_SMALL && !l->course->saved;
}

static bool is_reduction(struct search *s, const struct advised *l)
{
	const char *op = ops_find(s->advise, l)->name;

	return words_in(op, strlen(op), ONE_OF("loss", "entropy", "mean", "sum", "kl_div"));
}

static void cut(struct search *s, uint32_t stack)
{
	struct window *w = &s->w;

	w->parts = 0;
	for (size_t i = 0; i < w->count; i++) {
		struct item *x = &w->items[i];

		x->part = (uint32_t)w->parts;
		if (x->l.stack == stack && is_small(&x->l))
			*need_item(w->ends, w->parts, w->ends_room) = x->l.from;
	}
}

/* Finds the stacks that made a large block in each complete part. */
static void find_repeated(struct window *w)
{
	struct map latest = { 0 };

	map_free(&w->repeated);
	FOR_EACH (const struct item, x, w->items, w->count) {
		uint32_t *part = map_put(&latest, x->l.stack, NULL);

		if (x->l.size > LARGE && x->part < w->parts && *part <= x->part) {
			*part = x->part + 1;
			++*map_put(&w->repeated, x->l.stack, NULL);
		}
	}
	map_free(&latest);
}

static bool is_repeated(const struct window *w, const struct item *x)
{
	const uint32_t *parts = map_get(&w->repeated, x->l.stack);

	return x->l.size > LARGE && parts && *parts == w->parts;
}

/* The event of a row. Rows begin with it. */
static uint64_t seq_of_row(const struct row_store *rows, uint32_t row)
{
	uint64_t seq;

	memcpy(&seq, rows_at(rows, row), sizeof(seq));
	return seq;
}

/* First row of that event or of a later one. */
static uint32_t row_since(const struct row_store *rows, uint64_t seq)
{
	return (uint32_t)SORTED_FIRST(rows->count, i, seq_of_row(rows, (uint32_t)i) < seq);
}

COMPARE(by_life, struct item, ORDER(x->l.life, y->l.life))

/* A graph of a later part saves a block of an earlier one. */
static bool is_taken_later(const struct search *s)
{
	const struct row_store *rows = &s->advise->lives->retaken;
	const struct window *w = &s->w;

	FOR_EACH (const struct item, x, w->items, w->count)
		if (x->part < w->parts && x->l.course->saved > w->ends[x->part] &&
		    is_repeated(w, x))
			return true;
	for (uint32_t i = row_since(rows, w->from); i < rows->count; i++) {
		const struct lives_retaken *r = rows_at(rows, i);
		const struct item *x, of = { .l.life = r->life };

		if (r->seq >= w->until)
			break;
		x = bsearch(&of, w->items, w->count, sizeof(*x), by_life);
		if (x && x->part < w->parts && r->seq > w->ends[x->part] && is_repeated(w, x))
			return true;
	}
	return false;
}

static void find_taken(struct search *s)
{
	const struct advise *a = s->advise;
	struct lives_cursor c;
	struct advised l;

	rows_init(&s->taken, sizeof(struct lives_retaken), NULL);
	for (lives_first(&c, a->lives); c.change; chunks_rest(a->lives->pool), lives_next(&c))
		if (c.change == CHANGE_SAVED &&
		    advise_life(a, c.now.life, CLASS_BIT(parameters), &l) && l.size > LARGE &&
		    advise_leaf(a, &l))
			*(struct lives_retaken *)rows_add(&s->taken) =
				(struct lives_retaken){ c.now.seq, c.now.life };
}

/* A later part saves a weight that no earlier part used: the parts are layers. */
static bool has_own_weights(struct search *s)
{
	struct map first = { 0 };
	bool own = false;

	if (!s->taken.each)
		find_taken(s);
	for (uint32_t i = row_since(&s->taken, s->w.from); i < s->taken.count && !own; i++) {
		const struct lives_retaken *r = rows_at(&s->taken, i);

		if (r->seq >= s->w.until)
			break;
		own = map_add(&first, r->life) && r->seq > s->w.ends[0];
	}
	map_free(&first);
	return own;
}

/* After the parts a graph saves more than the sum of their scalars needs. Blocks of an unfinished
 * part were made in earlier parts, too, and do not count. */
static bool goes_on(const struct search *s)
{
	const struct window *w = &s->w;
	struct map seen = { 0 };
	bool found = false;

	FOR_EACH (const struct item, x, w->items, w->count)
		if (x->part < w->parts)
			map_put(&seen, x->l.stack, NULL);
		else if (x->l.course->saved && !map_get(&seen, x->l.stack))
			found = true;
	map_free(&seen);
	return found;
}

static bool holds_graphs(const struct search *s)
{
	const struct window *w = &s->w;
	uint32_t parts = 0;

	FOR_EACH (const struct item, x, w->items, w->count)
		if (x->part == parts && x->l.course->saved && is_repeated(w, x) &&
		    x->gone > w->ends[w->parts - 1])
			parts++;
	return parts >= w->parts;
}

/* Part after part went in the backward pass, or the moment is in it. */
static bool is_proven(const struct search *s)
{
	const struct window *w = &s->w;
	uint64_t end = w->after->extent.last_seq;

	if (goes_on(s))
		return false;
	return !ANY_OF(x, w->items, w->count,
		       x->l.course->saved && is_repeated(w, x) && x->gone > end &&
			       end < s->advise->until);
}

/* The program has results of parts, a loss of all of them may come. Variables of a loop have those
 * of the last part. */
static bool keeps_results(const struct search *s)
{
	const struct window *w = &s->w;

	return ANY_OF(x, w->items, w->count,
		      x->part + 1 < w->parts && x->l.until >= w->until && is_repeated(w, x) &&
			      !advise_in_graph(&x->l));
}

/* Nothing shows yet whether a backward pass comes: results that were made leaves tell so, and
 * scalars are summed up. */
static bool is_expected(struct search *s)
{
	const struct window *w = &s->w;
	bool sums = false, leaf = false;

	for (size_t i = 0; i < w->count; i++) {
		const struct advised *l = &w->items[i].l;

		if (is_small(l) && w->items[i].part && strstr(ops_find(s->advise, l)->name, "add"))
			sums = true;
		if (!w->items[i].part && advise_leaf(s->advise, l))
			leaf = true;
	}
	return sums && leaf && !keeps_results(s);
}

static bool are_parts(struct search *s, uint32_t stack)
{
	uint32_t *line = map_put(&s->lines, stack, NULL);

	cut(s, stack);
	find_repeated(&s->w);
	if (*line == LAYERS || s->w.parts < FEWEST || !holds_graphs(s))
		return false;
	if (is_taken_later(s) || has_own_weights(s)) {
		*line = LAYERS;
		return false;
	}
	if (!s->w.after)
		return *line == PARTS || is_expected(s);
	if (is_proven(s))
		*line = PARTS;
	return is_proven(s);
}

static struct map_slot *rarest(const struct map *times)
{
	struct map_slot *best = NULL;

	FOR_EACH (struct map_slot, x, times->slots, times->room)
		if (x->used && x->value >= FEWEST && (!best || x->value < best->value))
			best = x;
	return best;
}

/* The rarest of the lines that made scalars so: inside of a part others may come more often. */
static bool find_parts(struct search *s)
{
	struct window *w = &s->w;
	struct map times = { 0 };
	struct map_slot *best;
	bool found = false;

	for (size_t i = 0; i < w->count; i++)
		if (is_small(&w->items[i].l) && is_reduction(s, &w->items[i].l))
			++*map_put(&times, w->items[i].l.stack, NULL);
	for (unsigned i = 0; i < CANDIDATES && !found && (best = rarest(&times)); i++) {
		best->value = 0;
		found = are_parts(s, (uint32_t)best->key);
	}
	map_free(&times);
	return found;
}

/* The backward pass goes from the last part to the first: when it is done with each. */
static uint64_t *find_done(const struct search *s)
{
	const struct window *w = &s->w;
	uint64_t *done = need_new((w->parts + 2) * sizeof(*done));

	FOR_EACH (const struct item, x, w->items, w->count)
		if (x->l.course->saved && x->gone > done[x->part])
			done[x->part] = x->gone;
	return done;
}

/* Gradients are there since the first part's backward pass: those that are known, and where that is
 * not over, of each leaf that has none yet. */
static void with_gradients(struct search *s, struct finding *f)
{
	const struct advise *a = s->advise;
	const struct row_store *arrivals = &a->lives->arrivals;
	uint64_t begin = s->w.ends[0], until = s->w.until;
	struct map have = { 0 };

	for (uint32_t i = a->wanted_count ? 0 : row_since(arrivals, until); i < arrivals->count;
	     i++) {
		const struct lives_arrival *x = rows_at(arrivals, i);
		struct advised l;

		if (s->w.after && x->seq > s->w.after->extent.last_seq)
			break;
		if (!x->leaf || !advise_life(a, x->life, CLASS_BIT(gradients), &l) ||
		    x->seq > a->until || l.until < until)
			continue;
		if (l.from >= until)
			plan_with(&f->cautious, l.life, begin, l.from, l.size);
		*map_put(&have, x->leaf - 1, NULL) = 1;
	}
	ADVISE_EACH (a, UINT16_MAX, l)
		if (a->wanted_count && !l.wanted && advise_leaf(a, &l) && advise_counts(a, &l) &&
		    l.from <= begin && !map_get(&have, l.life))
			plan_with(&f->cautious, l.life, begin, PLAN_END, l.size);
	map_free(&have);
}

static void take_away(struct search *s, struct finding *f)
{
	struct advise *a = s->advise;
	struct window *w = &s->w;
	uint64_t *done = find_done(s);
	bool latest = w->items[w->count - 1].part == w->parts && !w->after;

	FOR_EACH (struct item, x, w->items, w->count) {
		uint64_t until = done[x->part + 1], from;

		if (x->part >= w->parts || !x->l.course->saved || !is_repeated(w, x) ||
		    (x->part + 1 == w->parts && !latest))
			continue;
		from = w->ends[x->part];
		until = latest || until > x->l.until ? x->l.until : until;
		plan_without(&f->plan, x->l.life, from, until, x->l.size);
		plan_without(&f->cautious, x->l.life, from, until, x->l.size);
		if (from > a->peak_seq || a->peak_seq >= until)
			continue;
		f->bytes += x->l.size;
		s->parts = w->parts;
		advise_name(a, f, &x->l);
	}
	with_gradients(s, f);
	free(done);
}

/* For a refusal only the last window counts. f NULL: learns about lines in all windows. */
static void look_at_window(struct search *s, struct finding *f)
{
	const struct advise *a = s->advise;
	bool last = !s->w.after || s->w.after->extent.last_seq >= a->until;

	if (find_parts(s) && f && (!a->wanted_count || last))
		take_away(s, f);
}

static void look_at_all(struct search *s, struct finding *f)
{
	const struct advise *a = s->advise;
	const struct spans *spans = &a->timeline->model.spans;
	size_t next = 0;

	s->w.from = 0;
	FOR_EACH (const struct span, x, spans->items, spans->count) {
		if (x->extent.first_seq > a->until ||
		    (x->phase != PHASE_BACKWARD && x->phase != PHASE_OPTIMIZER))
			continue;
		s->w.until = x->extent.first_seq;
		s->w.after = x;
		collect(s, &next);
		if (x->phase == PHASE_BACKWARD && s->w.count)
			look_at_window(s, f);
		s->w.from = x->extent.last_seq;
	}
	s->w.until = a->until;
	s->w.after = NULL;
	collect(s, &next);
	if (a->wanted_count && s->w.count && s->w.from < a->until)
		look_at_window(s, f);
}

void advise_backward_each(struct advise *a)
{
	struct search s = { .advise = a };
	struct finding *f = advise_add(a, "backward_each");

	f->range = true;
	look_at_all(&s, NULL);
	look_at_all(&s, f);
	advise_put(f->how,
		   "%s %s in the graphs of %zu parts that no later part uses. The gradients "
		   "that then come with the first part are counted",
		   B(f->bytes), a->when, (size_t)s.parts);
	map_free(&s.w.repeated);
	map_free(&s.lines);
	if (s.taken.each)
		rows_free(&s.taken);
	free(s.w.items);
	free(s.w.ends);
}

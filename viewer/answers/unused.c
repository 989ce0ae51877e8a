/* SPDX-License-Identifier: Apache-2.0 */
#include "unused.h"

#include "../base/human.h"
#include "../model/optimizers.h"

/* A block at whose weights gradients arrived. */
struct weight {
	uint32_t life, stack;
	uint64_t size, born, first, last; /* first, last: arrivals */
	uint64_t leaf, saved;		  /* when a graph took it last, as what */
	size_t from_step, to_step;
	bool there;	 /* as a parameter */
	bool idle, over; /* over: shown to be unused */
	bool left;	 /* out of the latest graph, and that is all that shows it */
};

/* The optimizer that one line calls. */
struct site {
	struct owner owner;
	uint32_t name;
	uint64_t first, first_end, last; /* events of its first and latest steps */
	bool over;			 /* another took its place */
};

/* A step in which weights were trained. */
struct trained {
	uint64_t results; /* of a forward pass, 1 more; 0: not counted yet */
	uint64_t bare;	  /* of these: that no graph ever saved */
	bool by_old;	  /* all its optimizers are over */
	bool used;	  /* weights that it trained first are in use or gone */
	uint64_t last;	  /* arrival at one of them */
};

struct search {
	struct timeline *timeline;
	const struct snapshot *shot;
	struct unused *out;
	struct map ids;	      /* life -> index */
	struct map gradients; /* life that is there -> 1 + index of its weight, 0 = none */
	struct map latest;    /* stack -> index of the weight that it made last */
	struct map births;    /* event -> index of the weight that was made then */
	struct map state;     /* step and size -> blocks of state that were found to be unused */
	struct weight *items;
	size_t count, room;
	struct site *sites;
	size_t site_count, site_room;
	MAP_OF(struct trained) steps;
	size_t step;				    /* of the latest arrival */
	uint64_t newest, used_first, trained_first; /* of its graph */
	bool left;				    /* it leaves some out */
};

static const struct lives *lives_of(const struct search *s)
{
	return &s->timeline->model.lives;
}

static void add_weight(struct search *s, struct weight *w, uint32_t life)
{
	const struct life *row = lives_at(lives_of(s), life);
	const struct life_request *request = lives_request(lives_of(s), row);

	*w = (struct weight){ .life = life,
			      .stack = request->stack,
			      .size = request->size,
			      .born = lives_seq(lives_of(s), &row->born) };
	*map_put(&s->births, w->born, NULL) = (uint32_t)(w - s->items);
}

/* Gradients also arrive at inputs and at what checkpointing cuts a graph at. */
static void find_parameters(struct search *s)
{
	FOR_EACH (const struct block, b, s->shot->moment.blocks, s->shot->moment.count) {
		const uint32_t *at = b->life ? map_get(&s->ids, b->life) : NULL;

		if (at)
			s->items[*at].there = b->category == CATEGORY_parameters;
	}
}

static void read_arrivals(struct search *s)
{
	const struct row_store *arrivals = &lives_of(s)->arrivals;
	const struct steps *steps = &s->timeline->steps;

	for (uint32_t i = 0; i < arrivals->count; i++, chunks_rest(lives_of(s)->pool)) {
		const struct lives_arrival *a = rows_at(arrivals, i);
		struct weight *w;
		uint32_t *of;

		if (a->seq > s->shot->moment.seq)
			break;
		s->step = steps_at(steps, a->seq);
		if (!a->leaf)
			continue;
		w = map_item(s, a->leaf);
		if (!w->first) {
			add_weight(s, w, a->leaf - 1);
			w->first = a->seq;
			w->from_step = s->step;
			*map_put(&s->latest, w->stack, NULL) = (uint32_t)(w - s->items);
		}
		w->last = a->seq;
		w->to_step = s->step;
		if ((of = map_get(&s->gradients, a->life)))
			*of = 1 + (uint32_t)(w - s->items);
	}
}

/* Results that a forward pass of the step makes, for each backward pass. */
static void count_results(const struct search *s, size_t step, struct trained *of)
{
	const struct step *x = &s->timeline->steps.items[step];
	uint64_t made = 0, bare = 0, backwards = 0;

	for (size_t i = x->first; i <= x->last && i < s->timeline->model.spans.count; i++) {
		const struct span *span = &s->timeline->model.spans.items[i];
		uint32_t n = lives_born_by(lives_of(s), span->extent.last_seq);

		backwards += span->phase == PHASE_BACKWARD;
		if (span->phase != PHASE_FORWARD)
			continue;
		for (uint32_t l = lives_born_by(lives_of(s), span->extent.first_seq - 1); l < n;
		     l++) {
			const struct life *row = lives_at(lives_of(s), l);
			const struct position *p = lives_position(lives_of(s), row->born.position);

			if (p->stage != STAGE_FORWARD || p->layer != LIFE_BLOCK)
				continue;
			made++;
			bare += !lives_facts(lives_of(s), row).save_ns;
		}
	}
	backwards = backwards ? backwards : 1;
	of->results = made / backwards + 1;
	of->bare = bare / backwards;
}

/* The line makes a model for each fold or trial, and a later one is trained; where weights that
 * were trained with it are too, it may be a head for each task. */
static bool is_replaced(const struct search *s, const struct weight *w)
{
	const struct weight *next = &s->items[*map_get(&s->latest, w->stack)];

	return next->born > w->last;
}

static struct site *site_of(struct search *s, const struct span *x)
{
	struct block b = { .stack = x->stack };
	struct owner owner = owners_find(&s->timeline->owners, &b);

	for (size_t i = 0; i < s->site_count; i++)
		if (s->sites[i].name == x->name && owners_same(&s->sites[i].owner, &owner))
			return &s->sites[i];
	*need_item(s->sites, s->site_count, s->site_room) =
		(struct site){ .owner = owner,
			       .name = x->name,
			       .first = x->extent.first_seq,
			       .first_end = x->extent.last_seq };
	return &s->sites[s->site_count - 1];
}

static const struct span *span_at(const struct search *s, uint64_t seq)
{
	const struct spans *all = &s->timeline->model.spans;
	size_t n = all->count ? extents_begun(&all->items->extent, sizeof(*all->items), all->count,
					      seq)
			      : 0;

	return n && all->items[n - 1].phase == PHASE_OPTIMIZER ? &all->items[n - 1] : NULL;
}

/* Weights that the one trained go on being trained by the other. */
static bool takes_over(const struct search *s, const struct site *from, const struct site *to)
{
	return ANY_OF(x, s->items, s->count,
		      x->there && x->first <= from->last &&
			      x->to_step >= steps_at(&s->timeline->steps, to->first));
}

/* It made the state of all weights that were trained then: of none of them another keeps it. */
static bool makes_all_state(const struct search *s, const struct site *site)
{
	char name[OPTIMIZER_NAME];
	size_t step = steps_at(&s->timeline->steps, site->first);
	uint64_t trained =
		SUM_OF(x, s->items, s->count, x->there && x->to_step >= step ? x->size : 0);
	uint64_t made = SUM_OF(b, s->shot->moment.blocks, s->shot->moment.count,
			       b->category == CATEGORY_optimizer_state && b->seq >= site->first &&
					       b->seq <= site->first_end
				       ? b->size
				       : 0);
	int tensors = optimizer_tensors(
		optimizer_name(defs_string(s->timeline->model.defs, site->name).s, name));

	return tensors > 0 && trained && made >= (uint64_t)tensors * trained / 20 * 19;
}

static void find_sites(struct search *s)
{
	const struct spans *all = &s->timeline->model.spans;

	FOR_EACH (const struct span, x, all->items, all->count) {
		if (x->extent.first_seq > s->shot->moment.seq)
			break;
		if (x->phase == PHASE_OPTIMIZER && x->stack)
			site_of(s, x)->last = x->extent.last_seq;
	}
	FOR_EACH (struct site, x, s->sites, s->site_count)
		for (struct site *next = x + 1; next < s->sites + s->site_count; next++)
			x->over |= next->first > x->last && takes_over(s, x, next) &&
				   makes_all_state(s, next);
}

static bool is_by_old(struct search *s, size_t number)
{
	const struct step *step = &s->timeline->steps.items[number];
	bool old = false;

	for (size_t i = step->first; i <= step->last && i < s->timeline->model.spans.count; i++) {
		const struct span *x = &s->timeline->model.spans.items[i];

		if (x->phase != PHASE_OPTIMIZER)
			continue;
		if (!x->stack || !site_of(s, x)->over)
			return false;
		old = true;
	}
	return old;
}

static struct trained *trained_in(struct search *s, size_t step)
{
	struct trained *x = map_item(&s->steps, step);

	if (!x->results) {
		count_results(s, step, x);
		x->by_old = is_by_old(s, step);
	}
	return x;
}

/* When a graph took each weight last. */
static void find_uses(struct search *s)
{
	const struct model *m = &s->timeline->model;
	struct lives_cursor c;
	const uint32_t *at;

	FOR_EACH (const struct model_leaf, x, m->leaves.items, m->leaves.count) {
		at = x->seq ? map_get(&s->births, x->seq) : NULL;
		if (at && x->used > s->items[*at].leaf)
			s->items[*at].leaf = x->used;
	}
	for (lives_first(&c, lives_of(s)); c.change; lives_next(&c)) {
		at = c.change == CHANGE_SAVED ? map_get(&s->ids, c.now.life + 1) : NULL;
		if (at)
			s->items[*at].saved = c.now.seq;
	}
}

/* Three facts about the latest graph: its newest weight that no earlier step used; the earliest
 * first use of its weights; and the same of its weights recorded again as leaves, as all weights
 * trained with them would have been. */
static void find_latest_graph(struct search *s)
{
	uint64_t begin = s->timeline->steps.items[s->step].extent.first_seq;

	s->used_first = s->trained_first = UINT64_MAX;
	FOR_EACH (const struct weight, w, s->items, s->count) {
		bool leaf = w->leaf >= begin && w->leaf <= s->shot->moment.seq;
		bool used = leaf || w->last >= begin || w->saved >= begin;

		if (!w->there)
			continue;
		if (leaf && w->first < s->trained_first)
			s->trained_first = w->first;
		if (used && w->first < s->used_first)
			s->used_first = w->first;
		if (w->from_step == s->step && w->born > s->newest &&
		    model_signs(&s->timeline->model, w->stack) & STACK_PARAM)
			s->newest = w->born;
	}
}

/* No pass goes through so many weights without a graph: it makes results for them, of which most
 * are not saved. A layer has a weight and a bias, or the weight alone. */
static bool is_without(struct search *s, const struct weight *w, size_t weights)
{
	const struct trained now = *trained_in(s, s->step), *then = trained_in(s, w->to_step);

	return now.results + weights / 2 <= then->results && now.bare <= then->bare;
}

static bool is_over(struct search *s, const struct weight *w, size_t idle)
{
	if (!w->idle)
		return false;
	return (is_replaced(s, w) && s->used_first > w->last && is_without(s, w, 0)) ||
	       (trained_in(s, w->to_step)->by_old && is_without(s, w, idle));
}

static bool is_left_out(const struct search *s, const struct weight *w)
{
	return w->idle && w->leaf <= w->last && w->saved <= w->last && s->newest > w->last &&
	       s->trained_first <= w->last;
}

static void find_weights(struct search *s)
{
	size_t idle = 0, left = 0;

	FOR_EACH (struct weight, w, s->items, s->count) {
		w->idle = w->there && w->to_step && w->to_step < s->step;
		idle += w->idle && trained_in(s, w->to_step)->by_old;
		left += w->idle;
	}
	if (left) {
		find_uses(s);
		find_latest_graph(s);
	}
	left = 0;
	FOR_EACH (struct weight, w, s->items, s->count)
		left += w->left = is_left_out(s, w);
	FOR_EACH (struct weight, w, s->items, s->count) {
		struct trained *first;
		bool over = is_over(s, w, idle);

		w->left = !over && w->left && is_without(s, w, left);
		w->over = over || w->left;
		s->left |= w->left;
		first = trained_in(s, w->from_step);
		first->used |= !w->over;
		first->last = w->last > first->last ? w->last : first->last;
	}
}

/* The state that an optimizer made for weights which are unused, all of them; or that of an
 * optimizer in whose place another works. */
static uint64_t state_over(struct search *s, const struct block *b)
{
	const struct span *span = span_at(s, b->seq);
	const struct trained *first;

	if (!span)
		return 0;
	if (span->stack && site_of(s, span)->over)
		return site_of(s, span)->last;
	first = trained_in(s, steps_at(&s->timeline->steps, b->seq));
	return first->used ? 0 : first->last;
}

/* State of weights that are left out, if their optimizer's first step kept just so many blocks of
 * that size: no matter which, they are alike. Returns the last use of one such weight. */
static uint64_t state_left(struct search *s, const struct block *b)
{
	size_t step = steps_at(&s->timeline->steps, b->seq), of = 0, left = 0, kept = 0;
	const struct span *span = span_at(s, b->seq);
	char name[OPTIMIZER_NAME];
	uint64_t last = 0;
	int tensors = span ? optimizer_tensors(optimizer_name(
				     defs_string(s->timeline->model.defs, span->name).s, name))
			   : 0;

	FOR_EACH (const struct weight, w, s->items, s->count) {
		if (!w->there || w->from_step != step || w->size != b->size)
			continue;
		of++;
		left += w->left;
		last = w->left && w->last > last ? w->last : last;
	}
	if (tensors <= 0 || !left)
		return 0;
	FOR_EACH (const struct block, other, s->shot->moment.blocks, s->shot->moment.count)
		kept += other->category == CATEGORY_optimizer_state && other->size == b->size &&
			span_at(s, other->seq) == span;
	if (kept != (size_t)tensors * of ||
	    (*map_put(&s->state, step << 44 ^ b->size, NULL))++ >= (size_t)tensors * left)
		return 0;
	return last;
}

/* left: only out of the latest graph. */
static uint64_t over_since(struct search *s, size_t i, bool *left)
{
	const struct block *b = &s->shot->moment.blocks[i];
	uint32_t life = b->life;
	const uint32_t *at = life ? map_get(&s->ids, life) : NULL;
	uint32_t of = at ? 1 + *at : life ? *map_get(&s->gradients, life - 1) : 0;
	uint64_t since;

	*left = of ? s->items[of - 1].left : false;
	if (of)
		return s->items[of - 1].over ? s->items[of - 1].last : 0;
	if (b->category != CATEGORY_optimizer_state)
		return 0;
	since = state_over(s, b);
	*left = !since;
	return since || !s->left ? since : state_left(s, b);
}

static void collect(struct search *s)
{
	struct unused *u = s->out;

	for (size_t i = 0; i < s->shot->moment.count; i++) {
		const struct block *b = &s->shot->moment.blocks[i];
		size_t step;
		bool left;

		u->since[i] = over_since(s, i, &left);
		if (!u->since[i])
			continue;
		u->left += left ? b->size : 0;
		step = steps_at(&s->timeline->steps, u->since[i]);
		u->step = step > u->step ? step : u->step;
		u->bytes += b->size;
		u->classes[b->category] += b->size;
		holders_add(&u->holders, b->category, owners_find(&s->timeline->owners, b),
			    b->size);
	}
	holders_sort(&u->holders);
}

void unused_find(struct unused *u, struct timeline *t, const struct snapshot *shot)
{
	struct search s = { .timeline = t, .shot = shot, .out = u };

	*u = (struct unused){ .since = need_new((shot->moment.count + 1) * sizeof(*u->since)) };
	for (size_t i = 0; i < shot->moment.count; i++)
		map_put(&s.gradients, shot->moment.blocks[i].life - 1ull, NULL);
	read_arrivals(&s);
	if (s.step && t->steps.count > 1) {
		find_parameters(&s);
		find_sites(&s);
		find_weights(&s);
		collect(&s);
	}
	map_items_free(&s);
	map_free(&s.gradients);
	map_free(&s.latest);
	map_free(&s.births);
	map_free(&s.state);
	map_items_free(&s.steps);
	free(s.sites);
}

void unused_at_end(struct unused *u, struct timeline *t)
{
	size_t n = steps_number(&t->steps);
	struct snapshot shot;

	while (n && !t->steps.items[n].ended)
		n--;
	if (!n || t->device < 0)
		return;
	snapshot_take(&shot, t, t->steps.items[n].extent.last_seq);
	unused_find(u, t, &shot);
	moment_free(&shot.moment);
}

void unused_free(struct unused *u)
{
	free(u->since);
	free(u->holders.items);
	*u = (struct unused){ 0 };
}

const char *unused_words(const struct unused *u, char *buf, size_t room)
{
	buf[0] = 0;
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (u->classes[c])
			text_add(buf, room, "%s%s %s", buf[0] ? ", " : "", categories[c].words,
				 B(u->classes[c]));
	return buf;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules that one line calls one after the other (the layers of a model), each checkpointed: of a
 * call only its input and what others save of it stay after it, and while backward goes through it
 * its inside is there again, made anew with all its temporaries. An input that is not saved today
 * stays longer then. The largest saving of all such modules is shown. Where a method only hands on
 * to one other, again and again, its calls cannot be told from turns of a loop in it.
 */

#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "advise.h"

enum { LOOK_BACK = 64, LOOK_AHEAD = 4096, SMALL = 4096 };

struct inside {
	uint32_t life, stack;
	uint64_t outside;
	bool begins; /* a call */
};

/* A module's class at one place, and its saved blocks in order of birth. */
struct site {
	uint64_t key, bytes; /* bytes at the peak */
	const char *function;
	uint64_t next;	/* the method that it leads to, if that is the same each time */
	bool many;	/* it is not */
	bool calls;	/* it leads to one at all */
	bool outermost; /* nothing calls it */
	struct inside *items;
	size_t count, room;
};

struct search {
	struct advise *advise;
	struct map ids;	   /* key -> index */
	struct map firsts; /* a site and what is outside of it -> the stack of its first block, */
	struct map opens;  /* the same of the first that is made there, saved or not */
	struct site *items;
	size_t count, room;
	uint64_t *deaths; /* of saved blocks, in order */
	size_t death_count, death_room;
	struct map inputs;	    /* of calls: lives that stay */
	const struct span *forward; /* that the peak lies in, or NULL */
};

static struct site *site_of(struct search *s, const struct site_path *p, size_t i)
{
	const struct site_of_stack *of = &p->items[i];
	struct site *site = map_item(s, of->key);
	uint64_t next = i + 1 < p->count ? of[1].key : 0;

	site->calls |= next != 0;
	site->outermost |= !i;
	site->many |= !next || (site->next && site->next != next);
	site->next = next;
	site->key = of->key;
	site->function = of->function;
	return site;
}

static bool is_inside(const struct advised *l)
{
	return l->born->stage == STAGE_FORWARD && l->course->saved;
}

/* A call begins where the line comes (again) that made the first block of those from the same
 * place, and where another place calls. A call may make several there. */
static void add_inside(struct search *s, struct site *site, const struct advised *l,
		       uint64_t outside)
{
	const struct inside *before = site->count ? &site->items[site->count - 1] : NULL;
	bool begins = !before || before->outside != outside;
	uint32_t first = map_known(&s->firsts, site->key ^ outside, l->stack);

	begins |= l->stack == first && before && before->stack != l->stack;
	*need_item(site->items, site->count, site->room) =
		(struct inside){ l->life, l->stack, outside, begins };
}

/* Inside of another of its class, as PEFT's Linear around nn.Linear: that one is checkpointed. */
static bool is_nested(const struct site_path *p, size_t i)
{
	return ANY_OF(x, p->items, i, !strcmp(x->function, p->items[i].function));
}

static void collect(struct search *s)
{
	struct advise *a = s->advise;

	ADVISE_EACH (a, CLASS_BIT(activations), l) {
		struct site_path p = { 0 };

		if (is_inside(&l))
			p = sites_find(a, l.stack);
		for (size_t i = 0; i < p.count; i++) {
			struct site *site = is_nested(&p, i) ? NULL : site_of(s, &p, i);

			if (!site)
				continue;
			add_inside(s, site, &l, p.items[i].outside);
			if (advise_counts(a, &l))
				site->bytes += l.size;
		}
	}
}

static struct advised of(const struct search *s, uint32_t life)
{
	struct advised l = { 0 };

	advise_life(s->advise, life, UINT16_MAX, &l);
	return l;
}

static unsigned own_line(struct search *s, const struct site *site, size_t i)
{
	struct site_path p = sites_find(s->advise, site->items[i].stack);

	for (size_t k = 0; k < p.count; k++)
		if (p.items[k].key == site->key)
			return p.items[k].line;
	return 0;
}

/* Most calls come to further lines of the method, where a loop in it would stay at its line. */
static bool goes_on(struct search *s, const struct site *site, size_t calls)
{
	size_t further = 0;
	unsigned first = 0;
	bool seen = true;

	for (size_t i = 0; i < site->count; i++) {
		unsigned line = own_line(s, site, i);

		if (site->items[i].begins) {
			first = line;
			seen = false;
		} else if (!seen && line != first) {
			further++;
			seen = true;
		}
	}
	return 4 * further >= 3 * calls;
}

/* Lines that come less often than calls from their place are around the calls, not inside: then it
 * is no module that repeats. */
static size_t calls_of(struct search *s, const struct site *site)
{
	struct map counts = { 0 }, begins = { 0 };
	uint64_t around = 0, all = 0;
	size_t calls = 0;
	bool alone;

	FOR_EACH (const struct inside, l, site->items, site->count) {
		++*map_put(&counts, l->stack, NULL);
		*map_put(&begins, l->outside, NULL) += l->begins;
		calls += l->begins;
	}
	FOR_EACH (const struct inside, l, site->items, site->count) {
		uint64_t size = of(s, l->life).size;

		all += size;
		if (*map_get(&counts, l->stack) + 1 < *map_get(&begins, l->outside))
			around += size;
	}
	alone = counts.count == begins.count; /* one line of each place: its turns are not known */
	map_free(&counts);
	map_free(&begins);
	return alone || (around > all / 50 && !goes_on(s, site, calls)) ? 1 : calls;
}

/* It calls no other module, and of each call stay but one or two large results: checkpointed, it
 * would keep as much. Several of one stack may be of several calls. */
static bool is_operator(const struct search *s, const struct site *site)
{
	size_t calls = 0, large = 0;
	struct map stacks = { 0 };
	bool fresh;

	for (size_t i = 0, next; i < site->count && !site->calls; i = next) {
		uint64_t most = 0;

		for (next = i; next < site->count && (next == i || !site->items[next].begins);
		     next++)
			most = arithmetic_most(most, of(s, site->items[next].life).size);
		for (size_t k = i; k < next; k++)
			if (of(s, site->items[k].life).size >= most / 8)
				large += (map_put(&stacks, site->items[k].stack, &fresh), fresh);
		map_free(&stacks);
		calls++;
	}
	return large < 3 * calls;
}

/* A call: its saved blocks are items[first] to items[last]. */
struct call {
	const struct site *site;
	size_t first, last;
	uint32_t begin;	      /* the first block that it made, saved or not */
	struct advised input; /* its size is 0 if none is known */
	uint64_t end, let_go; /* when it was through; when its first block went */
	uint64_t first_gone;  /* the same if backward let it go: then it is computed again */
};

/* While the inside is computed: the most that is there of it beyond what is saved. */
static uint64_t most_inside(struct search *s, const struct call *c)
{
	struct plan_change *list = NULL;
	size_t n = 0, room = 0;
	uint64_t most = 0;
	int64_t now = 0;

	for (uint32_t i = c->begin; i <= c->site->items[c->last].life; i++) {
		struct advised l;

		if (!advise_life(s->advise, i, UINT16_MAX, &l) ||
		    !sites_has(s->advise, l.stack, c->site->key))
			continue;
		*need_item(list, n, room) = (struct plan_change){ l.until, (int64_t)l.size, i };
		now += (int64_t)l.size;
		for (size_t k = 0; k < n; k++)
			if (list[k].bytes && list[k].seq <= l.from) {
				now -= list[k].bytes;
				list[k].bytes = 0;
			}
		most = (uint64_t)now > most ? (uint64_t)now : most;
	}
	free(list);
	return most;
}

/* When backward came to it: when the last saved block before its own was let go. */
static uint64_t begins_again(const struct search *s, uint64_t first_gone)
{
	size_t n = SORTED_FIRST(s->death_count, i, s->deaths[i] < first_gone);

	return n ? s->deaths[n - 1] : 0;
}

/* It stays: the next call, something behind the call, or the program has it. */
static bool is_output(const struct search *s, const struct call *c, const struct advised *l)
{
	return l->course->saved > c->end || map_get(&s->inputs, l->life) ||
	       advise_held(s->advise, l);
}

/* When the operator that saved it last has made its result: where nothing is saved it goes then,
 * unless the method still holds it. */
static uint64_t after_use(const struct search *s, const struct advised *l)
{
	const struct lives *all = s->advise->lives;
	uint32_t next = lives_born_by(all, l->course->saved);

	return next < all->rows.count ? lives_read(all, next).from + 1 : PLAN_END;
}

/* The forward pass is at work: autocast may hold a weight that it converted until that ends. */
static bool is_cached_cast(struct search *s, const struct advised *l)
{
	return s->forward && l->from >= s->forward->extent.first_seq &&
	       advise_is_cast(s->advise->timeline, &s->advise->casts, l->stack, l->from);
}

/* early: the inside stays to the end of the call, and is there again as soon as all before it is
 * let go, with all its temporaries; else when its own first block is. */
static void checkpoint_call(struct search *s, struct life_plan *p, const struct call *c, bool early)
{
	uint64_t again = PLAN_END, inside = 0, most = most_inside(s, c);

	if (c->first_gone != PLAN_END && early)
		again = begins_again(s, c->first_gone);
	if (!early || again <= c->end)
		again = c->first_gone;
	for (size_t i = c->first; i <= c->last; i++) {
		struct advised l = of(s, c->site->items[i].life);

		if (is_output(s, c, &l) || (early && is_cached_cast(s, &l)))
			continue;
		plan_without(p, l.life, early ? c->end : arithmetic_least(c->end, after_use(s, &l)),
			     arithmetic_least(again, l.until), l.size);
		inside += l.until > again ? l.size : 0;
	}
	if (c->input.size && c->input.until < c->let_go)
		plan_with(p, c->input.life, c->input.until, c->let_go, c->input.size);
	if (early && again != PLAN_END && most > inside)
		plan_with(p, c->site->items[c->first].life, again, again + 1, most - inside);
}

/* What was refused was asked for inside of the latest call: its inside has to be there. */
static bool is_running(struct search *s, const struct site *site)
{
	const struct advised *w = s->advise->wanted;

	return s->advise->wanted_count && w->born->stage == STAGE_FORWARD &&
	       sites_has(s->advise, w->stack, site->key);
}

/* The call's input: the latest block that a pass made before it and that is alive then. */
static struct advised input_of(struct search *s, uint32_t first)
{
	struct advised begin = of(s, first), l;

	for (uint32_t i = first; i-- > 0 && first - i <= LOOK_BACK;)
		if (advise_life(s->advise, i, CLASSES_THAT(ARE_OF_FORWARD), &l) &&
		    l.until > begin.from && !stage_is_backward(l.born->stage) && l.size >= SMALL)
			return l;
	return (struct advised){ 0 };
}

/* A block that was made there in that pass. */
static bool is_made_inside(struct search *s, uint64_t key, uint32_t pass, const struct advised *l)
{
	return l->born->stage == STAGE_FORWARD && l->born->forwards == pass &&
	       sites_has(s->advise, l->stack, key);
}

/* Of the first block that was made in the first call, saved or not. */
static uint32_t opening_stack(struct search *s, const struct site *site, uint64_t outside)
{
	struct advised first =
		of(s, FIRST_OF(x, site->items, site->count, x->outside == outside)->life);
	uint32_t stack = first.stack;
	struct advised l;

	for (uint32_t i = first.life; i-- > 0 && first.life - i <= LOOK_BACK;) {
		if (!advise_life(s->advise, i, FORWARD_RESULTS, &l))
			continue;
		if (!is_made_inside(s, site->key, first.born->forwards, &l))
			break;
		stack = l.stack;
	}
	return stack;
}

/* The first block of a call, saved or not, behind the saved blocks of the call before. */
static uint32_t begin_of(struct search *s, const struct site *site, size_t at)
{
	const struct inside *x = &site->items[at];
	uint64_t key = site->key ^ x->outside;
	uint32_t stack = map_known(&s->opens, key, opening_stack(s, site, x->outside));
	uint32_t i = at ? site->items[at - 1].life + 1 : 0;
	struct advised first = of(s, x->life), l;

	for (i = x->life > LOOK_BACK + i ? x->life - LOOK_BACK : i; i < x->life; i++)
		if (advise_life(s->advise, i, FORWARD_RESULTS, &l) && l.stack == stack &&
		    is_made_inside(s, site->key, first.born->forwards, &l))
			return i;
	return x->life;
}

/* The last block that was made inside of it, saved or not. A block from elsewhere ends the call:
 * those behind it are of the next one. */
static uint64_t end_of(struct search *s, const struct site *site, const struct call *c, size_t next)
{
	uint32_t last = site->items[c->last].life,
		 stop = next < site->count ? begin_of(s, site, next) : advise_lives(s->advise);
	uint32_t pass = of(s, last).born->forwards;
	uint64_t end = of(s, last).from;
	struct advised l;

	for (uint32_t i = last + 1; i < stop && i - last <= LOOK_AHEAD; i++) {
		if (advise_life(s->advise, i, UINT16_MAX, &l)) {
			if (!is_made_inside(s, site->key, pass, &l))
				break;
			end = l.from;
		}
	}
	return end + 1;
}

static struct call call_at(struct search *s, const struct site *site, size_t first, size_t *next)
{
	struct call c = {
		.site = site, .first = first, .let_go = PLAN_END, .first_gone = PLAN_END
	};

	for (*next = first + 1; *next < site->count && !site->items[*next].begins;)
		++*next;
	c.last = *next - 1;
	c.begin = begin_of(s, site, first);
	c.end = end_of(s, site, &c, *next);
	c.input = input_of(s, c.begin);
	for (size_t k = first; k <= c.last; k++) {
		struct advised l = of(s, site->items[k].life);

		if (l.until >= c.let_go || l.until <= c.end)
			continue;
		c.let_go = l.until;
		c.first_gone = advise_by_backward(s->advise, &l) ? l.until : PLAN_END;
	}
	return c;
}

static void checkpoint_site(struct search *s, const struct site *site, struct life_plan *p,
			    bool early)
{
	for (size_t i = 0, next; i < site->count; i = next) {
		struct call c = call_at(s, site, i, &next);

		if (c.input.size)
			map_put(&s->inputs, c.input.life, NULL);
	}
	for (size_t i = 0, next; i < site->count; i = next) {
		struct call c = call_at(s, site, i, &next);

		if (next < site->count || !is_running(s, site))
			checkpoint_call(s, p, &c, early);
	}
	map_free(&s->inputs);
}

/* The network itself: each call is a whole pass, and all of its inside is there again in backward.
 */
static bool is_network(struct search *s, const struct site *site)
{
	size_t calls = 0, passes = 0;
	uint32_t pass = 0;

	for (size_t i = 0; i < site->count; i++) {
		uint32_t of_call = of(s, site->items[i].life).born->forwards;

		calls += site->items[i].begins;
		passes += !passes || of_call != pass;
		pass = of_call;
	}
	return site->outermost && calls <= passes;
}

static bool repeats(struct search *s, const struct site *site)
{
	return site->many && !layers_is_container(site->function) && calls_of(s, site) > 1 &&
	       !is_operator(s, site) && !is_network(s, site);
}

static bool is_within(struct search *s, const struct site *inner, const struct site *outer)
{
	struct site_path p = sites_find(s->advise, inner->items->stack);
	const struct site_of_stack *first =
		FIRST_OF(x, p.items, p.count, x->key == inner->key || x->key == outer->key);

	return inner != outer && first && first->key == outer->key;
}

/* Nearly all that it saves is of a module inside of it that is called as often: what looks like its
 * calls may be turns of a loop over that one. */
static bool is_around(struct search *s, const struct site *site)
{
	return ANY_OF(x, s->items, s->count,
		      x->bytes >= site->bytes / 50 * 49 && is_within(s, x, site) &&
			      calls_of(s, x) >= calls_of(s, site) && repeats(s, x));
}

/* A class of modules is checkpointed wherever it is called. */
static bool is_of_class(struct search *s, const struct site *site, const char *function)
{
	return !strcmp(site->function, function) && repeats(s, site) && !is_around(s, site);
}

static void look_at(struct search *s, const char *function)
{
	struct advise *a = s->advise;
	size_t calls = 0, steps = a->steps;
	struct finding *f;
	uint64_t bytes = 0;
	char name[64];

	for (size_t i = 0; i < s->count; i++) {
		bool same = is_of_class(s, &s->items[i], function);

		calls += same ? calls_of(s, &s->items[i]) : 0;
		bytes += same ? s->items[i].bytes : 0;
	}
	if (calls < 2 * steps || bytes < a->peak / 50)
		return;
	f = advise_add(a, "checkpoint");
	f->range = f->about = true;
	for (size_t i = 0; i < s->count; i++)
		if (is_of_class(s, &s->items[i], function)) {
			checkpoint_site(s, &s->items[i], &f->plan, false);
			checkpoint_site(s, &s->items[i], &f->cautious, true);
		}
	sites_class(function, name, sizeof(name));
	advise_put(f->what,
		   "Checkpoint %s (torch.utils.checkpoint): only the input of each call is kept, "
		   "and the call is computed again in backward",
		   name);
	advise_put(f->how,
		   "%s saved for backward inside it %s. A call's activations "
		   "and temporaries are counted again as soon as backward reaches it",
		   B(bytes), a->when);
}

void advise_checkpoint(struct advise *a)
{
	const struct timeline *t = a->timeline;
	const struct span *at = steps_span(&t->steps, &t->model.spans, a->peak_seq);
	struct search s = { .advise = a, .forward = at && span_is_forward(at) ? at : NULL };

	collect(&s);
	ADVISE_EACH (a, CLASS_BIT(activations), l)
		if (is_inside(&l) && l.until != PLAN_END)
			*need_item(s.deaths, s.death_count, s.death_room) = l.until;
	SORT(s.deaths, s.death_count, sorted_numbers);
	for (size_t i = 0; i < s.count; i++)
		if (!ANY_OF(x, s.items, i, !strcmp(x->function, s.items[i].function)))
			look_at(&s, s.items[i].function);
	for (size_t i = 0; i < s.count; i++)
		free(s.items[i].items);
	free(s.items);
	free(s.deaths);
	map_free(&s.ids);
	map_free(&s.firsts);
	map_free(&s.opens);
}

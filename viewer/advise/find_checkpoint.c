/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpointing of repeated modules, such as the layers of a model. After a checkpointed call
 * only its input and its output stay. When backward reaches the call, its inside is computed
 * again with all temporaries. An input that is not saved today then lives longer. Only the
 * module class with the largest saving is shown. A method that only calls one other method
 * again and again cannot be distinguished from a loop.
 */

#include <sys/mman.h>

#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "checkpoint.h"

static struct checkpoint_site *site_of(struct checkpoint_search *s, const struct site_path *p,
				       size_t i)
{
	const struct site_of_stack *of = &p->items[i];
	struct checkpoint_site *site = map_item(s, of->key);
	uint64_t next = i + 1 < p->count ? of[1].key : 0;

	if (next != 0)
		site->calls = true;
	site->depth = i;
	if (!next || (site->next && site->next != next))
		site->many = true;
	site->next = next;
	site->key = of->key;
	site->function = of->function;
	return site;
}

static bool is_inside(const struct advised *l)
{
	return l->born->stage == STAGE_FORWARD && l->course->saved;
}

/* A call begins when the stack of the first block from that path appears again, and when the path
 * changes. A call might make several blocks with that stack. */
static void add_inside(struct checkpoint_search *s, struct checkpoint_site *site,
		       const struct advised *l, uint64_t outside)
{
	const struct checkpoint_inside *before = site->count ? &site->items[site->count - 1] : NULL;
	bool begins = !before || before->outside != outside;
	uint32_t first = map_known(&s->firsts, site->key ^ outside, l->stack);

	if (l->stack == first && before && before->stack != l->stack)
		begins = true;
	*need_item(site->items, site->count, site->room) =
		(struct checkpoint_inside){ l->life, l->stack, outside, begins };
}

/* Inside another call of its class (PEFT's Linear around nn.Linear): the outer one is checkpointed.
 * */
static bool is_nested(const struct site_path *p, size_t i)
{
	return ANY_OF(x, p->items, i, !strcmp(x->function, p->items[i].function));
}

static void collect(struct checkpoint_search *s)
{
	struct advise *a = s->advise;

	ADVISE_EACH (a, CLASS_BIT(activations), l) {
		struct site_path p = { 0 };

		if (is_inside(&l))
			p = sites_find(a, l.stack);
		for (size_t i = 0; i < p.count; i++) {
			struct checkpoint_site *site = is_nested(&p, i) ? NULL : site_of(s, &p, i);

			if (!site)
				continue;
			add_inside(s, site, &l, p.items[i].outside);
			/* without a backward pass no_grad is better */
			if (advise_counts(a, &l) && !l.course->unread)
				site->bytes += l.size;
		}
	}
}

/* Line of the method that made the block. */
static unsigned line_at(struct checkpoint_search *s, const struct checkpoint_site *site, size_t i)
{
	return sites_find(s->advise, site->items[i].stack).items[site->depth].line;
}

/* In most calls the method goes on to further lines. A loop inside the method would stay at its
 * line. */
static bool goes_on(struct checkpoint_search *s, const struct checkpoint_site *site, size_t calls)
{
	size_t further = 0;
	unsigned first = 0;
	bool seen = true;

	for (size_t i = 0; i < site->count; i++) {
		unsigned line = line_at(s, site, i);

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

/* Number of calls. If much memory comes from stacks that appear less often than calls from their
 * path, those stacks are around the calls, and the result is 1: no repeated module. */
static size_t calls_of(struct checkpoint_search *s, const struct checkpoint_site *site)
{
	struct map counts = { 0 }, begins = { 0 };
	uint64_t around = 0, all = 0;
	size_t calls = 0;
	bool alone;

	FOR_EACH (const struct checkpoint_inside, l, site->items, site->count) {
		++*map_put(&counts, l->stack, NULL);
		*map_put(&begins, l->outside, NULL) += l->begins;
		calls += l->begins;
	}
	FOR_EACH (const struct checkpoint_inside, l, site->items, site->count) {
		uint64_t size = checkpoint_life(s, l->life).size;

		all += size;
		if (*map_get(&counts, l->stack) + 1 < *map_get(&begins, l->outside))
			around += size;
	}
	alone = counts.count ==
		begins.count; /* one stack for each path, so calls cannot be counted */
	map_free(&counts);
	map_free(&begins);
	return alone || (around > all / 50 && !goes_on(s, site, calls)) ? 1 : calls;
}

/* The method calls nn.Sequential first, which runs all its operators on one line, so the first
 * stack may appear twice in a call. If calls cannot be counted by it, one begins where the method
 * is back at an earlier line. That of a whole network might be a loop. */
static void count_by_line(struct checkpoint_search *s, struct checkpoint_site *site)
{
	const struct site_path p = sites_find(s->advise, site->items[0].stack);

	if (!site->depth || site->depth + 1 >= p.count ||
	    !layers_is_container(p.items[site->depth + 1].function) ||
	    layers_is_container(site->function) || calls_of(s, site) > 1)
		return;
	for (size_t i = 1; i < site->count; i++)
		site->items[i].begins = site->items[i].outside != site->items[i - 1].outside ||
					line_at(s, site, i) < line_at(s, site, i - 1);
}

/* A single operator: it calls no other module, and each call leaves only one or two large results.
 * Checkpointed, it would keep as much. Blocks of one stack count once, because they might belong to
 * several calls. */
static bool is_operator(const struct checkpoint_search *s, const struct checkpoint_site *site)
{
	size_t calls = 0, large = 0;
	struct map stacks = { 0 };

	for (size_t i = 0, next; i < site->count && !site->calls; i = next) {
		uint64_t most = 0;

		for (next = i; next < site->count && (next == i || !site->items[next].begins);
		     next++)
			most = arithmetic_most(most,
					       checkpoint_life(s, site->items[next].life).size);
		for (size_t k = i; k < next; k++)
			if (checkpoint_life(s, site->items[k].life).size >= most / 8 &&
			    map_add(&stacks, site->items[k].stack))
				large++;
		map_free(&stacks);
		calls++;
	}
	return large < 3 * calls;
}

/* The most bytes of the call's inside at once, beyond what is saved. */
static uint64_t most_inside(struct checkpoint_search *s, const struct checkpoint_call *c)
{
	struct life_plan inside = { 0 };
	uint64_t most;

	for (uint32_t i = c->begin; i <= c->site->items[c->last].life; i++) {
		struct advised l;

		if (advise_life(s->advise, i, UINT16_MAX, &l) &&
		    sites_has(s->advise, l.stack, c->site->key))
			plan_with(&inside, i, l.from, l.until, l.size);
	}
	most = plan_most(&inside);
	plan_free(&inside);
	return most;
}

/* The event at which backward reaches the call: the release of the last saved block before its own.
 * */
static uint64_t begins_again(const struct checkpoint_search *s, uint64_t first_gone)
{
	size_t n = SORTED_FIRST(s->death_count, i, s->deaths[i] < first_gone);

	return n ? s->deaths[n - 1] : 0;
}

/* Part of a KV cache, which recomputation would fill twice. transformers disables the cache in
 * checkpointed layers. */
static bool is_of_cache(const struct checkpoint_search *s, const struct advised *l)
{
	return stacks_in_file(&s->advise->timeline->stacks, l->stack,
			      ONE_OF("/transformers/cache_utils.py"));
}

/* The output stays: the next call, an operator after the call, or the program holds it. */
static bool is_output(const struct checkpoint_search *s, const struct checkpoint_call *c,
		      const struct advised *l)
{
	return l->course->saved > c->end || map_get(&s->inputs, l->life) ||
	       (advise_held(s->advise, l) && !is_of_cache(s, l));
}

/* When the operator that saved it last has made its result. Without a graph the block is freed
 * then, unless the method still holds it. */
static uint64_t after_use(const struct checkpoint_search *s, const struct advised *l)
{
	const struct lives *all = s->advise->lives;
	uint32_t next = lives_born_by(all, l->course->saved);

	return next < all->rows.count ? lives_read(all, next).from + 1 : PLAN_END;
}

/* A weight that autocast converted in the current forward pass: its cache might hold it until the
 * pass ends. */
static bool is_cached_cast(struct checkpoint_search *s, const struct advised *l)
{
	return s->forward && l->from >= s->forward->extent.first_seq &&
	       advise_is_cast(s->advise->timeline, &s->advise->casts, l->stack, l->from);
}

static void note_read(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	struct checkpoint_search *s = ctx;

	for (size_t i = 0; i < count; i++) {
		struct checkpoint_reads *r;

		if (!s->advise->courses[lives[i]].watched)
			continue;
		r = map_item(&s->reads, lives[i]);
		*need_item(r->seqs, r->count, r->room) =
			uses_work(&s->advise->timeline->model.uses, work)->seq;
	}
}

/* Whether it is read between these events. */
static bool is_read_between(const struct checkpoint_reads *r, uint64_t begin, uint64_t end)
{
	size_t first = SORTED_FIRST(r->count, i, r->seqs[i] <= begin);

	return first < r->count && r->seqs[first] < end;
}

/* Autograd saves it, or work reads it while the call runs, before the next block is made. Else it
 * might be another tensor, such as a sum that a loop beside the calls keeps. */
static bool is_surely_input(struct checkpoint_search *s, const struct checkpoint_call *c)
{
	const struct lives *all = s->advise->lives;
	const struct checkpoint_reads *r = map_find(&s->reads, c->input.life);
	uint64_t begin = checkpoint_life(s, c->begin).from;
	uint32_t next = lives_born_by(all, c->end);
	uint64_t end = next < all->rows.count ? lives_read(all, next).from : PLAN_END;

	return c->input.course->saved || (r && is_read_between(r, begin, end));
}

/* early (the lower end): the inside stays until the end of the call, and is back with all
 * temporaries as soon as everything before it is released. Otherwise it is back when its own first
 * block is released. */
static void checkpoint_call(struct checkpoint_search *s, struct life_plan *p,
			    const struct checkpoint_call *c, bool early)
{
	uint64_t again = PLAN_END, inside = 0, most = most_inside(s, c);

	if (c->first_gone != PLAN_END && early)
		again = begins_again(s, c->first_gone);
	if (!early || again <= c->end)
		again = c->first_gone;
	for (size_t i = c->first; i <= c->last; i++) {
		struct advised l = checkpoint_life(s, c->site->items[i].life);

		if (is_output(s, c, &l) || (early && is_cached_cast(s, &l)))
			continue;
		plan_without(p, l.life, early ? c->end : arithmetic_least(c->end, after_use(s, &l)),
			     arithmetic_least(again, l.until), l.size);
		inside += l.until > again ? l.size : 0;
		if (again != PLAN_END && s->done[l.life] > again)
			plan_without(p, l.life, s->done[l.life], l.until, l.size);
	}
	if (c->input.size && c->input.until < c->let_go && (early || is_surely_input(s, c)))
		plan_with(p, c->input.life, c->input.until, c->let_go, c->input.size);
	if (early && again != PLAN_END && most > inside)
		plan_with(p, c->site->items[c->first].life, again, again + 1, most - inside);
}

/* The refused request came from inside the latest call, whose inside must be there. */
static bool is_running(struct checkpoint_search *s, const struct checkpoint_site *site)
{
	const struct advised *w = s->advise->wanted;

	return s->advise->wanted_count && w->born->stage == STAGE_FORWARD &&
	       sites_has(s->advise, w->stack, site->key);
}

static void checkpoint_site(struct checkpoint_search *s, const struct checkpoint_site *site,
			    struct life_plan *p, bool early)
{
	for (size_t i = 0, next; i < site->count; i = next) {
		struct checkpoint_call c = checkpoint_call_at(s, site, i, &next);

		if (c.input.size)
			map_put(&s->inputs, c.input.life, NULL);
	}
	for (size_t i = 0, next; i < site->count; i = next) {
		struct checkpoint_call c = checkpoint_call_at(s, site, i, &next);

		if (next < site->count || !is_running(s, site))
			checkpoint_call(s, p, &c, early);
	}
	map_free(&s->inputs);
}

/* The whole network: each call is one pass, so in backward all of its inside would be there again.
 * */
static bool is_network(struct checkpoint_search *s, const struct checkpoint_site *site)
{
	size_t passes = 0;
	uint32_t pass = 0;

	FOR_EACH (const struct checkpoint_inside, x, site->items, site->count) {
		if (!passes || checkpoint_life(s, x->life).born->forwards != pass)
			passes++;
		pass = checkpoint_life(s, x->life).born->forwards;
	}
	return !site->depth && SUM_OF(x, site->items, site->count, x->begins) <= passes;
}

static bool repeats(struct checkpoint_search *s, const struct checkpoint_site *site)
{
	return site->many && !layers_is_container(site->function) && calls_of(s, site) > 1 &&
	       !is_operator(s, site) && !is_network(s, site);
}

/* Its calls might be turns of a loop over an inner module that saves nearly all of its bytes. */
static bool is_around(struct checkpoint_search *s, const struct checkpoint_site *site)
{
	return ANY_OF(x, s->items, s->count,
		      x->depth > site->depth && x->bytes >= site->bytes / 10 * 9 &&
			      sites_has(s->advise, x->items->stack, site->key) &&
			      calls_of(s, x) >= calls_of(s, site) && repeats(s, x));
}

/* The site is of that class. A class is checkpointed at all of its sites. */
static bool is_of_class(struct checkpoint_search *s, const struct checkpoint_site *site,
			const char *function)
{
	return !strcmp(site->function, function) && repeats(s, site) && !is_around(s, site);
}

/* Notes when work reads what may be the inputs of the calls. */
static void find_reads(struct checkpoint_search *s, const char *function)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct checkpoint_site *site = &s->items[i];
		bool same = is_of_class(s, site, function);

		for (size_t k = 0, next; same && k < site->count; k = next) {
			struct checkpoint_call c = checkpoint_call_at(s, site, k, &next);

			if (c.input.size)
				c.input.course->watched = true;
		}
	}
	advise_watched_works(s->advise, note_read, s);
}

static void try_class(struct checkpoint_search *s, const char *function)
{
	struct advise *a = s->advise;
	size_t calls = 0, steps = a->steps;
	struct finding *f;
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->count; i++) {
		bool same = is_of_class(s, &s->items[i], function);

		calls += same ? calls_of(s, &s->items[i]) : 0;
		bytes += same ? s->items[i].bytes : 0;
	}
	if (calls < 2 * steps || bytes < a->peak / 50)
		return;
	f = advise_add(a, "checkpoint");
	f->range = f->about = true;
	find_reads(s, function);
	for (size_t i = 0; i < s->count; i++)
		if (is_of_class(s, &s->items[i], function)) {
			checkpoint_site(s, &s->items[i], &f->plan, false);
			checkpoint_site(s, &s->items[i], &f->cautious, true);
		}
	FOR_EACH (struct checkpoint_reads, r, s->reads.items, s->reads.count)
		free(r->seqs);
	map_items_free(&s->reads);
	memset(&s->reads, 0, sizeof(s->reads));
	f->function = function;
	f->bytes = bytes;
}

static void note_done(void *ctx, const struct node_run *run, const uint32_t *lives, size_t count)
{
	uint64_t *done = ctx;

	for (size_t i = 0; run->node && i < count; i++)
		done[lives[i]] = run->end;
}

void advise_checkpoint(struct advise *a)
{
	const size_t bytes = (advise_lives(a) + 1) * sizeof(uint64_t);
	const struct timeline *t = a->timeline;
	const struct span *at = steps_span(&t->steps, &t->model.spans, a->peak_seq);
	struct checkpoint_search s = { .advise = a,
				       .forward = at && span_is_forward(at) ? at : NULL };

	s.done = need_pages(bytes);
	if (uses_complete(&a->timeline->model))
		advise_nodes(a, note_done, s.done);
	collect(&s);
	ADVISE_EACH (a, CLASS_BIT(activations), l)
		if (is_inside(&l) && l.until != PLAN_END)
			*need_item(s.deaths, s.death_count, s.death_room) = l.until;
	SORT(s.deaths, s.death_count, sorted_numbers);
	FOR_EACH (struct checkpoint_site, site, s.items, s.count)
		count_by_line(&s, site);
	for (size_t i = 0; i < s.count; i++)
		if (!ANY_OF(x, s.items, i, !strcmp(x->function, s.items[i].function)))
			try_class(&s, s.items[i].function);
	for (size_t i = 0; i < s.count; i++)
		free(s.items[i].items);
	free(s.items);
	free(s.deaths);
	munmap(s.done, bytes);
	map_free(&s.ids);
	map_free(&s.firsts);
	map_free(&s.opens);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "leaks.h"

#include "../base/sorted.h"
#include "../moments/snapshot.h"
#include "../recording/running.h"

enum { SAMPLES = 64, WINDOWS = 4, FEWEST = 2, TIMES = 3, REMAINDERS = 256, RISE = 8 };

/* Whether n of all steps are nearly each of them. */
static bool nearly_each(size_t n, size_t all)
{
	return 4 * n >= 3 * all;
}

/* The blocks of one class and owner. */
struct group {
	uint64_t bytes;
	uint64_t at[SAMPLES + 1];
	/* Live blocks by the first sample after their birth; gave_up: one died long after it. */
	uint32_t born[SAMPLES + 1];
	uint32_t live, live_at[SAMPLES + 1]; /* number of live blocks */
	bool gave_up;
	bool of_weights; /* gradients, or made by an optimizer's step */
	bool goes;	 /* an old block died since the second last sample */
};

struct line {
	struct owner owner;
	struct group groups[CATEGORIES];
};

struct search {
	struct owners *owners;
	struct model *model;
	struct line *lines;
	size_t count, room;
	struct map line_ids; /* stack and backward node -> index in lines */

	uint64_t seqs[SAMPLES + 1]; /* the events after which samples are taken */
	size_t steps[SAMPLES + 1];
	size_t samples; /* number of intervals between them */
	size_t taken;
	size_t windows;
};

uint64_t leaks_work_end(const struct timeline *t, const struct step *step)
{
	for (size_t i = step->last + 1; i-- > step->first;) {
		enum phase p = t->model.spans.items[i].phase;

		if (p == PHASE_FORWARD || p == PHASE_BACKWARD || p == PHASE_OPTIMIZER)
			return t->model.spans.items[i].extent.last_seq;
	}
	return step->extent.last_seq;
}

/* True if a step is one pass, perhaps of several different ones in a real step. */
static bool counts_passes(const struct timeline *t)
{
	return t->steps.basis == STEPS_FORWARD || t->steps.basis == STEPS_BACKWARD;
}

/* True if memory ran out in the step, or the recording ends in it. A step of one pass counts from
 * its beginning on, so it would be compared at another point than the steps before. */
static bool is_broken_off(const struct timeline *t, size_t step)
{
	return counts_passes(t) && step &&
	       (t->model.spans.items[t->steps.items[step].last].refused ||
		recording_state(t->recording) != STATE_WHOLE);
}

size_t leaks_last_step(const struct timeline *t)
{
	const struct steps *s = &t->steps;
	size_t n = steps_number(s);

	n -= is_broken_off(t, n);
	while (n && !s->items[n].ended)
		n--;
	return n;
}

/* Chooses the steps to compare: at most SAMPLES intervals, spread evenly over the steps after the
 * first ones. */
static void choose_steps_to_compare(struct search *s, const struct timeline *t)
{
	size_t last = leaks_last_step(t), first = last / 4 ? last / 4 : 1;
	size_t all = last > first ? last - first : 0;

	s->samples = all < SAMPLES ? all : SAMPLES;
	s->windows = s->samples < WINDOWS ? s->samples : WINDOWS;
	for (size_t i = 0; i <= s->samples && last; i++) {
		s->steps[i] = s->samples ? first + i * all / s->samples : last;
		s->seqs[i] = leaks_work_end(t, &t->steps.items[s->steps[i]]);
	}
}

static size_t line_of(struct search *s, uint32_t life)
{
	struct owner o;
	struct block b;

	model_block(s->model, life, &b);
	o = owners_find(s->owners, &b);
	for (size_t i = 0; i < s->count; i++)
		if (owners_same(&s->lines[i].owner, &o))
			return i;
	*need_item(s->lines, s->count, s->room) = (struct line){ .owner = o };
	return s->count - 1;
}

static struct group *group_of(struct search *s, uint32_t life, const struct lived *x,
			      unsigned category)
{
	uint64_t key = (uint64_t)x->stack << 32 | (x->born->memory ? 0 : x->name);
	uint32_t line = map_known(&s->line_ids, key, line_of(s, life));

	return &s->lines[line].groups[category];
}

/* The first sample after that event. */
static size_t sample_after(const struct search *s, uint64_t seq)
{
	return SORTED_FIRST(s->samples, i, s->seqs[i] < seq);
}

/* Counts live blocks by the sample after their birth, for blocks that appear only at times. */
static void count_birth(const struct search *s, struct group *g, const struct series_change *c,
			const struct lived *x)
{
	size_t sample = sample_after(s, x->from);

	g->of_weights |=
		c->category == CATEGORY_gradients || model_signs(s->model, x->stack) & STACK_STEP;
	g->born[sample] += c->bytes < 0 ? -1 : 1;
	if (c->bytes < 0 && sample + 1 < s->taken)
		g->gave_up = true;
}

/* Takes the samples due before an event. */
static void take_samples(struct search *s, uint64_t seq)
{
	for (; s->taken <= s->samples && s->seqs[s->taken] < seq; s->taken++)
		for (size_t i = 0; i < s->count * CATEGORIES; i++) {
			struct group *g = &s->lines[i / CATEGORIES].groups[i % CATEGORIES];

			g->at[s->taken] = g->bytes;
			g->live_at[s->taken] = g->live;
			if (s->taken != s->samples)
				g->goes = false;
		}
}

static void note_leak_change(void *ctx, const struct series_change *c)
{
	struct search *s = ctx;
	struct lived x;
	struct group *g;

	take_samples(s, c->seq);
	if (!c->bytes || s->taken > s->samples)
		return;
	x = lives_read(&s->model->lives, c->life);
	g = group_of(s, c->life, &x, c->category);
	g->bytes += (uint64_t)c->bytes;
	g->live += c->bytes < 0 ? UINT32_MAX : 1;
	if (c->bytes < 0 && sample_after(s, x.from) + 1 < s->taken)
		g->goes = true;
	count_birth(s, g, c, &x);
}

/* low: bytes that stay from each sample on, which are the lows of memory that goes up and down.
 * True if it goes down by more than an eighth of its growth, so not only by unsplit remainders. */
static bool find_lows(const struct search *s, const struct group *g, uint64_t low[SAMPLES + 1])
{
	uint64_t most = 0;

	for (size_t i = s->samples + 1; i-- > 0;) {
		low[i] = i == s->samples || g->at[i] < low[i + 1] ? g->at[i] : low[i + 1];
		most = g->at[i] - low[i] > most ? g->at[i] - low[i] : most;
	}
	return 8 * most > low[s->samples] - low[0];
}

/* True if the growth has ended: it paused for more than twice as long as ever before, or it pauses
 * and old blocks are freed, as in a buffer that is full. */
static bool is_over(const struct search *s, const struct group *g, const uint64_t *low)
{
	size_t last = 0, longest = 1;

	for (size_t i = 1; i <= s->samples; i++) {
		if (low[i] - low[i - 1] <= (low[s->samples] - low[0]) / REMAINDERS)
			continue;
		longest = last && i - last > longest ? i - last : longest;
		last = i;
	}
	return s->samples - last > 2 * longest || (s->samples > last && g->goes);
}

/* The samples are divided into windows. After each window more bytes stay than before it. In
 * addition, either blocks of every window stay (a list that grows), or the bytes hardly ever
 * decrease (a buffer that is replaced by a larger one). */
static bool grows(const struct search *s, const struct group *g)
{
	uint64_t low[SAMPLES + 1];
	bool saws = find_lows(s, g, low), stays = true;

	for (size_t w = 0; w < s->windows; w++) {
		size_t first = w * s->samples / s->windows, end = (w + 1) * s->samples / s->windows;

		if (low[end] <= low[first])
			return false;
		if (SUM_OF(x, &g->born[first + 1], end - first, *x) <= 0)
			stays = false;
	}
	return !is_over(s, g, low) && (stays || (!saws && s->samples > FEWEST));
}

/* Grows less often than every step, for instance once per epoch: blocks from several moments are
 * alive, some from the later half, and none was ever freed. */
static bool grows_at_times(const struct search *s, const struct group *g)
{
	uint64_t low[SAMPLES + 1];
	unsigned times = 0;
	bool late = false;

	for (size_t i = 0; i < s->samples; i++) {
		times += g->born[i] > 0;
		if (g->born[i] && 2 * i >= s->samples)
			late = true;
	}
	find_lows(s, g, low);
	return times >= TIMES && late && !g->gave_up && g->at[s->samples] > g->at[0] &&
	       !is_over(s, g, low);
}

/* Bytes per step, between lows, from the first sample with any: a line can start late. */
static uint64_t per_step(const struct search *s, const struct group *g)
{
	size_t first = 0, last = s->samples, steps;
	uint64_t low[SAMPLES + 1];

	if (find_lows(s, g, low) && low[last - last / WINDOWS] > low[0])
		last -= last / WINDOWS;
	while (first + 1 < last && !g->at[first])
		first++;
	steps = s->steps[last] - s->steps[first];
	return (low[last] - low[first] + steps / 2) / steps;
}

/* Adds the groups that grow. If no models are added, gradients and the optimizer's memory must grow
 * in every step, because they can come late for other reasons. */
static void collect_steps(struct leaks *out, const struct search *s)
{
	bool models =
		ANY_OF(x, s->lines, s->count, grows_at_times(s, &x->groups[CATEGORY_parameters]));

	for (size_t i = 0; i < s->count * CATEGORIES; i++) {
		const struct line *line = &s->lines[i / CATEGORIES];
		const struct group *g = &line->groups[i % CATEGORIES];

		if (!grows(s, g) && ((g->of_weights && !models) || !grows_at_times(s, g)))
			continue;
		*need_item(out->items, out->count, out->room) =
			(struct leak){ .category = (enum category)(i % CATEGORIES),
				       .owner = line->owner,
				       .bytes_per_step = per_step(s, g) };
	}
}

COMPARE(by_growth, struct leak,
	ORDER(y->bytes_per_step, x->bytes_per_step) ?: strcmp(x->owner.function, y->owner.function))

struct leak *leaks_at(const struct leaks *l, unsigned classes, const struct owner *o)
{
	return FIRST_OF(x, l->items, l->count,
			classes >> x->category & 1 && owners_same(&x->owner, o));
}

/* A block made after the step's last pass, such as the next batch, belongs to the next step. */
static size_t step_of(const struct timeline *t, const struct block *b)
{
	size_t step = steps_at(&t->steps, b->seq);
	bool behind = step && step + 1 < t->steps.count &&
		      b->seq > leaks_work_end(t, &t->steps.items[step]);

	return step + behind;
}

/* True if the block was made from the previous one of its stack, which was read after this one was
 * allocated: a buffer that grows. Also if there is no previous one. */
static bool takes_over(const struct search *s, const struct block *b)
{
	uint32_t before = lives_before(&s->model->lives, b->seq, b->stack);
	struct block_uses x;

	if (before == UINT32_MAX)
		return true;
	uses_of(s->model, before, &x);
	return x.last_seq > b->seq;
}

/* True if all blocks are of the last two steps, and the first was not made from an earlier one: the
 * batches of these steps were only larger. */
static bool is_of_batches(const struct search *s, const struct leak *leak)
{
	return leak->blocks && uses_complete(s->model) && s->steps[s->samples] > 2 &&
	       leak->first_step + 1 >= s->steps[s->samples] && !takes_over(s, &leak->first);
}

static void add_samples(const struct search *s, const struct group *g, uint64_t all[SAMPLES + 1])
{
	for (size_t k = 0; k <= s->samples; k++)
		all[k] += g->at[k];
}

/* Number of intervals between samples in which the lines that grow hold more. */
static size_t rises(const struct leaks *out, const struct search *s)
{
	uint64_t all[SAMPLES + 1] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < s->count * CATEGORIES; i++) {
		const struct line *line = &s->lines[i / CATEGORIES];

		if (leaks_at(out, 1u << i % CATEGORIES, &line->owner))
			add_samples(s, &line->groups[i % CATEGORIES], all);
	}
	for (size_t k = 0; k < s->samples; k++)
		n += all[k] < all[k + 1];
	return n;
}

/* Lines can grow once per epoch or with each model that a search trains. Where intervals have
 * several steps, blocks of nearly each step must be there, or only the latest of a buffer that
 * grows. */
static bool grows_in_each(const struct leaks *out, const struct search *s, size_t births)
{
	size_t steps = out->to_step - out->from_step;

	return nearly_each(rises(out, s), s->samples) &&
	       (s->samples == steps || nearly_each(births, steps) ||
		!ANY_OF(x, out->items, out->count, x->first_step + 2 < out->to_step));
}

/* Finds the blocks behind the figures, in the snapshot after the last step. */
static void find_blocks(struct leaks *out, const struct search *s, struct timeline *t)
{
	struct map births = { 0 }; /* steps with a block that is still alive */
	struct snapshot shot;

	snapshot_take(&shot, t, s->seqs[s->samples]);
	FOR_BLOCKS (b, &shot.moment) {
		struct owner o = owners_find(s->owners, b);
		struct leak *leak = leaks_at(out, 1u << b->category, &o);

		if (!leak || b->seq <= s->seqs[0])
			continue;
		leak->bytes += b->size;
		map_put(&births, step_of(t, b), NULL);
		if (!leak->blocks || b->seq < leak->first.seq)
			leak->first = *b;
		if (!leak->blocks++ || b->seq > leak->latest.seq)
			leak->latest = *b;
	}
	for (size_t i = 0; i < out->count; i++) {
		out->items[i].first_step = step_of(t, &out->items[i].first);
		out->items[i].latest_step = step_of(t, &out->items[i].latest);
	}
	out->each = grows_in_each(out, s, births.count);
	map_free(&births);
	moment_free(&shot.moment);
}

/* Holds more blocks after nearly each interval, and at times far fewer. */
static bool starts_again(const struct search *s, const struct group *g)
{
	size_t up = 0;
	bool down = false;

	for (size_t k = 0; k < s->samples; k++) {
		up += g->live_at[k + 1] > g->live_at[k] && g->at[k + 1] > g->at[k];
		down |= g->live_at[k + 1] < g->live_at[k] / 2;
	}
	return s->samples >= RISE && down && up + s->samples / RISE >= s->samples;
}

/* The intervals in which these groups together hold more and more: the longest row of them. */
static void find_rise(const struct search *s, const uint64_t all[SAMPLES + 1], size_t *from,
		      size_t *to)
{
	size_t begin = 0;

	for (size_t k = 1; k <= s->samples; k++) {
		begin = all[k] > all[k - 1] ? begin : k;
		if (k - begin > *to - *from) {
			*from = begin;
			*to = k;
		}
	}
}

static void find_again(struct leaks *out, const struct search *s)
{
	uint64_t all[SAMPLES + 1] = { 0 }, graphs = 0;
	struct leaks_again *again = &out->again;
	size_t from = 0, to = 0;

	for (size_t i = 0; i < s->count * CATEGORIES; i++) {
		const struct group *g = &s->lines[i / CATEGORIES].groups[i % CATEGORIES];

		if (starts_again(s, g))
			add_samples(s, g, all);
	}
	find_rise(s, all, &from, &to);
	if (to - from < RISE)
		return;
	for (size_t i = 0; i < s->count * CATEGORIES; i++) {
		const struct line *line = &s->lines[i / CATEGORIES];
		const struct group *g = &line->groups[i % CATEGORIES];
		uint64_t bytes = g->at[to] > g->at[from] ? g->at[to] - g->at[from] : 0;

		if (!starts_again(s, g))
			continue;
		if (bytes > again->most.bytes)
			again->next = again->most;
		if (bytes > again->next.bytes)
			*(bytes > again->most.bytes ? &again->most : &again->next) =
				(struct leak){ .category = (enum category)(i % CATEGORIES),
					       .owner = line->owner,
					       .bytes = bytes };
		graphs += i % CATEGORIES == CATEGORY_activations ? bytes : 0;
	}
	again->bytes = all[to] - all[from];
	again->from = s->steps[from];
	again->to = s->steps[to];
	again->change = leaks_change_kept(4 * graphs >= again->bytes);
}

static void compare_growth(struct leaks *out, struct search *s, struct timeline *t)
{
	size_t kept = 0;

	timeline_series(t, &(struct series_sink){ .change = note_leak_change, .ctx = s }, s->seqs,
			s->samples + 1);
	take_samples(s, UINT64_MAX);
	collect_steps(out, s);
	SORT(out->items, out->count, by_growth);
	if (out->count)
		find_blocks(out, s, t);
	for (size_t i = 0; i < out->count; i++)
		if (!is_of_batches(s, &out->items[i])) {
			out->bytes_per_step += out->items[i].bytes_per_step;
			out->items[kept++] = out->items[i];
		}
	out->count = kept;
	if (!kept)
		find_again(out, s);
}

void leaks_find(struct leaks *out, struct timeline *t)
{
	struct search s = { .owners = &t->owners, .model = &t->model };

	*out = (struct leaks){ 0 };
	choose_steps_to_compare(&s, t);
	if (s.samples >= (size_t)FEWEST + counts_passes(t)) {
		out->from_step = s.steps[0];
		out->to_step = s.steps[s.samples];
		compare_growth(out, &s, t);
	}
	map_free(&s.line_ids);
	free(s.lines);
}

void leaks_free(struct leaks *l)
{
	free(l->items);
	*l = (struct leaks){ 0 };
}

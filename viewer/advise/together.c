/* SPDX-License-Identifier: Apache-2.0 */
#include "together.h"

#include "half_bits.h"

#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "../classes/study.h"

enum {
	AT_ONCE = 8,
	LATER = 4
}; /* AT_ONCE: sets computed together. LATER: births until the sum of a gradient is made */

/* A change of a life by one of the plans. bytes 0: the life itself begins or ends there. */
struct part {
	uint32_t life;
	unsigned of; /* index in the set; count = the batch */
	uint64_t seq;
	int64_t bytes;
};

struct merge {
	struct advise *advise;
	const struct together *set;
	bool most;		/* compute the upper end of the peak */
	struct half_bits *bits; /* NULL = no weights in half precision */
	bool updates;		/* updates happen in the backward pass */
	struct part *items;
	size_t count, room;
	struct life_plan *to;
};

bool together_parse(struct together *x, const char *text)
{
	*x = (struct together){ .parts = 1 };
	for (const char *next = text; *next; text = next + (*next == '+'), next = text) {
		size_t n = strcspn(text, "+");
		char word[32], *end;
		unsigned long number;

		next = text + n;
		if (!n || n >= sizeof(word) || x->count == TOGETHER_MOST)
			return false;
		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		number = strtoul(word, &end, 10);
		if (!strcmp(word, "frozen"))
			x->frozen = true;
		else if (!strcmp(word, "in_backward"))
			x->in_backward = true;
		else if (!strncmp(word, "batch=1/", 8) && (x->parts = (unsigned)atoi(word + 8)))
			continue;
		else if (number && !*end)
			x->findings[x->count++] = number - 1;
		else
			return false;
	}
	return x->count || x->frozen || x->in_backward || x->parts > 1;
}

static void add_change(struct merge *m, uint32_t life, unsigned of, uint64_t seq, int64_t bytes)
{
	if (seq != PLAN_END)
		*need_item(m->items, m->count, m->room) = (struct part){ life, of, seq, bytes };
}

/* ---- blocks that shrink with the batch ---- */

static bool is_of_weight(const struct advise *a, uint64_t size)
{
	const struct study *s = a->timeline->model.watcher;

	return study_size_is_of_weight(s, size) || study_size_is_of_weight(s, 2 * size);
}

/* Memory that a kernel allocates for itself, such as the partial sums and semaphores of a large
 * reduction. It is freed before anything else is made, and depends on the multiprocessors as well
 * as on the batch. */
static bool is_of_kernel(const struct advise *a, const struct advised *l)
{
	enum { SEMAPHORES = 4096 };
	struct advised next;

	return advise_life(a, l->life + 1, UINT16_MAX, &next) && next.size <= SEMAPHORES &&
	       next.until + 1 == l->until && lives_born_by(a->lives, l->until) <= l->life + 2;
}

/* Whether the block shrinks with the batch. Inputs that outlive the next pass are rows of many
 * batches. Blocks of the size of a weight, or of half of one, might be gradients or copies. */
static bool goes_with_batch(const struct merge *m, const struct advised *l)
{
	const struct advise *a = m->advise;

	/* A workspace of a convolution shrinks with the batch, but cuDNN might choose another
	 * algorithm. */
	if (l->classes & CLASS_BIT(workspace) &&
	    advise_spans_begun(a, l->from) == advise_spans_begun(a, l->until))
		return !m->most;
	if (l->classes & OF_THE_MODEL || !(l->classes & CLASSES_THAT(GROW_WITH_BATCH)) ||
	    (l->classes & CLASS_BIT(inputs) && l->until > advise_next_pass(a, l)))
		return false;
	return !m->most || !(l->classes & CLASSES_THAT(ARE_TEMPORARY)) ||
	       (!is_of_weight(a, l->size) && !is_of_kernel(a, l));
}

/* Frozen weights in half precision, and the results of their modules. */
static bool is_in_half_of_bits(const struct merge *m, const struct advised *l)
{
	uint8_t half = m->bits->of[l->life];

	return half >= HALF_SURE || (half == HALF_PERHAPS && !m->most);
}

static unsigned divisor_of(struct merge *m, const struct advised *l)
{
	struct advise *a = m->advise;
	unsigned bits = m->bits && is_in_half_of_bits(m, l) ? 2 : 1;

	if (m->bits && m->bits->of[l->life] == HALF_GONE)
		return UINT16_MAX;
	if (m->set->parts == 1 || !goes_with_batch(m, l) ||
	    (is_of_weight(a, l->size) && advise_is_cast(a->timeline, &a->casts, l->stack, l->from)))
		return bits;
	return bits * m->set->parts;
}

/* End of the latest optimizer's step before the event, or of the span that freed its gradients. */
static uint64_t step_begin(const struct merge *m, uint64_t seq)
{
	const struct spans *s = &m->advise->timeline->model.spans;
	size_t n = advise_spans_begun(m->advise, seq);

	while (n-- > 0)
		if (s->items[n].phase == PHASE_OPTIMIZER ||
		    (s->items[n].phase == PHASE_ZERO_GRAD && !m->most))
			return s->items[n].extent.last_seq + 1;
	return advise_next(m->advise, 0, PHASE_FORWARD);
}

/* All parts of a batch but the first hold the accumulated gradients and add their own. */
static void hold_gradient(struct merge *m, const struct advised *l)
{
	const struct lives *all = m->advise->lives;
	uint32_t later = lives_born_by(all, l->from) + LATER;
	uint64_t begin = step_begin(m, l->from), end = l->from;

	if (m->most && later < all->rows.count)
		end = lives_read(all, later).from;
	if (begin >= l->from || l->born->stage == STAGE_OPTIMIZER)
		return;
	add_change(m, l->life, (unsigned)m->set->count, begin, (int64_t)l->size);
	add_change(m, l->life, (unsigned)m->set->count, end, -(int64_t)l->size);
}

/* ---- updates in the backward pass ---- */

struct readers {
	const struct advise *advise;
	size_t others; /* uses of gradients outside of backward nodes and the optimizer's step */
};

static void note_readers(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	struct readers *r = ctx;
	const struct advise *a = r->advise;
	const struct uses *u = &a->timeline->model.uses;
	size_t next = advise_spans_begun(a, uses_work(u, work)->seq);

	if (uses_kind(u, work)->node ||
	    (next && a->timeline->model.spans.items[next - 1].phase == PHASE_OPTIMIZER))
		return;
	for (size_t i = 0; i < count; i++)
		r->others += !!(a->courses[lives[i]].classes & CLASS_BIT(gradients));
}

/* The gradient is of a single pass, not a sum over several. */
static bool is_of_one_pass(const struct advise *a, const struct advised *l)
{
	uint64_t step = advise_next(a, l->from, PHASE_OPTIMIZER);

	return step != PLAN_END && step < advise_next(a, l->from, PHASE_BACKWARD);
}

/* Only the optimizer reads gradients: nothing scales them or clips their norm, and none is a sum.
 * */
static bool reads_in_step_alone(const struct advise *a)
{
	struct readers r = { .advise = a };
	size_t gradients = 0;

	ADVISE_EACH (a, CLASS_BIT(gradients), l) {
		gradients++;
		if (l.born->stage != STAGE_OPTIMIZER && l.until != PLAN_END &&
		    !is_of_one_pass(a, &l))
			return false;
	}
	advise_works(a, note_readers, &r);
	return uses_complete(&a->timeline->model) && 2 * r.others < gradients;
}

static bool is_of_step(const struct advised *l)
{
	return l->born->stage == STAGE_OPTIMIZER && l->until != PLAN_END;
}

/* An update in the backward pass frees gradients early, and its own temporaries, too. */
#define OF_UPDATES (CLASS_BIT(gradients) | CLASS_BIT(optimizer_temporaries))

/* Bytes of the optimizer's temporaries for each byte of a gradient. */
static double temporaries_each(const struct advise *a)
{
	double temporaries = 0, gradients = 0;

	ADVISE_EACH (a, OF_UPDATES, l)
		if (!(l.classes & CLASS_BIT(gradients)))
			temporaries += is_of_step(&l) ? (double)l.size : 0;
		else if (l.born->stage != STAGE_OPTIMIZER)
			gradients += (double)l.size;
	return gradients ? temporaries / gradients : 0;
}

/* Plans updates in the backward pass: the optimizer's own step finds no gradients and makes no
 * temporaries. */
static void update_in_backward(struct merge *m)
{
	const struct advise *a = m->advise;
	const struct lives *all = a->lives;
	double each = temporaries_each(a);

	ADVISE_EACH (a, OF_UPDATES, l) {
		uint32_t later = lives_born_by(all, l.from) + (m->most ? LATER : 1);
		uint64_t end = later < all->rows.count ? lives_read(all, later).from : PLAN_END;

		if (!(l.classes & CLASS_BIT(gradients)) && is_of_step(&l))
			plan_without(m->to, l.life, l.from, l.until, l.size);
		if (!(l.classes & CLASS_BIT(gradients)) || l.born->stage == STAGE_OPTIMIZER ||
		    end >= l.until || !is_of_one_pass(a, &l))
			continue;
		plan_with(m->to, PLAN_NONE, end - 1, end, (uint64_t)(each * (double)l.size));
		plan_without(m->to, l.life, end, l.until, l.size);
	}
}

/* Plans the conversion of weights, one after the other, when the first pass begins. */
static void convert(struct merge *m)
{
	const struct advise *a = m->advise;
	uint64_t first = m->bits->first;

	ADVISE_EACH (a, CLASS_BIT(parameters), l)
		if (m->bits->of[l.life] == HALF_WEIGHT && l.from < first)
			plan_with(m->to, PLAN_NONE, l.from, arithmetic_least(first, l.until),
				  l.size / 2);
	if (first != PLAN_END)
		plan_with(m->to, PLAN_NONE, first - 1, first, m->bits->largest / 2);
}

static void add_classes(struct merge *m)
{
	if (m->set->parts == 1 && !m->bits && !m->updates)
		return;
	if (m->bits)
		convert(m);
	if (m->updates)
		update_in_backward(m);
	ADVISE_EACH (m->advise, UINT16_MAX, l) {
		if (divisor_of(m, &l) > 1) {
			add_change(m, l.life, (unsigned)m->set->count, l.from, 0);
			add_change(m, l.life, (unsigned)m->set->count, l.until, 0);
		}
		if (m->set->parts > 1 && l.classes & CLASS_BIT(gradients))
			hold_gradient(m, &l);
	}
}

/* ---- one life ---- */

static bool offloads(const struct merge *m, size_t of)
{
	return of < m->set->count &&
	       !strcmp(m->advise->items[m->set->findings[of]].kind, "offload_activations");
}

/* Bytes of the life with all changes, minus the recorded bytes. An input kept longer for a
 * checkpoint is saved, so it is on the host if saved tensors are. */
static int64_t changed(struct merge *m, const struct advised *l, uint64_t seq, const int64_t *sums)
{
	bool there = l->from <= seq && seq < l->until, on_host = false;
	double size = (double)l->size, left = there ? size : 0, more = 0;

	for (size_t i = 0; i <= m->set->count; i++) {
		if (offloads(m, i) && !m->most)
			on_host = true;
		if (there && sums[i] < 0)
			left *= sums[i] > -(int64_t)l->size ? (size + (double)sums[i]) / size : 0;
		else if (sums[i] > more)
			more = (double)sums[i];
	}
	more = on_host && !there ? 0 : more;
	return (int64_t)((left + more) / divisor_of(m, l)) - (there ? (int64_t)l->size : 0);
}

/* Whether the life moves to the host. Blocks that are recomputed or removed are not saved by
 * autograd and stay off the host. */
static bool is_offloaded(const struct merge *m, const struct part *p, size_t n)
{
	return !ANY_OF(x, p, n, x->bytes < 0 && x->of < m->set->count && !offloads(m, x->of));
}

static void merge_life(struct merge *m, const struct part *p, size_t n)
{
	int64_t sums[TOGETHER_MOST + 1] = { 0 }, before = 0, now;
	bool offloaded = is_offloaded(m, p, n);
	struct advised l;

	if (p->life == PLAN_NONE || !advise_life(m->advise, p->life, UINT16_MAX, &l)) {
		for (size_t i = 0; i < n; i++)
			plan_add(m->to, (struct plan_change){ p[i].seq, p[i].bytes, PLAN_NONE });
		return;
	}
	for (size_t i = 0; i < n; i++) {
		sums[p[i].of] += offloaded || !offloads(m, p[i].of) ? p[i].bytes : 0;
		if (i + 1 < n && p[i + 1].seq == p[i].seq)
			continue;
		now = changed(m, &l, p[i].seq, sums);
		if (now != before)
			plan_add(m->to, (struct plan_change){ p[i].seq, now - before, l.life });
		before = now;
	}
}

COMPARE(by_life, struct part, ORDER(x->life, y->life) ?: ORDER(x->seq, y->seq))

/* Facts shared by all sets. */
struct of_sets {
	struct half_bits bits;
	bool frozen, updates;
};

static void merge(struct advise *a, const struct together *x, bool most, struct of_sets *of,
		  struct life_plan *to)
{
	struct merge m = { .advise = a,
			   .set = x,
			   .most = most,
			   .bits = x->frozen && of->frozen ? &of->bits : NULL,
			   .updates = x->in_backward && of->updates,
			   .to = to };

	for (unsigned i = 0; i < x->count; i++) {
		const struct finding *f = &a->items[x->findings[i]];
		const struct life_plan *p = most && f->range ? &f->cautious : &f->plan;

		for (size_t k = 0; k < p->count; k++)
			add_change(&m, p->items[k].life, i, p->items[k].seq, p->items[k].bytes);
	}
	add_classes(&m);
	SORT(m.items, m.count, by_life);
	for (size_t i = 0, next; i < m.count; i = next) {
		for (next = i + 1; next < m.count && m.items[next].life == m.items[i].life;)
			next++;
		merge_life(&m, &m.items[i], next - i);
	}
	free(m.items);
}

void together_find(struct advise *a, struct together *sets, size_t count)
{
	struct of_sets of = { .updates = ANY_OF(x, sets, count, x->in_backward) &&
					 reads_in_step_alone(a) };

	of.frozen = ANY_OF(x, sets, count, x->frozen) && half_bits_find(&of.bits, a);
	for (size_t i = 0; i < count; i += AT_ONCE) {
		size_t n = arithmetic_least(AT_ONCE, count - i);
		struct life_plan plans[2 * AT_ONCE] = { 0 }, *list[2 * AT_ONCE];

		for (size_t k = 0; k < 2 * n; k++) {
			list[k] = &plans[k];
			merge(a, &sets[i + k / 2], k % 2, &of, list[k]);
		}
		plans_run(list, 2 * n, a->timeline, &a->repeats, a->since, a->until);
		for (size_t k = 0; k < n; k++) {
			sets[i + k].peak =
				arithmetic_least(plans[2 * k].peak, plans[2 * k + 1].peak);
			sets[i + k].at_most =
				arithmetic_most(plans[2 * k].peak, plans[2 * k + 1].peak);
		}
		for (size_t k = 0; k < 2 * n; k++)
			plan_free(list[k]);
	}
	half_bits_free(&of.bits);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the searches, computes the savings of their plans, and orders the findings. */
#include "advise.h"

#include <sys/mman.h>

#include "../base/sorted.h"
#include "../moments/refusals.h"

#define SHARE  100	  /* findings below 1/SHARE of the peak are left out */
#define LATEST (1u << 16) /* latest lives before a refusal from which habits are learned */
#define READ   (1u << 18) /* lives that are kept as the findings see them */

static void add_known(struct advise *a, uint32_t life)
{
	*need_item(a->known, a->known_count, a->known_room) = life;
	a->counted[life / 8] |= (uint8_t)(1u << life % 8);
}

static void note_class(void *ctx, const struct series_change *c)
{
	struct advise *a = ctx;

	if (c->kind == SERIES_BORN)
		add_known(a, c->life);
	if (c->kind == SERIES_BORN || c->kind == SERIES_JOINED)
		a->courses[c->life].classes |= (uint16_t)(1u << c->category);
}

static void note_saving(void *ctx, uint32_t life, enum life_change change, uint64_t seq)
{
	struct advise *a = ctx;

	if (change == CHANGE_SAVED || change == CHANGE_SAVED_FIRST)
		a->courses[life].saved = seq;
	if (change == CHANGE_RELEASED)
		a->courses[life].released = seq;
}

/* ---- savings ---- */

static void run_plans(struct advise *a)
{
	struct life_plan **plans = need_new((2 * a->count + 1) * sizeof(struct life_plan *));
	size_t n = 0;

	FOR_EACH (struct finding, f, a->items, a->count) {
		if (f->known == KNOWN_computed && plan_less(&f->plan, a->peak_seq) > 0)
			plans[n++] = &f->plan;
		if (f->range && plan_less(&f->cautious, a->peak_seq) > 0)
			plans[n++] = &f->cautious;
	}
	if (n)
		plans_run(plans, n, a->timeline, &a->repeats, a->since, a->until);
	free(plans);
}

static uint64_t saved_by(const struct advise *a, const struct life_plan *p)
{
	int64_t less = plan_less(p, a->peak_seq);

	if (less <= 0 || a->wanted_count)
		return less > 0 ? (uint64_t)less : 0;
	return a->peak > p->peak ? a->peak - p->peak : 0;
}

/* A kind that tests found wrong in more than one of ten cases is left out. */
static bool is_measured(struct finding *f)
{
	static const struct claim table[] = {
#include "measured.def"
	};

	f->measured = claim_of(table, sizeof(table) / sizeof(*table), f->kind);
	return 10 * f->measured.right >= 9 * f->measured.of;
}

static void conclude(const struct advise *a, struct finding *f)
{
	bool measured = is_measured(f);

	if (f->known != KNOWN_computed)
		return;
	f->saves = saved_by(a, &f->plan);
	f->least = f->range ? saved_by(a, &f->cautious) : f->saves;
	f->least = f->least < f->saves ? f->least : f->saves;
	if (!measured || (f->sure && !f->least))
		f->saves = 0;
	f->peak = a->wanted_count ? (f->range ? f->cautious : f->plan).peak : a->peak - f->saves;
}

/* Sorts by the lower end of the saving. */
COMPARE(by_saving, struct finding,
	ORDER(y->least, x->least) ?: ORDER(y->saves, x->saves) ?: ORDER(x->order, y->order))

static void drop(struct finding *f)
{
	plan_free(&f->plan);
	plan_free(&f->cautious);
}

/* Whether an earlier finding of the kind is better (of checkpoints only the best is shown), or has
 * the same saving and line. */
static bool is_worse(const struct advise *a, const struct finding *f)
{
	for (const struct finding *x = a->items; x < f; x++)
		if ((!strcmp(x->kind, f->kind) && !strcmp(f->kind, "checkpoint")) ||
		    (x->saves == f->saves && f->owner.function && x->owner.function &&
		     owners_same(&x->owner, &f->owner)))
			return true;
	return false;
}

void advise_choose(struct advise *a)
{
	size_t n = 0;

	SORT(a->items, a->count, by_saving);
	for (size_t i = 0; i < a->count; i++) {
		struct finding f = a->items[i];
		uint64_t least = f.reserved ? a->reserved / SHARE : a->least;

		a->items[i].plan = a->items[i].cautious = (struct life_plan){ 0 };
		if (f.saves && f.saves >= least && !is_worse(a, (a->items[n] = f, &a->items[n])))
			n++;
		else
			drop(&f);
	}
	a->count = n;
}

/* Notes the classes that lives have until the moment, for lives that are alive then or are among
 * the latest. */
static void note_classes(struct advise *a, uint64_t since)
{
	struct timeline *t = a->timeline;
	struct series s = { .model = &t->model, .device = t->device, .leave = &a->repeats };

	if (a->wanted_count)
		s.until = a->until;
	if (since) {
		s.moments = &a->until;
		s.moment_count = 1;
		s.since = since;
	}
	s.classifier = timeline_classifier(t);
	series_run(&s,
		   &(struct series_sink){ .change = note_class, .said = note_saving, .ctx = a });
}

/* Fills a->next, so that the next span of a phase is found without a search over thousands of
 * spans. */
static void find_next(struct advise *a)
{
	const struct spans *s = &a->timeline->model.spans;

	a->next = need_new((s->count + 1) * sizeof(*a->next));
	for (int p = 0; p < PHASES; p++)
		a->next[s->count][p] = (uint32_t)s->count;
	for (size_t i = s->count; i-- > 0;) {
		memcpy(a->next[i], a->next[i + 1], sizeof(*a->next));
		a->next[i][s->items[i].phase] = (uint32_t)i;
	}
}

/* Each finding looks at these lives again. */
static void read_known(struct advise *a)
{
	a->read = a->known_count > READ ? NULL : need_new((a->known_count + 1) * sizeof(*a->read));
	for (size_t i = 0; a->read && i < a->known_count; i++) {
		chunks_rest(a->lives->pool);
		advise_life(a, a->known[i], UINT16_MAX, &a->read[i]);
	}
}

static void begin(struct advise *a, uint64_t since)
{
	find_next(a);
	a->courses = need_pages((advise_lives(a) + 1) * sizeof(*a->courses));
	a->counted = need_new(advise_lives(a) / 8 + 1);
	note_classes(a, since);
	for (size_t i = 0; i < a->wanted_count; i++) {
		a->courses[a->wanted[i].life].classes = (uint16_t)a->wanted[i].classes;
		add_known(a, a->wanted[i].life);
	}
	read_known(a);
	advise_find_passes(a);
	advise_find_over(a);
}

static void find_all(struct advise *a)
{
	enum { NOTHING, GRAPHS, USES, REPLAY = 4 };
	const unsigned known = (advise_knows_graphs(a) ? GRAPHS : 0) |
			       (uses_complete(&a->timeline->model) ? USES : 0) |
			       (a->replays ? REPLAY : 0);
	static const struct {
		advise_find *find;
		unsigned needs;
	} table[] = {
#define FINDING(kind, find, needs, what, how) { find, needs },
#define NAME(kind, what, how)
#define VARIANT(name, what, how)
#include "findings.def"
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		say_progress("looking for savings", i, sizeof(table) / sizeof(*table));
		if (!(table[i].needs & ~known))
			table[i].find(a);
	}
	run_plans(a);
	FOR_EACH (struct finding, f, a->items, a->count) {
		conclude(a, f);
		advise_say(a, f);
	}
	advise_choose(a);
}

/* The recording was cut off, or the program was killed or died of the refusal. */
static bool is_open(const struct timeline *t)
{
	struct refusal last;

	return !t->recording->info->clean_end ||
	       (refusals_find(&last, &t->model.lives, 0) && !last.later_allocs);
}

void advise_open(struct advise *a, struct timeline *t, bool replays)
{
	const struct extent *x;
	size_t step;

	*a = (struct advise){ .timeline = t,
			      .lives = &t->model.lives,
			      .until = PLAN_END,
			      .replays = replays,
			      .when = "at the peak",
			      .open = is_open(t),
			      .steps = steps_number(&t->steps) };
	x = timeline_peak(t, &step);
	a->peak = x->peak;
	a->peak_seq = x->peak_seq;
	a->least = a->peak / SHARE;
	a->reserved = model_peak_reserved(&t->model.devices[t->device]);
	repeats_find(&a->repeats, a->lives, &t->steps);
	if (repeats_at(&a->repeats, a->peak_seq))
		repeats_free(&a->repeats);
	a->steps -= a->repeats.steps - a->repeats.count * REPEATS_MARGIN;
	begin(a, 0);
	find_all(a);
}

void advise_refused(struct advise *a, struct timeline *t, const struct advised *wanted,
		    size_t count, uint64_t held, uint64_t least)
{
	const struct lives *l = &t->model.lives;
	uint32_t born = lives_born_by(l, wanted->from);
	uint64_t since = born > LATEST ? lives_read(l, born - LATEST).from : 0;

	*a = (struct advise){ .timeline = t,
			      .lives = l,
			      .peak = held,
			      .when = "then",
			      .open = true,
			      .peak_seq = wanted->from,
			      .since = since,
			      .until = wanted->from,
			      .wanted_count = count,
			      .steps = steps_at(&t->steps, wanted->from) };
	if (since)
		a->steps -= steps_at(&t->steps, since);
	for (size_t i = 0; i < count; i++) {
		a->wanted[i] = wanted[i];
		a->wanted[i].life = l->rows.count + (uint32_t)i;
		a->wanted[i].died = lives_position(l, 0);
		a->wanted[i].until = PLAN_END;
		a->wanted[i].wanted = true;
		a->peak += wanted[i].size;
	}
	a->least = a->peak / SHARE < least ? a->peak / SHARE : least;
	begin(a, since);
	find_all(a);
}

void advise_close(struct advise *a)
{
	for (size_t i = 0; i < a->count; i++)
		drop(&a->items[i]);
	free(a->items);
	free(a->known);
	free(a->read);
	free(a->counted);
	free(a->next);
	free(a->layers.begins);
	free(a->passes.items);
	ops_free(&a->ops);
	sites_free(&a->sites);
	map_free(&a->casts);
	map_free(&a->sums);
	repeats_free(&a->repeats);
	munmap(a->courses, (advise_lives(a) + 1) * sizeof(*a->courses));
}

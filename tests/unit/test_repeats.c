/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated steps of a long training whose addresses come again from step to step, as an
 * allocator's do. All steps are alike but for one, which is told; what is left out is compared with
 * the rule, counted in steps.
 * links: tests/unit/recordings.c tests/unit/small_run.c
 */
#include "small_run.h"

#include "../../format/record.h"
#include "../../viewer/advise/plan.h"
#include "../../viewer/classes/study.h"
#include "../../viewer/moments/series.h"

enum { LONG_RUN = 1 << 18, KEPT_LIVES = 1 << 17, KEPT_STEPS = 16 };
enum { FEW = 65, MANY = 9000 }; /* lives of a step */

enum kind {
	PLAIN,
	ELSEWHERE, /* one block has another address, */
	LARGER,	   /* another size, */
	BY_LINE_2, /* another stack, */
	SWAPPED,   /* two are freed in the other order, */
	SAVED,	   /* autograd saves one more, */
	LEFT,	   /* one more stays for good */
	KINDS
};

static struct repeats found;
static unsigned lives_of_step;

static const unsigned odd_place = 7;

static uint64_t address(unsigned place, enum kind kind)
{
	return (place + (place == odd_place && kind == ELSEWHERE ? MANY : 1ull)) << 20;
}

static void allocate_block(unsigned place, enum kind kind)
{
	const uint64_t addr = address(place, kind);
	bool odd = place == odd_place;

	feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC,
				 .addr = addr,
				 .size = odd && kind == LARGER ? 1024 : 512,
				 .stack = odd && kind == BY_LINE_2 ? LINE_2 : IN_MODULE });
	if (!place || (odd && kind == SAVED))
		feed((struct gmt_event){
			.kind = GMT_TAG_SAVED, .addr = addr, .arg0 = addr, .stack = IN_MODULE });
}

static void go_back(void)
{
	const uint64_t addr = address(MANY + 2, PLAIN);

	feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC,
				 .thread = ENGINE,
				 .addr = addr,
				 .size = 512,
				 .name = NODE,
				 .scope = 1 });
	feed((struct gmt_event){
		.kind = GMT_BLOCK_FREE, .thread = ENGINE, .addr = addr, .scope = 1 });
}

static void one_step(enum kind kind)
{
	for (unsigned i = 0; i < lives_of_step - 1; i++)
		allocate_block(i, kind);
	go_back();
	feed((struct gmt_event){ .kind = GMT_TAG_RELEASED,
				 .thread = ENGINE,
				 .addr = address(0, kind),
				 .arg0 = address(0, kind) });
	drop(address(kind == SWAPPED, kind), LINE_1);
	drop(address(kind != SWAPPED, kind), LINE_1);
	for (unsigned i = 2; i < lives_of_step - 1; i++)
		drop(address(i, kind), LINE_1);
	if (kind == LEFT)
		allocate_block(MANY + 3, kind);
	range_end(STEP_A, range_begin(STEP_A, 1), 1);
}

/* Plain steps, then one of that kind, and plain ones again. */
static void run(unsigned lives, unsigned before, enum kind kind, unsigned after)
{
	lives_of_step = lives;
	begin();
	study_begin(&m);
	alloc(100,
	      LINE_1); /* no step but the first begins with the same lives as what was before */
	for (unsigned i = 0; i < before + 1 + after; i++)
		one_step(i == before ? kind : PLAIN);
	model_settle(&m);
	end();
	assert_int_equal(steps_number(&steps), before + 1 + after);
	repeats_find(&found, &m.lives, &steps);
}

static void over(void)
{
	repeats_free(&found);
	clean();
}

/* The first and the last of equal steps, numbered from 1. */
static void is_row(size_t row, unsigned first, unsigned last)
{
	unsigned by_lives = (KEPT_LIVES + lives_of_step - 1) / lives_of_step;
	unsigned from = first + (by_lives > KEPT_STEPS ? by_lives : KEPT_STEPS);
	const struct repeat *r = &found.items[row];

	assert_true(row < found.count);
	assert_int_equal(r->from, step(from)->extent.first_seq);
	assert_int_equal(r->until, step(last)->extent.first_seq);
	assert_int_equal(r->known, step(last - REPEATS_MARGIN)->extent.first_seq);
	assert_null(repeats_at(&found, r->from - 1));
	assert_ptr_equal(repeats_at(&found, r->from), r);
	assert_ptr_equal(repeats_at(&found, r->until - 1), r);
	assert_null(repeats_at(&found, r->until));
	assert_int_equal(r->lives, lives_of_step);
	assert_int_equal(lives_seq(&m.lives, &lives_at(&m.lives, r->life)->born) >= r->from, 1);
	assert_int_equal(lives_seq(&m.lives, &lives_at(&m.lives, r->life - 1)->born) >= r->from, 0);
	assert_int_equal(lives_seq(&m.lives, &lives_at(&m.lives, r->known_life)->born) >= r->known,
			 1);
	assert_int_equal(
		lives_seq(&m.lives, &lives_at(&m.lives, r->known_life - 1)->born) >= r->known, 0);
}

struct said {
	uint64_t hash, of_category[CATEGORIES];
};

static void note_change(void *ctx, const struct series_change *c)
{
	struct said *said = ctx;

	said->hash = (said->hash ^ c->seq ^ (uint64_t)c->life << 32) * 0x9e3779b97f4a7c15;
	said->hash = (said->hash ^ (uint64_t)c->kind << 8 ^ c->category) * 0x9e3779b97f4a7c15;
	said->of_category[c->category]++;
}

/* The changes of class are equal with and without the classes of twins. */
static void is_same_series(void)
{
	struct classifier *c = classifier_new(&m, NULL);
	struct said said[2] = { 0 };
	unsigned different = 0;

	for (int i = 0; i < 2; i++)
		series_run(
			&(struct series){ .model = &m, .classifier = c, .same = i ? &found : NULL },
			&(struct series_sink){ .change = note_change, .ctx = &said[i] });
	assert_memory_equal(&said[0], &said[1], sizeof(said[0]));
	for (unsigned i = 0; i < CATEGORIES; i++)
		different += said[0].of_category[i] > 0;
	assert_true(different > 2);
	classifier_free(c);
}

struct noted {
	uint16_t classes;
	uint64_t saved, released;
};

static void note_class(void *ctx, const struct series_change *c)
{
	struct noted *noted = ctx;

	noted[c->life].classes |= (uint16_t)(1u << c->category);
}

static void note_saving(void *ctx, uint32_t life, enum life_change change, uint64_t at)
{
	struct noted *noted = ctx;

	if (change == CHANGE_RELEASED)
		noted[life].released = at;
	else
		noted[life].saved = at;
}

static unsigned events_seen;

static void count_event(void *ctx, const struct series_event *e)
{
	(void)ctx;
	(void)e;
	events_seen++;
}

/* A sink that wants each event gets all changes: those that are left out say nothing else of the
 * lives that are looked at. */
static void is_same_without_repeats(void)
{
	struct classifier *c = classifier_new(&m, NULL);
	struct series s = { .model = &m, .classifier = c, .leave = &found };
	struct noted *noted[2];

	for (int i = 0; i < 2; i++) {
		noted[i] = calloc(m.lives.rows.count, sizeof(*noted[i]));
		series_run(&s, &(struct series_sink){ .change = note_class,
						      .said = note_saving,
						      .event = i ? count_event : NULL,
						      .ctx = noted[i] });
	}
	assert_memory_equal(noted[0], noted[1], m.lives.rows.count * sizeof(*noted[0]));
	assert_true(noted[0][1].classes);
	free(noted[0]);
	free(noted[1]);
	classifier_free(c);
}

/* A peak among repeated steps is one of those before them, too. */
static void is_same_peak(void)
{
	static struct timeline t;
	struct life_plan plans[2][2] = { 0 };
	const uint64_t last = m.last_seq;

	t.model = m;
	for (int i = 0; i < 2; i++) {
		struct life_plan *list[] = { &plans[i][0], &plans[i][1] };

		plan_without(list[0], PLAN_NONE, step(3)->extent.first_seq + 9, PLAN_END, 512);
		plan_with(list[0], PLAN_NONE, last - 30, last - 20, 2048);
		plan_with(list[1], PLAN_NONE, step(2)->extent.first_seq, last - 1, 4096);
		plans_run(list, 2, &t, i ? &found : &(struct repeats){ 0 }, 0, PLAN_END);
	}
	for (int k = 0; k < 2; k++) {
		assert_true(plans[0][k].peak > 512ull * lives_of_step);
		assert_int_equal(plans[0][k].peak, plans[1][k].peak);
		assert_int_equal(plans[0][k].peak_seq, plans[1][k].peak_seq);
		plan_free(&plans[0][k]);
		plan_free(&plans[1][k]);
	}
}

static void is_same_place(const struct lives_walk *a, const struct lives_walk *b)
{
	assert_int_equal(a->change, b->change);
	assert_int_equal(a->now.seq, b->now.seq);
	assert_int_equal(a->now.life, b->now.life);
	assert_int_equal(lives_walk_ns(a), lives_walk_ns(b));
}

/* A walk that jumps to an event goes on as one that came there by itself. */
static void jumps_are_walks(void)
{
	struct lives_walk from, jumped, walked;

	lives_walk_first(&from, &m.lives);
	for (uint64_t at = 5, more = 1; at < m.last_seq; at += more, more = more * 3 / 2 + 1) {
		jumped = walked = from;
		lives_walk_jump(&jumped, at);
		while (walked.change && walked.now.seq < at)
			lives_walk_next(&walked);
		if (more % 2)
			from = jumped;
		for (int i = 0; i < 300; i++, lives_walk_next(&walked), lives_walk_next(&jumped))
			is_same_place(&walked, &jumped);
	}
	lives_walk_jump(&from, m.last_seq + 1);
	assert_int_equal(from.change, CHANGE_NONE);
}

static void all_alike(void **state)
{
	static const unsigned lives[] = { FEW, MANY };

	(void)state;
	for (int i = 0; i < 2; i++) {
		unsigned n = LONG_RUN / lives[i] + 3;

		run(lives[i], n - 1, PLAIN, 0);
		assert_int_equal(found.count, 1);
		is_row(0, 1, n);
		is_same_series();
		is_same_without_repeats();
		is_same_peak();
		jumps_are_walks();
		over();
	}
}

static void one_differs(void **state)
{
	const unsigned n = KEPT_LIVES / FEW + 40;

	(void)state;
	for (enum kind kind = PLAIN + 1; kind < KINDS; kind++) {
		run(FEW, n, kind, n);
		assert_int_equal(found.count, 2);
		is_row(0, 1, n);
		is_row(1, n + 2, 2 * n + 1);
		is_same_series();
		is_same_without_repeats();
		is_same_peak();
		jumps_are_walks();
		over();
	}
}

/* Each of them a run for itself, neither with a step to spare; and a run that is answered soon. */
static void too_short(void **state)
{
	const unsigned n = KEPT_LIVES / FEW + 1 + 2 * REPEATS_MARGIN;

	(void)state;
	run(FEW, n, LARGER, n + 1);
	assert_true(m.lives.rows.count >= LONG_RUN);
	assert_int_equal(found.count, 0);
	over();
	run(FEW, n, LARGER, n + 2);
	assert_int_equal(found.count, 1);
	is_row(0, n + 2, 2 * n + 3);
	over();
	run(FEW, LONG_RUN / FEW - 1, PLAIN, 0);
	assert_true(m.lives.rows.count < LONG_RUN);
	assert_int_equal(found.count, 0);
	over();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_alike),
		cmocka_unit_test(one_differs),
		cmocka_unit_test(too_short),
	};

	return cmocka_run_group_tests(tests, told_set_up, told_tear_down);
}

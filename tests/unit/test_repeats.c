/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated steps of a long training whose addresses come again from step to step, as an
 * allocator's do. All steps are alike but for one, which is told; what is left out is compared with
 * the rule, counted in steps.
 * links: tests/unit/recordings.c tests/unit/small_run.c
 */
#include "small_run.h"

#include "../../format/record.h"
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
	unsigned categories = 0;

	for (int i = 0; i < 2; i++)
		series_run(
			&(struct series){ .model = &m, .classifier = c, .same = i ? &found : NULL },
			&(struct series_sink){ .change = note_change, .ctx = &said[i] });
	assert_memory_equal(&said[0], &said[1], sizeof(said[0]));
	for (unsigned i = 0; i < CATEGORIES; i++)
		categories += said[0].of_category[i] > 0;
	assert_true(categories > 2);
	classifier_free(c);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The curve of a run with other lives, against a plain array: blocks by chance, of which some are
 * gone for a while and some others are there in addition.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include "../../format/record.h"
#include "../../viewer/advise/plan.h"

enum { EVENTS = 4000, PLACES = 60, PLANS = 8, CHANGES = 40 };

static struct defs defs;
static struct timeline t;
static uint64_t level[EVENTS + 2]; /* after each event */

static void record(struct chance *c)
{
	uint64_t sizes[PLACES] = { 0 }, now = 0;

	model_init(&t.model, &defs);
	for (uint64_t seq = 1; seq <= EVENTS; seq++) {
		uint64_t place = chance_below(c, PLACES);
		bool there = sizes[place];
		struct gmt_event e = { .kind = there ? GMT_BLOCK_FREE : GMT_BLOCK_ALLOC,
				       .seq = seq,
				       .time_ns = seq,
				       .addr = (place + 1) << 30 };

		e.size = there ? sizes[place] : 512 * (1 + chance_below(c, 1000));
		now += there ? -e.size : e.size;
		sizes[place] = there ? 0 : e.size;
		level[seq] = now;
		model_event(&t.model, &e);
	}
	model_settle(&t.model);
}

static uint64_t most(uint64_t *at)
{
	uint64_t peak = 0;

	for (uint64_t i = 1; i <= EVENTS; i++)
		if (level[i] > peak) {
			peak = level[i];
			*at = i;
		}
	return peak;
}

/* The same in the array and in the plan. */
static void change(struct life_plan *p, struct chance *c, int64_t *more)
{
	uint64_t from = 1 + chance_below(c, EVENTS), until = from + chance_below(c, EVENTS / 4);
	uint64_t bytes = 512 * chance_below(c, 2000);
	bool gone = chance_below(c, 3);

	if (gone)
		bytes = bytes < level[from] / CHANGES ? bytes : level[from] / CHANGES;
	if (until > EVENTS)
		until = PLAN_END;
	for (uint64_t i = from; i < until && i <= EVENTS; i++)
		more[i] += gone ? -(int64_t)bytes : (int64_t)bytes;
	(gone ? plan_without : plan_with)(p, PLAN_NONE, from, until, bytes);
}

static void as_an_array(void **state)
{
	static int64_t more[PLANS][EVENTS + 2];
	struct life_plan plans[PLANS] = { 0 }, *list[PLANS];
	struct chance c = { 11 };
	uint64_t peak_seq = 0, peak;

	(void)state;
	record(&c);
	peak = most(&peak_seq);
	for (int i = 0; i < PLANS; i++) {
		list[i] = &plans[i];
		for (int k = 0; k < i * CHANGES / PLANS; k++)
			change(&plans[i], &c, more[i]);
	}
	plans_run(list, PLANS, &t, &(struct repeats){ 0 }, 0, PLAN_END);
	for (int i = 0; i < PLANS; i++) {
		uint64_t want = 0, at = 0;

		for (uint64_t k = 1; k <= EVENTS; k++)
			if ((int64_t)level[k] + more[i][k] > (int64_t)want) {
				want = level[k] + (uint64_t)more[i][k];
				at = k;
			}
		assert_int_equal(plans[i].peak, want);
		assert_int_equal(plans[i].peak_seq, at);
		assert_int_equal(plan_less(&plans[i], peak_seq), -more[i][peak_seq]);
		plan_free(&plans[i]);
	}
	assert_true(peak > 0);
	model_free(&t.model);
}

/* At the event of a change itself, where no block came or went. */
static void between_events(void **state)
{
	struct life_plan p = { 0 }, *list[] = { &p };

	(void)state;
	model_init(&t.model, &defs);
	model_event(&t.model,
		    &(struct gmt_event){
			    .kind = GMT_BLOCK_ALLOC, .seq = 2, .addr = 4096, .size = 1024 });
	model_event(&t.model,
		    &(struct gmt_event){
			    .kind = GMT_BLOCK_FREE, .seq = 9, .addr = 4096, .size = 1024 });
	model_settle(&t.model);
	plan_with(&p, PLAN_NONE, 5, 6, 512);
	plan_without(&p, PLAN_NONE, 3, 4, 1024);
	plan_with(&p, PLAN_NONE, 7, 7, 99); /* no time at all */
	plans_run(list, 1, &t, &(struct repeats){ 0 }, 0, PLAN_END);
	assert_int_equal(p.peak, 1536);
	assert_int_equal(p.peak_seq, 5);
	assert_int_equal(plan_less(&p, 2), 0);
	plan_free(&p);
	model_free(&t.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_an_array),
		cmocka_unit_test(between_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

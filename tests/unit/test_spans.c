/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of spans: what a thread was doing at each event, which phases that makes, and the bytes
 * of every device in each of them.
 * links: tests/unit/recordings.c tests/unit/small_run.c
 */
#include "small_run.h"
#include "../../format/record.h"

/* The stage of an event of thread 1, and that of one of autograd's threads. */
static void expect(uint32_t stack, enum block_stage own, enum block_stage engine)
{
	drop(alloc(1, stack), stack);
	assert_int_equal(m.spans.now.stage, own);
	feed((struct gmt_event){ .kind = GMT_BLOCK_FREE, .thread = ENGINE, .stack = stack });
	assert_int_equal(m.spans.now.stage, engine);
}

static void stages(void **state)
{
	uint64_t step, zero;

	(void)state;
	begin();
	expect(LINE_1, STAGE_OUTSIDE, STAGE_BACKWARD);
	expect(IN_MODULE, STAGE_FORWARD, STAGE_RECOMPUTE);
	expect(IN_BACKWARD, STAGE_BACKWARD, STAGE_BACKWARD);
	expect(WRAPPER, STAGE_OPTIMIZER, STAGE_OPTIMIZER);
	expect(CLEARING, STAGE_ZERO_GRAD, STAGE_BACKWARD);
	step = range_begin(STEP_A, 1);
	expect(LINE_1, STAGE_OPTIMIZER, STAGE_BACKWARD);
	expect(IN_CLOSURE, STAGE_FORWARD, STAGE_RECOMPUTE);
	zero = range_begin(ZERO, 1);
	expect(LINE_1, STAGE_ZERO_GRAD, STAGE_BACKWARD);
	range_end(ZERO, zero, 1);
	expect(LINE_1, STAGE_OPTIMIZER, STAGE_BACKWARD);
	range_end(STEP_A, step, 1);
	expect(LINE_1, STAGE_OUTSIDE, STAGE_BACKWARD);
	end();
	clean();
}

/* A range that ended on another thread is over; so is one whose end was lost, when the next one
 * like it ends. */
static void ranges_end(void **state)
{
	uint64_t number;

	(void)state;
	begin();
	number = range_begin(STEP_A, 1);
	range_end(STEP_A, number, ENGINE);
	expect(LINE_1, STAGE_OUTSIDE, STAGE_BACKWARD);
	assert_int_equal(spans_step_end(&m.spans, number).seq, 2);
	range_begin(STEP_A, 1);
	range_end(STEP_A, range_begin(STEP_A, 1), 1);
	expect(LINE_1, STAGE_OUTSIDE, STAGE_BACKWARD);
	range_begin(ZERO, 1);
	range_end(ZERO, 12345, 1);
	expect(LINE_1, STAGE_OUTSIDE, STAGE_BACKWARD);
	/* an optimizer around another one */
	number = range_begin(STEP_B, 1);
	range_end(STEP_A, range_begin(STEP_A, 1), 1);
	expect(LINE_1, STAGE_OPTIMIZER, STAGE_BACKWARD);
	range_end(STEP_B, number, 1);
	expect(LINE_1, STAGE_OUTSIDE, STAGE_BACKWARD);
	end();
	clean();
}

/* The end of an optimizer's range may begin time between passes. */
static void expect_phases(const enum phase *expected, size_t count)
{
	size_t last = m.spans.count - (m.spans.items[m.spans.count - 1].phase == PHASE_OTHER);

	assert_int_equal(last, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(m.spans.items[i].phase, expected[i]);
}

/* The passes run inside of the optimizer's step, and its own work may take no memory. */
static void closures(void **state)
{
	static const enum phase expected[] = {
		PHASE_SETUP,	 PHASE_OTHER,	  PHASE_FORWARD,   PHASE_ZERO_GRAD,
		PHASE_BACKWARD,	 PHASE_OPTIMIZER, PHASE_OTHER,	   PHASE_FORWARD,
		PHASE_ZERO_GRAD, PHASE_BACKWARD,  PHASE_OPTIMIZER,
	};

	(void)state;
	for (int works = 0; works < 2; works++) {
		begin();
		alloc(100, LINE_1);
		for (int i = 0; i < 2; i++) {
			uint64_t number = range_begin(STEP_A, 1), input = alloc(5, WRAPPER);
			uint64_t kept = alloc(50, IN_CLOSURE);

			drop(alloc(1, WRAPPER), WRAPPER); /* a loss, outside of the module */
			zero_grad(0);
			alloc(1, CLOSURE_BACKWARD);
			backward(kept, 8);
			if (works)
				drop(input, WRAPPER);
			range_end(STEP_A, number, 1);
		}
		end();
		expect_phases(expected, sizeof(expected) / sizeof(expected[0]));
		assert_int_equal(steps_number(&steps), 2);
		assert_int_equal(steps_phase(&m.spans, &steps.items[2], PHASE_FORWARD).times, 1);
		clean();
	}
}

/* A gap that turns out to be the forward pass leaves nothing behind: a run of a million steps has
 * several of them in each. */
static void gaps_leave_no_rows(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 100; i++) {
		uint64_t saved = forward(1000);

		drop(alloc(50, LINE_1), LINE_1);
		forward(10);
		drop(backward(saved, 8), LINE_1);
	}
	end();
	assert_true(m.spans.count >= 200);
	assert_true(m.spans.change_count <= m.spans.count + 4);
	clean();
}

/* A closure that is called over and over does not make more steps. */
static void closures_again(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		uint64_t number = range_begin(STEP_A, 1);

		for (int k = 0; k < 4; k++) {
			drop(backward(alloc(50, IN_CLOSURE), 8), WRAPPER);
			drop(alloc(30, WRAPPER), WRAPPER);
		}
		range_end(STEP_A, number, 1);
	}
	end();
	assert_int_equal(steps_number(&steps), 3);
	assert_int_equal(steps_phase(&m.spans, &steps.items[2], PHASE_BACKWARD).times, 4);
	assert_int_equal(steps_phase(&m.spans, &steps.items[2], PHASE_OPTIMIZER).times, 4);
	clean();
}

/* The pass begins with the call of backward(), and Module.zero_grad has no range. */
static void by_frames(void **state)
{
	static const enum phase expected[] = { PHASE_SETUP, PHASE_FORWARD, PHASE_BACKWARD,
					       PHASE_ZERO_GRAD };
	uint64_t kept, first;

	(void)state;
	begin();
	alloc(100, LINE_1);
	kept = forward(50);
	first = alloc(4, IN_BACKWARD);
	drop(backward(kept, 8), CLEARING);
	end();
	expect_phases(expected, sizeof(expected) / sizeof(expected[0]));
	assert_int_equal(m.spans.items[2].extent.begin_bytes, 150);
	assert_int_equal(m.spans.items[2].extent.peak, 162);
	assert_true(first);
	clean();
}

static void alloc_on(int device, uint64_t size, uint32_t stack)
{
	feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC,
				 .device = device,
				 .addr = 0x1000 + seq * 0x1000,
				 .size = size,
				 .stack = stack });
}

/* One run, and every device's bytes in every span; asked anew while the run goes on. */
static void devices(void **state)
{
	(void)state;
	begin();
	alloc_on(0, 100, LINE_1);
	alloc_on(1, 10, LINE_1);
	alloc_on(1, 40, IN_MODULE);
	model_measure_spans(&m, 1);
	alloc_on(1, 2, IN_MODULE);
	alloc_on(0, 7, IN_BACKWARD);
	model_measure_spans(&m, 0);
	assert_int_equal(m.spans.count, 3);
	assert_int_equal(m.spans.items[0].extent.peak, 100);
	assert_int_equal(m.spans.items[1].extent.peak, 100);
	assert_int_equal(m.spans.items[1].extent.growth, 0);
	assert_int_equal(m.spans.items[1].extent.peak_seq, m.spans.items[1].extent.first_seq);
	assert_int_equal(m.spans.items[2].extent.peak, 107);
	model_measure_spans(&m, 1);
	assert_int_equal(m.spans.items[0].extent.end_bytes, 10);
	assert_int_equal(m.spans.items[1].extent.begin_bytes, 10);
	assert_int_equal(m.spans.items[1].extent.peak, 52);
	assert_int_equal(m.spans.items[1].extent.peak_seq, 4);
	assert_int_equal(m.spans.items[1].extent.growth, 42);
	assert_int_equal(m.spans.items[2].extent.peak, 52);
	end();
	clean();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages),	  cmocka_unit_test(ranges_end),
		cmocka_unit_test(closures),	  cmocka_unit_test(gaps_leave_no_rows),
		cmocka_unit_test(closures_again), cmocka_unit_test(by_frames),
		cmocka_unit_test(devices)
	};

	return cmocka_run_group_tests(tests, told_set_up, told_tear_down);
}

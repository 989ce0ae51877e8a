/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of recordings that do not say everything: paused ones, in which events have no stacks, and
 * those without autograd's tags.
 * links: tests/unit/recordings.c tests/unit/small_run.c
 */
#include "small_run.h"
#include "../../format/record.h"

/* A paused recording does not say who called an optimizer: of some steps, of the first ones too. */
static void unknown_places(void **state)
{
	(void)state;
	for (int k = 0; k < 4; k++) {
		begin();
		for (int i = 0; i < 12; i++) {
			bool paused = k < 3 ? i % 4 == k : i < 6;

			backward(forward(50), 8);
			optimize(STEP_A, paused ? 0 : LINE_1, 3, 1);
		}
		end();
		assert_int_equal(steps_number(&steps), 12);
		clean();
	}
}

/* Two of one name in turn: the first rounds are those that are not known. */
static void unknown_rounds(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 8; i++) {
		backward(forward(50), 8);
		optimize(STEP_A, i < 3 || i == 5 ? 0 : LINE_1, 3, 1);
		backward(forward(50), 8);
		optimize(STEP_A, i < 3 || i == 5 ? 0 : LINE_2, 3, 1);
	}
	end();
	assert_int_equal(steps_number(&steps), 8);
	for (int i = 1; i <= 8; i++)
		assert_int_equal(phase(i, PHASE_OPTIMIZER).times, 2);
	clean();
}

/* One takes three steps to the other's one, and has fewer gradients: each of its steps is one. */
static void unknown_but_for_gradients(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 8; i++) {
		bool paused = i < 2 || i == 4;

		for (int k = 0; k < 3; k++) {
			backward(forward(50), 8);
			optimize(STEP_A, paused ? 0 : LINE_1, 3, 1);
		}
		backward(forward(50), 8);
		backward(forward(50), 8);
		optimize(STEP_A, paused ? 0 : LINE_2, 3, 1);
	}
	end();
	assert_int_equal(steps_number(&steps), 24);
	for (int i = 1; i <= 24; i++)
		assert_int_equal(phase(i, PHASE_OPTIMIZER).times, i % 3 ? 1 : 2);
	clean();
}

/* A closure clears the gradients, makes its batch and runs the passes; of what a paused recording
 * has no frames of, the backward pass says that it is one. Then the optimizer works. */
static void closures(void **state)
{
	(void)state;
	for (int paused = 0; paused < 2; paused++) {
		begin();
		for (int i = 0; i < 4; i++) {
			bool blind = paused && i % 2 == 0;
			uint64_t number = range_begin(STEP_A, 1), kept, batch;

			zero_grad(0);
			batch = alloc(10, blind ? 0 : WRAPPER);
			kept = alloc(1000, blind ? 0 : IN_CLOSURE);
			backward(kept, 8);
			drop(batch, blind ? 0 : WRAPPER);
			drop(alloc(3000, blind ? 0 : WRAPPER), blind ? 0 : WRAPPER);
			range_end(STEP_A, number, 1);
		}
		end();
		assert_int_equal(steps_number(&steps), 4);
		for (int i = 1; i <= 4; i++) {
			assert_int_equal(phase(i, PHASE_FORWARD).times, 1);
			assert_int_equal(phase(i, PHASE_BACKWARD).times, 1);
			assert_int_equal(phase(i, PHASE_OPTIMIZER).times, 1);
			assert_int_equal(step(i)->peak_phase, PHASE_OPTIMIZER);
		}
		clean();
	}
}

/* Calls of a model that autograd saves nothing of are known by their frames alone. */
static void inference(void **state)
{
	(void)state;
	for (int paused = 0; paused < 2; paused++) {
		begin();
		alloc(100, LINE_1);
		for (int i = 0; i < 6; i++) {
			bool blind = paused && (i == 2 || i == 3);

			drop(alloc(30, blind ? 0 : IN_MODULE), 0);
			drop(alloc(1, blind ? 0 : LINE_1), 0);
		}
		end();
		assert_int_equal(steps.basis, STEPS_FORWARD);
		assert_int_equal(steps_number(&steps), paused ? 4 : 6);
		assert_int_equal(steps.at_least, paused);
		clean();
	}
}

/* Without tags an evaluation is forward passes like others, and so it is if it saved something for
 * backward: nothing came of those at the end of the program. A step that was broken off there ran
 * out of memory, or its end is not recorded. */
static void evaluation_at_the_end(void **state)
{
	enum { ENDED, REFUSED, KILLED, WAYS };

	(void)state;
	for (int k = 0; k < 3 * WAYS; k++) {
		int way = k % WAYS;
		bool tags = k >= 2 * WAYS;

		begin();
		alloc(100, LINE_1);
		m.spans.tags = tags;
		for (int i = 0; i < 3; i++) {
			drop(backward(alloc(50, IN_MODULE), 8), 0);
			if (k < WAYS || tags)
				optimize(STEP_A, LINE_1, 3, 1);
		}
		for (int i = 0; i < 2; i++)
			if (tags)
				drop(forward(6999), 0);
			else
				forward_alone(7000);
		if (way == REFUSED)
			feed((struct gmt_event){
				.kind = GMT_BLOCK_OOM, .size = 9000, .stack = IN_MODULE });
		if (way != KILLED)
			feed((struct gmt_event){ .kind = GMT_END });
		end();
		assert_int_equal(steps.basis, k < WAYS || tags ? STEPS_OPTIMIZER : STEPS_BACKWARD);
		assert_int_equal(steps_number(&steps), way == ENDED ? 3 : 4);
		assert_int_equal(step(4)->extent.peak, 7100);
		assert_true(step(3)->ended && !step(4)->ended);
		clean();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(unknown_places),
					    cmocka_unit_test(unknown_rounds),
					    cmocka_unit_test(unknown_but_for_gradients),
					    cmocka_unit_test(closures),
					    cmocka_unit_test(inference),
					    cmocka_unit_test(evaluation_at_the_end) };

	return cmocka_run_group_tests(tests, told_set_up, told_tear_down);
}

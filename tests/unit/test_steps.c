/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps and phases: runs told event by event, with the ranges, nodes and frames that real ones
 * have; and by chance, where phases must add up to the run.
 * links: tests/unit/recordings.c tests/unit/small_run.c
 */
#include "small_run.h"
#include "../../format/record.h"

static void plain_training(void **state)
{
	(void)state;
	begin();
	alloc(100, LINE_1); /* a parameter */
	for (int i = 0; i < 3; i++) {
		uint64_t grad = backward(forward(1000), 200);

		optimize(STEP_A, LINE_1, 3000 + i, 1);
		zero_grad(grad);
	}
	end();
	assert_int_equal(steps.basis, STEPS_OPTIMIZER);
	assert_int_equal(steps_number(&steps), 3);
	assert_int_equal(step(0)->extent.peak, 100);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(phase(i, PHASE_FORWARD).extent.peak, 1101);
		assert_int_equal(phase(i, PHASE_BACKWARD).extent.peak, 1300);
		assert_int_equal(phase(i, PHASE_BACKWARD).extent.end_bytes, 300);
		assert_int_equal(phase(i, PHASE_BACKWARD).extent.growth, -800);
		assert_int_equal(phase(i, PHASE_OPTIMIZER).extent.peak, 3300 + i - 1);
		assert_int_equal(phase(i, PHASE_ZERO_GRAD).extent.end_bytes, 100);
		assert_int_equal(step(i)->peak_phase, PHASE_OPTIMIZER);
		assert_int_equal(step(i)->extent.growth, 0);
		assert_true(step(i)->ended);
	}
	assert_int_equal(steps_at(&steps, step(3)->extent.peak_seq), 3);
	assert_int_equal(steps_span(&steps, &m.spans, step(2)->extent.peak_seq)->phase,
			 PHASE_OPTIMIZER);
	clean();
}

/* Four backward passes, gradients clipped on the way, one optimizer. */
static void accumulation(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 4; k++)
			backward(forward(50), 8);
		drop(alloc(77, LINE_1), LINE_1);
		optimize(STEP_A, LINE_1, 3, 1);
	}
	end();
	assert_int_equal(steps_number(&steps), 2);
	assert_int_equal(phase(1, PHASE_FORWARD).times, 4);
	assert_int_equal(phase(1, PHASE_BACKWARD).times, 4);
	assert_int_equal(phase(1, PHASE_OPTIMIZER).times, 1);
	assert_int_equal(phase(1, PHASE_OTHER).extent.peak, 4 * 8 + 77);
	assert_int_equal(step(2)->extent.growth, 32);
	clean();
}

/* Two optimizers in turn, told apart by the line that calls them; later they allocate nothing. */
static void two_optimizers(void **state)
{
	(void)state;
	for (int same_name = 0; same_name < 2; same_name++) {
		begin();
		for (int i = 0; i < 3; i++) {
			backward(forward(50), 8);
			optimize(STEP_A, i ? 0 : LINE_1, 3, 1);
			backward(forward(50), 8);
			optimize(same_name ? STEP_A : STEP_B, i ? 0 : LINE_2, 3, 1);
		}
		end();
		assert_int_equal(steps_number(&steps), 3);
		assert_int_equal(phase(2, PHASE_BACKWARD).times, 2);
		assert_int_equal(phase(2, PHASE_OPTIMIZER).times, 2);
		clean();
	}
}

/* Its own lines do not tell an optimizer from another: the first step makes the state. */
static void an_optimizer_of_ones_own(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		backward(forward(50), 8);
		optimize(STEP_B, i ? OWN_1 : OWN_2, 30, 1);
	}
	end();
	assert_int_equal(steps_number(&steps), 3);
	clean();
}

/* One after the other, with no work between: one step, even if they cannot be told apart. */
static void one_after_the_other(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		backward(forward(50), 8);
		for (int k = 0; k < 5; k++)
			optimize(STEP_A, 0, 0, 1);
	}
	end();
	assert_int_equal(steps_number(&steps), 3);
	assert_int_equal(phase(2, PHASE_OPTIMIZER).times, 5);
	clean();
}

/* Of a step in the middle of a bounded recording a record stays and the optimizer's range; without
 * a stack the record says that there was work, and not which. */
static void left_out(void **state)
{
	(void)state;
	begin();
	alloc(100, LINE_1);
	for (int i = 0; i < 9; i++) {
		if (i % 4)
			feed((struct gmt_event){ .kind = GMT_THINNED,
						 .size = 40,
						 .stream = 20,
						 .arg0 = 2000 + (unsigned)i,
						 .thread = 1 });
		else
			backward(forward(1000), 8);
		optimize(STEP_A, 0, 0, 1);
		optimize(STEP_A, 0, 0, 1); /* nothing between them: the same step */
	}
	end();
	assert_int_equal(steps_number(&steps), 9);
	for (size_t i = 1; i <= 9; i++)
		assert_int_equal(step(i)->extent.peak >= 2000, (i - 1) % 4 != 0);
	assert_int_equal(step(4)->extent.peak, 2003);
	clean();
}

static void inside_backward(void **state)
{
	(void)state;
	begin();
	alloc(100, LINE_1);
	for (int i = 0; i < 3; i++) {
		uint64_t kept[5];

		for (int k = 0; k < 5; k++)
			kept[k] = forward(50);
		for (int k = 0; k < 5; k++) {
			drop(backward(kept[k], 8), 0);
			optimize(STEP_A, LINE_1, 500, ENGINE);
		}
	}
	end();
	assert_int_equal(steps_number(&steps), 3);
	assert_int_equal(phase(2, PHASE_FORWARD).times, 1);
	assert_int_equal(phase(2, PHASE_BACKWARD).extent.peak, 100 + 5 * 50 + 8);
	assert_int_equal(phase(2, PHASE_OPTIMIZER).extent.peak, 100 + 4 * 50 + 500);
	assert_int_equal(step(2)->extent.growth, 0);
	clean();
}

/* A scaler that met an overflow does not call the optimizer. */
static void optimizer_skipped(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 4; i++) {
		uint64_t grad = backward(forward(50), 8);

		if (i != 1)
			optimize(STEP_A, LINE_1, 3, 1);
		zero_grad(grad);
	}
	end();
	assert_int_equal(steps_number(&steps), 4);
	assert_int_equal(phase(2, PHASE_OPTIMIZER).times, 0);
	clean();
}

/* An optimizer may take its steps unseen: its zero_grad shows that there is one. */
static void unseen_steps(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++)
		zero_grad(backward(forward(50), 8));
	end();
	assert_int_equal(steps_number(&steps), 3);
	assert_string_equal(
		steps_bases[steps.basis].text,
		"no optimizer's step was seen: a step is a forward and a backward pass");
	clean();
}

static void no_optimizer(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		uint64_t grad = backward(forward(50), 8);

		drop(alloc(400, LINE_1), LINE_1); /* p -= lr * p.grad */
		drop(grad, LINE_1);
	}
	end();
	assert_int_equal(steps.basis, STEPS_BACKWARD);
	assert_int_equal(steps_number(&steps), 3);
	assert_int_equal(step(1)->peak_phase, PHASE_OTHER);
	assert_int_equal(step(2)->extent.growth, 0);
	clean();
}

static void inference(void **state)
{
	uint64_t out = 0;

	(void)state;
	begin();
	alloc(100, LINE_1);
	for (int i = 0; i < 4; i++) {
		uint64_t in = alloc(10, LINE_1);

		drop(alloc(30, IN_MODULE), IN_MODULE);
		out = alloc(20, IN_MODULE);
		drop(out, LINE_1);
		drop(in, LINE_1);
	}
	end();
	assert_int_equal(steps.basis, STEPS_FORWARD);
	assert_int_equal(steps_number(&steps), 4);
	assert_int_equal(step(4)->extent.peak, 140);
	assert_true(steps.tail);
	clean();
}

/* Passes without gradients after every second step, after the last too, and before the first. */
static void validation(void **state)
{
	(void)state;
	begin();
	forward_alone(5000);
	for (int i = 0; i < 4; i++) {
		uint64_t grad = backward(forward(1000), 200);

		optimize(STEP_A, LINE_1, 300, 1);
		zero_grad(grad);
		for (int k = 0; k < 3 && i % 2; k++)
			forward_alone(7000 + i);
	}
	end();
	assert_int_equal(steps_number(&steps), 4);
	assert_int_equal(phase(0, PHASE_EVALUATION).times, 1);
	assert_int_equal(step(0)->extent.peak, 5000);
	for (int i = 1; i <= 4; i++) {
		bool validated = i % 2 == 0;

		assert_int_equal(phase(i, PHASE_FORWARD).times, 1);
		assert_int_equal(phase(i, PHASE_FORWARD).extent.peak, 1001);
		assert_int_equal(phase(i, PHASE_EVALUATION).times, validated);
		assert_int_equal(step(i)->extent.peak, validated ? 7000 + i - 1 : 1200);
		assert_true(step(i)->ended);
	}
	clean();
}

/* A pass without gradients in each step is of its work: a teacher's. */
static void taught(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		forward_alone(2000);
		zero_grad(backward(forward(1000), 200));
		optimize(STEP_A, LINE_1, 300, 1);
	}
	end();
	assert_int_equal(steps_number(&steps), 3);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(phase(i, PHASE_EVALUATION).times, 0);
		assert_int_equal(phase(i, PHASE_FORWARD).extent.peak, 2000);
	}
	clean();
}

/* A call of backward() right after another one: it makes its first gradients, for two results. */
static void backward_twice(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		uint64_t a = forward(1000), b = forward(1000);

		for (int k = 0; k < 2; k++) {
			drop(alloc(1, FIRST_GRADS), FIRST_GRADS);
			drop(alloc(1, FIRST_GRADS), FIRST_GRADS);
			drop(backward(k ? b : a, 200 + 100 * k), LINE_1);
		}
	}
	end();
	assert_int_equal(m.spans.backwards, 6);
	assert_int_equal(steps_number(&steps), 3);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(phase(i, PHASE_BACKWARD).times, 2);
		assert_int_equal(phase(i, PHASE_BACKWARD).extent.peak, 2200);
	}
	clean();
}

/* Gradients of each loss by themselves, cleared before the next one goes over the same graph. */
static void backward_for_each_loss(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 2; i++) {
		uint64_t of[3] = { forward(1000), forward(1000), forward(1000) }, grad = 0;

		for (int k = 0; k < 3; k++) {
			grad = backward(of[k], 200);
			if (k < 2)
				zero_grad(grad);
		}
		optimize(STEP_A, LINE_1, 3, 1);
		zero_grad(grad);
	}
	end();
	assert_int_equal(steps_number(&steps), 2);
	assert_int_equal(phase(1, PHASE_BACKWARD).times, 3);
	assert_int_equal(phase(1, PHASE_OPTIMIZER).times, 1);
	clean();
}

static void profiled(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		feed((struct gmt_event){
			.kind = GMT_RANGE_BEGIN, .name = PROFILED, .arg0 = 900 + i });
		for (int k = 0; k < 2; k++) {
			backward(forward(50), 8);
			optimize(STEP_A, LINE_1, 3, 1);
		}
		feed((struct gmt_event){
			.kind = GMT_RANGE_END, .name = PROFILED, .arg0 = 900 + i });
	}
	end();
	assert_int_equal(steps.basis, STEPS_PROFILER);
	assert_int_equal(steps_number(&steps), 3);
	assert_int_equal(phase(3, PHASE_OPTIMIZER).times, 2);
	clean();
}

/* Stopped in the third step's backward pass. */
static void broken_off(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		backward(forward(50), 8);
		if (i < 2)
			optimize(STEP_A, LINE_1, 3, 1);
	}
	end();
	assert_int_equal(steps_number(&steps), 3);
	assert_true(step(2)->ended);
	assert_false(step(3)->ended);
	clean();
}

/* Whatever comes: spans and steps tile the run, their peaks are the run's peak. */
static void by_chance(void **state)
{
	struct chance c = { 7 };

	(void)state;
	for (int run = 0; run < 200; run++) {
		uint64_t peak = 0;
		int64_t growth = 0;

		begin();
		for (int i = 0; i < 300; i++) {
			struct gmt_event e = { 0 };

			e.kind = chance_below(&c, 54);
			e.thread = 1 + chance_below(&c, 3);
			e.addr = chance_below(&c, 20) << 12;
			e.size = chance_below(&c, 1000);
			e.arg0 = chance_below(&c, 6);
			e.name = chance_below(&c, 7);
			e.stack = chance_below(&c, 6);
			e.scope = chance_below(&c, 4) ? 0 : 1;
			feed(e);
		}
		end();
		for (size_t i = 0; i < steps.count; i++) {
			int64_t of_phases = 0;

			if (i)
				assert_int_equal(step(i)->first, step(i - 1)->last + 1);
			for (int p = 0; p < PHASES; p++)
				of_phases += phase(i, p).extent.growth;
			assert_int_equal(of_phases, step(i)->extent.growth);
			growth += of_phases;
			if (step(i)->extent.peak > peak)
				peak = step(i)->extent.peak;
		}
		assert_int_equal(step(steps.count - 1)->last, m.spans.count - 1);
		assert_int_equal(growth, m.devices[0].blocks.now);
		assert_int_equal(peak, m.devices[0].blocks.peak.bytes);
		clean();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_training),    cmocka_unit_test(accumulation),
		cmocka_unit_test(two_optimizers),    cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(left_out),	     cmocka_unit_test(inside_backward),
		cmocka_unit_test(optimizer_skipped), cmocka_unit_test(unseen_steps),
		cmocka_unit_test(no_optimizer),	     cmocka_unit_test(inference),
		cmocka_unit_test(validation),	     cmocka_unit_test(taught),
		cmocka_unit_test(backward_twice),    cmocka_unit_test(backward_for_each_loss),
		cmocka_unit_test(profiled),	     cmocka_unit_test(broken_off),
		cmocka_unit_test(by_chance),	     cmocka_unit_test(an_optimizer_of_ones_own)
	};

	return cmocka_run_group_tests(tests, told_set_up, told_tear_down);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Classes by use: blocks that updates, passes, or neither touch. */
#include "scenes.h"
#include "../../format/record.h"

enum { WEIGHT = 0x8000, GRADIENT = 0x9000, BLOCK = 0x1000 };

static void weight(void)
{
	born(WEIGHT, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	leaf(WEIGHT, 1);
}

/* A gradient arrives. */
static void backward(void)
{
	backward_pass();
	born_in_backward(GRADIENT, 0);
	used(0, ENGINE, GRADIENT, 0);
	grad(GRADIENT, 1);
}

static void clear(void)
{
	died(GRADIENT, script());
}

/* Moved from the host for two updates. */
static void state_of_two_updates(void)
{
	weight();
	born(BLOCK, script());
	for (int i = 0; i < 2; i++) {
		backward();
		used(script(), MAIN, BLOCK, GRADIENT);
		used(script(), MAIN, BLOCK, WEIGHT);
		clear();
	}
	now();
}

/* A number times the state, and that plus the gradient: another block in each step. */
static void state_made_anew(void)
{
	static const uint64_t blocks[] = { 0x2000, 0x3000, BLOCK };
	uint32_t line = statement(script(), "update", "m = b * m + g");

	weight();
	born(0x2000, line);
	used(line, MAIN, 0x2000, 0);
	for (int i = 0; i < 2; i++) {
		backward();
		born(0x7000, line);
		used(line, MAIN, blocks[i], 0x7000);
		born(blocks[i + 1], line);
		used(line, MAIN, 0x7000, GRADIENT);
		used(line, MAIN, 0x7000, blocks[i + 1]);
		died(0x7000, line);
		died(blocks[i], line);
		clear();
	}
	now();
}

/* Passes read what updates add up. */
static void state_that_passes_read(void)
{
	weight();
	born(BLOCK, script());
	for (int i = 0; i < 2; i++) {
		used(forward(), MAIN, BLOCK, WEIGHT);
		backward();
		used(script(), MAIN, BLOCK, GRADIENT);
		used(script(), MAIN, WEIGHT, GRADIENT);
		clear();
	}
	now();
}

/* A picture that requires grad, kept for two steps that update the weight. */
static void leaf_that_updates_pass_over(void)
{
	weight();
	born(BLOCK, script());
	for (int i = 0; i < 2; i++) {
		leaf(BLOCK, 2);
		used(forward(), MAIN, BLOCK, WEIGHT);
		backward();
		used(script(), MAIN, WEIGHT, GRADIENT);
		clear();
	}
	now();
}

/* Recorded without stacks: saved in each of three passes, and no leaf. */
static void weight_without_stack(void)
{
	weight();
	born(BLOCK, 0);
	for (unsigned i = 1; i <= 3; i++) {
		saved(BLOCK, i, GMT_SAVED_PLAIN);
		backward();
		clear();
	}
	now();
}

static void workspace_without_stack(void)
{
	weight();
	born_of_size(BLOCK, 8519680, 0);
	backward();
	used(0, ENGINE, BLOCK, GRADIENT);
	now();
}

/* A launch of an update names it, as it names old addresses now and then. */
static void workspace_that_updates_name(void)
{
	weight();
	born(BLOCK, join(native_frame(getCurrentCUDABlasHandle), script()));
	for (int i = 0; i < 2; i++) {
		backward();
		used(script(), MAIN, BLOCK, GRADIENT);
		used(script(), MAIN, WEIGHT, GRADIENT);
		clear();
	}
	now();
}

static const struct scene scenes[] = {
	{ "workspace", "workspace", "nothing", workspace_that_updates_name },
	{ "saved-again", "parameters", "plain-saved", weight_without_stack },
	{ "workspace-size", "workspace", "nothing", workspace_without_stack },
	{ "state-used", "optimizer_state", "state-read", state_of_two_updates },
	{ "state-used", "optimizer_state", "nothing", state_made_anew },
	{ "state-read", "optimizer_state", "nothing", state_that_passes_read },
	{ "plain-saved", "inputs", "nothing", leaf_that_updates_pass_over },
};

const struct scenes scenes_of_uses = { scenes, sizeof(scenes) / sizeof(scenes[0]) };

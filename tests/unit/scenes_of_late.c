/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes of the classifier's rules: recordings that begin late, where blocks without a stack were
 * there before, or end inside of a step. */
#include "scenes.h"
#include "../../format/record.h"

/* The scenes. The block in question lies at 0x1000. */

static void starts_with(uint64_t n)
{
	fact("state_events", n == 1 ? "1" : n == 2 ? "2" : "3");
	for (uint64_t i = 0; i < n; i++)
		born(0x1000 + i * 0x1000, 0);
}

static void old_state(void)
{
	starts_with(1);
	now();
	range(GMT_RANGE_BEGIN, 1, "Optimizer.step#AdamW.step");
	died(0x1000, script());
	range(GMT_RANGE_END, 1, "Optimizer.step#AdamW.step");
}

static void old_gradient(void)
{
	starts_with(1);
	now();
	died(0x1000, frame(script(), TORCH "optim/optimizer.py", "Optimizer.zero_grad"));
}

/* Parameter, then what the optimizer keeps of it. */
static void more_than_gradients(void)
{
	fact("state_events", "3");
	born(0x800, 0);
	born(0x1000 - 0x400, 0);
	born(0x1000, 0);
	born_in_backward(0x8000, 0);
	born(0xa000, script());
	now();
}

/* Four of a size: the weights, their state, and others that nothing tells apart from it. */
static void more_than_a_model_has(void)
{
	fact("state_events", "4");
	born(0x1000 - 0x800, 0);
	born(0x1000 - 0x400, 0);
	born(0x1000, 0);
	born(0x2000, 0);
	born_in_backward(0x8000, 0);
	born(0xa000, script());
	now();
}

/* Of the others the optimizer's state is none: it makes that in the recording. */
static void beside_state_of_a_step(void)
{
	fact("state_events", "2");
	born(0x1000 - 0x800, 0);
	born(0x1000, 0);
	born_in_backward(0x8000, 0);
	range(GMT_RANGE_BEGIN, 1, "Optimizer.step#Adam.step");
	born(0x9000, frame(script(), TORCH "optim/adam.py", "Adam._init_group"));
	range(GMT_RANGE_END, 1, "Optimizer.step#Adam.step");
	born(0xa000, script());
	now();
}

static void as_many_as_gradients(void)
{
	fact("state_events", "1");
	born(0x1000, 0);
	born_in_backward(0x8000, 0);
	born(0xa000, script());
	now();
}

static void as_large_as_a_workspace(void)
{
	fact("state_events", "1");
	born_of_size(0x1000, 8519680, 0);
	born(0x900000000, script());
	now();
}

static void held_as(unsigned as)
{
	fact("state_events", "1");
	born(0x1000, 0);
	held(0x1000, as);
	now();
}

static void held_parameter(void)
{
	held_as(GMT_HELD_PARAMETER);
}

static void held_gradient(void)
{
	held_as(GMT_HELD_GRADIENT);
}

static void held_state(void)
{
	held_as(GMT_HELD_STATE);
}

static void held_buffer(void)
{
	held_as(GMT_HELD_BUFFER);
}

static void held_cache(void)
{
	held_as(GMT_HELD_CACHE);
}

/* As large as what backward leaves behind, but none of the parameters. */
static void not_held_as_parameter(void)
{
	fact("state_events", "2");
	born(0x1000, 0);
	born(0x2000, 0);
	born_in_backward(0x8000, 0);
	born_in_backward(0x9000, 0);
	born(0xa000, script());
	held(0x2000, GMT_HELD_PARAMETER);
	now();
}

#define STEP "Optimizer.step#SGD.step"

static void state_begun(void)
{
	range(GMT_RANGE_BEGIN, 1, STEP);
	born(0x1000, join(native_frame(clones), script()));
	now();
}

static void state_begun_and_refused(void)
{
	state_begun();
	refused(script());
	range(GMT_RANGE_END, 1, STEP);
	died(0x1000, script());
}

/* Its line has copied in an earlier step: it is kept, or gone before that step ends. */
static void copied_in_two_steps(bool kept)
{
	uint32_t stack = join(native_frame(clones), script());

	range(GMT_RANGE_BEGIN, 7, STEP);
	born(0x2000, stack);
	if (!kept)
		died(0x2000, script());
	range(GMT_RANGE_END, 7, STEP);
	range(GMT_RANGE_BEGIN, 8, STEP);
	born(0x1000, stack);
	now();
}

static void state_begun_later(void)
{
	copied_in_two_steps(true);
}

static void copied_for_a_while(void)
{
	copied_in_two_steps(false);
}

static void computed_and_refused(void)
{
	range(GMT_RANGE_BEGIN, 1, STEP);
	born(0x1000, join(native_frame(squares), script()));
	now();
	refused(script());
	range(GMT_RANGE_END, 1, STEP);
}

/* The program goes on with what the refused step made. */
static void state_of_a_refused_step(void)
{
	computed_and_refused();
	born(0x2000, forward());
}

static const struct scene scenes[] = {
	{ "state-begun", "optimizer_state", "optimizer", state_begun },
	{ "state-begun", "optimizer_state", "optimizer", state_begun_and_refused },
	{ "state-begun", "optimizer_state", "optimizer", state_begun_later },
	{ "optimizer", "optimizer_temporaries", "nothing", copied_for_a_while },
	{ "optimizer", "optimizer_temporaries", "nothing", computed_and_refused },
	{ "state", "optimizer_state", "optimizer", state_of_a_refused_step },
	{ "held-parameter", "parameters", "nothing", held_parameter },
	{ "held-gradient", "gradients", "nothing", held_gradient },
	{ "held-state", "optimizer_state", "nothing", held_state },
	{ "held-buffer", "buffers", "nothing", held_buffer },
	{ "held-cache", "kv_cache", "nothing", held_cache },
	{ "nothing", "unknown", "nothing", not_held_as_parameter },
	{ "before-state", "optimizer_state", "nothing", old_state },
	{ "before-gradient", "gradients", "nothing", old_gradient },
	{ "before-rest", "optimizer_state", "nothing", more_than_gradients },
	{ "nothing", "unknown", "nothing", more_than_a_model_has },
	{ "nothing", "unknown", "nothing", beside_state_of_a_step },
	{ "before-weight", "parameters", "nothing", as_many_as_gradients },
	{ "before-workspace", "workspace", "nothing", as_large_as_a_workspace },
};

const struct scenes scenes_of_late = { scenes, sizeof(scenes) / sizeof(scenes[0]) };

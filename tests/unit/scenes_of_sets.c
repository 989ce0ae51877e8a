/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes of the classifier's rules: sets of blocks that one line makes, blocks that take others'
 * places by way of an optimizer or without a trace, what gathers from pass to pass. */
#include "scenes.h"

/* The scenes. The block in question lies at 0x1000. */

static void copies(void)
{
	uint32_t line = script();

	two_parameters();
	backward_pass();
	born(0x1000, line);
	born_of_size(0x2000, 8192, line);
	backward_pass();
	backward_pass();
	now();
}

/* Clones of the parameters, as averages of them begin. */
static void averages(void)
{
	uint32_t line = join(native_frame(clones), script());

	two_parameters();
	backward_pass();
	born(0x1000, line);
	born_of_size(0x2000, 8192, line);
	backward_pass();
	backward_pass();
	now();
}

/* A loop over two models, each with an average that one line of a library brings to the device. */
static void averages_of_two_models(void)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t caller = frame_at(script(), "/home/u/train.py", "train", 20 + i);
		uint32_t line = join(native_frame(moves), frame(caller, "/v/ema.py", "Ema.to"));

		two_parameters();
		born(i ? 0x20000 : 0x1000, line);
		born_of_size(i ? 0x30000 : 0x2000, 8192, line);
		for (unsigned k = 0; k < 3; k++) {
			born(0x9000, forward());
			backward_pass();
			died(0x9000, script());
		}
		if (!i)
			now();
	}
}

/* A weight gives way to its values in fewer bits and their scales, before any pass. */
static void converted(void)
{
	uint32_t line = script();

	some_tags();
	born_of_size(0x8000, 8192, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	born(0x1000, line);
	born_of_size(0x4000, 512, line);
	died(0x8000, script());
	now();
	born(0x9000, forward());
}

/* A model that is loaded gets its buffers anew. */
static void remade_buffer(void)
{
	uint32_t load = frame(script(), "/site-packages/transformers/modeling_utils.py",
			      "PreTrainedModel.from_pretrained");

	born(0x1000, statement(load, "Model.move", "value = torch.empty_like(buffer, device=d)"));
	now();
}

/* The interpreter ends and frees a weight as large as the last result. */
static void result_at_the_end(void)
{
	some_tags();
	born(0x8000, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	born(0x9000, forward());
	born(0x1000, script());
	now();
	died(0x8000, native_frame(maker));
	died(0x1000, native_frame(maker));
}

/* A line computes a tensor for each parameter after a backward pass, and frees them. */
static void set_by(uint32_t line)
{
	two_parameters();
	backward_pass();
	born(0x1000, line);
	born_of_size(0x2000, 8192, line);
	now();
	died(0x1000, line);
}

static void copied_gradients(void)
{
	set_by(join(native_frame(clones),
		    statement(0, "<module>", "grads = [p.grad.clone() for p in params]")));
}

/* Squares of gradients are no gradients, even where the line names p.grad. */
static void computed_of_gradients(void)
{
	set_by(join(native_frame(squares),
		    statement(0, "<module>", "sizes = [p.grad.square() for p in params]")));
}

/* Arithmetic of the script's own. */
static void update(void)
{
	set_by(statement(0, "<module>", "step = [m / (v.sqrt() + eps) for m, v in zip(ms, vs)]"));
}

/* No module made any: gradients say how large parameters are. */
static void copies_of_bare_tensors(void)
{
	uint32_t line = script();

	born(0x1000, line);
	born_of_size(0x2000, 8192, line);
	some_tags();
	for (uint64_t i = 0; i < 2; i++) {
		backward_pass();
		born_in_backward(0x4000 + i * 0x1000, 0);
		grad(0x4000 + i * 0x1000, 7);
	}
	born(0x3000, script());
	backward_pass();
	now();
}

/* All of them in one. */
static void flat_gradient(void)
{
	static const char text[] = "flat = torch.cat([p.grad.flatten() for p in ps])";

	some_tags();
	born_in_backward(0x4000, 0);
	grad(0x4000, 7);
	born_of_size(0x1000, 16384, statement(0, "<module>", text));
	now();
}

/* The script assigns it to a parameter's grad, and zero_grad gives it up. */
static void cleared_of_the_script(void)
{
	some_tags();
	backward_pass();
	born(0x1000, script());
	now();
	died(0x1000, frame(script(), TORCH "optim/optimizer.py", "Optimizer.zero_grad"));
}

/* A loss computes the head's gradient in its forward pass, and zero_grad gives it up. */
static void cleared_of_a_function(void)
{
	uint32_t apply = frame(forward(), TORCH "autograd/function.py", "Function.apply");
	uint32_t clear = frame(script(), TORCH "optim/optimizer.py", "Optimizer.zero_grad");
	uint32_t inside = frame(apply, "/home/u/loss.py", "Loss.forward");

	born(0x8000, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	born(0x1000, inside);
	born(0x2000, inside);
	now();
	died_in_backward(0x2000);
	died(0x1000, clear);
}

/* The graph is kept, and with it the leaf's node, when other memory becomes the leaf. */
static void moved_leaf(void)
{
	some_tags();
	born(0x8000, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	leaf(0x8000, 1);
	backward_pass();
	born(0x1000, script());
	backward_pass();
	moved(0x1000, 1);
	now();
}

/* A class of the script's that clears gradients and leads to no pass: an optimizer's methods. */
static uint32_t climb(void)
{
	uint32_t line = frame(script(), "/home/u/sam.py", "Sam.climb");

	died(0x5000, frame(line, TORCH "optim/optimizer.py", "Optimizer.zero_grad"));
	return line;
}

static void state_by_methods(void)
{
	uint32_t line = climb();

	some_tags();
	backward_pass();
	born(0x1000, line);
	now();
	born(0x2000, forward());
}

/* Keras names the step of its optimizers `apply`; what it makes in the first one it keeps. */
static uint32_t applied(const char *file, const char *method)
{
	return frame(frame(script(), file, method), "/v/keras/src/backend/torch/core.py", "zeros");
}

static void state_by_applying(void)
{
	uint32_t line = applied("/v/keras/src/optimizers/base_optimizer.py", "BaseOptimizer.apply");

	some_tags();
	backward_pass();
	born(0x1000, line);
	born(0x2000, forward());
	backward_pass();
	now();
}

/* Much else is applied. */
static void mask_by_applying(void)
{
	uint32_t line = applied("/v/masks.py", "Mask.apply");

	some_tags();
	born(0x1000, line);
	born(0x2000, forward());
	backward_pass();
	now();
}

/* An optimizer around another makes room for what it sends. */
static void bucket_of_an_optimizer(void)
{
	uint32_t line =
		statement(script(), "Around.prepare", "bucket.buffer = torch.empty(self.size)");

	some_tags();
	died(0x5000, frame(line, TORCH "optim/optimizer.py", "Optimizer.zero_grad"));
	born(0x1000, line);
	now();
	backward_pass();
	born(0x2000, forward());
}

/* The weights of before the climb come back as the weights. */
static void swapped_in(void)
{
	uint32_t line = climb();

	born(0x8000, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	born(0x1000, line);
	born(0x2000, forward());
	backward_pass();
	died(0x8000, line);
	now();
}

/* copy.deepcopy of a state_dict, an ordered dictionary; or of what a module keeps in a plain one.
 */
static uint32_t copied_dict(bool plain)
{
	uint32_t copy = frame(script(), "/usr/lib/python3.11/copy.py", "_reconstruct");

	if (plain)
		copy = frame(copy, "/usr/lib/python3.11/copy.py", "_deepcopy_dict");
	return frame(copy, TORCH "_tensor.py", "Tensor.__deepcopy__");
}

static void best_weights(void)
{
	uint32_t line = join(native_frame(makes_storage), copied_dict(false));

	two_parameters();
	backward_pass();
	born(0x1000, line);
	born_of_size(0x2000, 8192, line);
	backward_pass();
	backward_pass();
	now();
}

static void copied_buffers(void)
{
	uint32_t line = join(native_frame(makes_storage), copied_dict(true));

	two_parameters();
	born(0x1000, line);
	born_of_size(0x2000, 8192, line);
	backward_pass();
	backward_pass();
	now();
}

static const struct scene scenes[] = {
	{ "copies", "optimizer_state", "copied-gradients", copies },
	{ "averages", "parameters", "copies", averages },
	{ "averages", "parameters", "copies", averages_of_two_models },
	{ "replaced-weight", "parameters", "prepared", converted },
	{ "averages", "parameters", "copies", best_weights },
	{ "copies", "optimizer_state", "nothing", copies_of_bare_tensors },
	{ "buffer-frames", "buffers", "nothing", copied_buffers },
	{ "copied-gradients", "gradients", "update", copied_gradients },
	{ "copied-gradients", "gradients", "nothing", flat_gradient },
	{ "update", "optimizer_temporaries", "computed-outside", update },
	{ "update", "optimizer_temporaries", "computed-outside", computed_of_gradients },
	{ "cleared", "gradients", "computed-outside", cleared_of_the_script },
	{ "cleared", "gradients", "activation-result", cleared_of_a_function },
	{ "buffer-frames", "buffers", "nothing", remade_buffer },
	{ "computed-outside", "forward_temporaries", "nothing", result_at_the_end },
	{ "replaced-weight", "parameters", "plain-saved", moved_leaf },
	{ "replaced-weight", "parameters", "state-frames", swapped_in },
	{ "state-frames", "optimizer_state", "optimizer", state_by_methods },
	{ "state", "optimizer_state", "optimizer", state_by_applying },
	{ "prepared", "inputs", "nothing", mask_by_applying },
	{ "communication", "communication", "optimizer", bucket_of_an_optimizer },
};

const struct scenes scenes_of_sets = { scenes, sizeof(scenes) / sizeof(scenes[0]) };

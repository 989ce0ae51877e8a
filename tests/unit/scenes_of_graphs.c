/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More scenes for the rules of the classifier: what shows that a graph holds a block where no tag
 * says so, and what takes the place of something else.
 */
#include "scenes.h"
#include "../../format/record.h"

/* A pass of some blocks that backward walks, but for the one in question, which a variable holds.
 */
static void walked_pass(uint32_t stack, uint32_t others)
{
	born(0x9000, others);
	born(0x1000, stack);
	now();
	died_in_backward(0x9000);
	backward_pass();
	died(0x1000, script());
}

static void result_that_is_saved(void)
{
	walked_pass(join(native_frame(rectifies), forward()), forward());
}

/* The same lines made what backward gave up. */
static void result_of_walked_lines(void)
{
	uint32_t inside = forward();

	walked_pass(inside, inside);
}

/* Nothing walks the second pass back, and what it made is there when it is over. */
static void kept_graph(void)
{
	uint32_t call = frame(0, TORCH "nn/modules/module.py", "Module._call_impl");
	uint32_t inside = frame(call, "/home/u/net.py", "Net.forward");

	born(0x9000, inside);
	died_in_backward(0x9000);
	for (uint64_t i = 0; i < 8; i++)
		born(0x1000 * (i + 1), inside);
	now();
	born(0xf0000, script());
	born(0xe0000, forward());
	died(0x1000, script());
}

/* The script computes with what has a graph, outside of modules. */
static void graph_of_the_script(void)
{
	born(0x2000, script());
	born(0x1000, join(native_frame(computes), script()));
	now();
	died_in_backward(0x2000);
	died(0x1000, script());
}

/* Of a module's buffer a new one is made in each forward pass. */
static void replaced_buffer(void)
{
	uint32_t inside = forward();

	some_tags();
	born(0x8000,
	     statement(script(), "Net.__init__", "self.register_buffer('queue', torch.zeros(10))"));
	for (uint64_t i = 0; i < 2; i++) {
		born(0xa000, script());
		born(i ? 0x1000 : 0x9000, inside);
		died(i ? 0x9000 : 0x8000, inside);
		died(0xa000, script());
	}
	now();
}

/* All weights become views of one block that was made for them. */
static void replaced_flat_weight(void)
{
	uint32_t made = frame(script(), TORCH "nn/modules/module.py", "Module._apply");
	uint32_t setup = frame(script(), TORCH "optim/optimizer.py", "Optimizer.load_state_dict");

	some_tags();
	born(0x8000, made);
	born(0x9000, made);
	born_of_size(0x1000, 8192, setup);
	born_of_size(0x4000, 16384, setup);
	died(0x8000, setup);
	died(0x9000, setup);
	now();
}

/* Only passes forward: what comes to the device after one is the batch of the next. */
static void prepared_again(void)
{
	born(0x2000, forward());
	born(0x3000, join(native_frame(moves), script()));
	born(0x1000, join(native_frame(computes), script()));
	now();
	born(0x4000, forward());
	died(0x1000, script());
}

/* Computed of the batch, and held by nothing but the graph. */
static void step_to_the_model(void)
{
	born(0x1000, join(native_frame(computes), script()));
	saved(0x1000, 1, GMT_SAVED_PLAIN);
	now();
	died_in_backward(0x1000);
}

/* Labels in another form, for the loss: made after the model's answer, held by the graph alone. */
static void labels_of_the_loss(void)
{
	born(0x2000, forward());
	born(0x1000, join(native_frame(maker), script()));
	saved(0x1000, 1, GMT_SAVED_PLAIN);
	now();
	died_in_backward(0x1000);
}

/* Gradients that torch.autograd.grad gives out belong to no parameter. */
static void asked_gradient(void)
{
	born(0x2000, forward());
	born(0x3000, frame(script(), TORCH "autograd/__init__.py", "grad"));
	born_in_backward(0x1000, 0);
	now();
	died(0x1000, script());
}

/* A Function that computes its forward pass again asks for gradients and hands them on. */
static void gradient_by_a_function(void)
{
	uint32_t node = frame(frame(0, TORCH "autograd/function.py", "BackwardCFunction.apply"),
			      "/home/u/nn.py", "CheckpointFunction.backward");

	born(0x2000, forward());
	born(0x3000, frame(script(), TORCH "autograd/__init__.py", "backward"));
	born_in_backward(0x1000, frame(node, TORCH "autograd/__init__.py", "grad"));
	now();
	backward_pass();
	born(0x4000, forward());
}

/* A parameter that grows while it is trained. */
static void parameter_made_late(void)
{
	born(0x2000, forward());
	backward_pass();
	born(0x1000, statement(0, "<module>", "new = nn.Parameter(torch.cat([old, more]))"));
	now();
	born(0x3000, forward());
	backward_pass();
}

static void buffer_of_no_module(void)
{
	some_tags();
	born(0x1000,
	     statement(script(), "Table.setup", "self.register_buffer('k', torch.zeros(10))"));
	now();
}

static void cache_of_the_script(void)
{
	uint32_t line = statement(0, "<module>", "k_cache = [torch.zeros(16, 16).cuda()]");

	born(0x1000, join(native_frame(maker), line));
	now();
}

/* Engines make it in a function that is called so. */
static void cache_of_a_function(void)
{
	uint32_t line = statement(0, "allocate_kv_cache", "tensor = torch.zeros(16, 16)");

	born(0x1000, join(native_frame(maker), line));
	now();
}

/* The newer way to say that a tensor is a buffer; a memory for replays is none. */
static void buffer_by_its_class(void)
{
	forward();
	born(0x1000,
	     statement(script(), "Net.__init__", "self.angles = nn.Buffer(torch.randn(10))"));
	now();
}

/* A module makes a table of itself before anything runs. */
static void table_of_module(void)
{
	uint32_t inside = forward();

	some_tags();
	born(0x1000, statement(script(), "Net.setup_caches", "self.angles = torch.randn(10)"));
	now();
	born(0x2000, inside);
}

/* Keys and values of the prompt lie in what computed them; those of the next pass are appended. */
static void first_keys(void)
{
	uint32_t inside = forward(), append = join(native_frame(appends), inside);

	born(0x1000, inside);
	born(0x2000, inside);
	now();
	for (uint64_t i = 0; i < 2; i++) {
		born(0x8000 + i * 0x4000, script());
		born(0x9000 + i * 0x4000, append);
		born(0xa000 + i * 0x4000, inside);
		born(0x7000 + i * 0x4000, script());
		died(i ? 0x9000 : 0x1000, script());
	}
}

static const struct scene scenes[] = {
	{ "buffer-frames", "buffers", "prepared", table_of_module },
	{ "buffer-frames", "buffers", "nothing", buffer_by_its_class },
	{ "cache-life", "kv_cache", "forward", first_keys },
	{ "replaced-weight", "parameters", "state-frames", replaced_flat_weight },
	{ "replaced-buffer", "buffers", "forward", replaced_buffer },
	{ "activation-result", "activations", "forward", result_that_is_saved },
	{ "activation-result", "activations", "forward", result_of_walked_lines },
	{ "activation-graph", "activations", "forward", kept_graph },
	{ "activation-script", "activations", "computed-outside", graph_of_the_script },
	{ "buffer-frames", "buffers", "nothing", buffer_of_no_module },
	{ "cache-statement", "kv_cache", "nothing", cache_of_the_script },
	{ "cache-statement", "kv_cache", "nothing", cache_of_a_function },
	{ "prepared", "inputs", "computed-outside", prepared_again },
	{ "saved", "activations", "computed-outside", step_to_the_model },
	{ "saved", "activations", "computed-outside", labels_of_the_loss },
	{ "backward", "backward_temporaries", "nothing", asked_gradient },
	{ "gradient-life", "gradients", "backward", gradient_by_a_function },
	{ "leaf-statement", "parameters", "prepared", parameter_made_late },
};

const struct scenes scenes_of_graphs = { scenes, sizeof(scenes) / sizeof(scenes[0]) };

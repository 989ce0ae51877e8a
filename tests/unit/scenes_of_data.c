/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes of the classifier's rules: what is read from files, sampled from buffers and kept between
 * passes, beside weights of the same sizes. */
#include "scenes.h"
#include "../../format/record.h"

/* The scenes. The block in question lies at 0x1000. */

/* Batches of two tensors that are by chance as large as the parameters; so many backward passes
 * with each. */
static void batches(void *(*function)(void), unsigned passes)
{
	uint32_t line = join(native_frame(function), script());

	two_parameters();
	for (unsigned i = 0; i < 3; i++) {
		born(0x1000, line);
		born_of_size(0x2000, 8192, line);
		born(0x9000, forward());
		for (unsigned k = 0; k < passes; k++)
			backward_pass();
		died(0x9000, script());
		if (i == 1)
			now();
		died(0x1000, script());
		died(0x2000, script());
	}
}

static void batches_as_large_as_weights(void)
{
	batches(moves, 1);
}

/* torch.tensor(array, device=...), for a critic and an actor. */
static void minibatches_as_large_as_weights(void)
{
	batches(brings, 2);
}

/* One line brings many tensors of two sizes to the device, then passes use them. */
static void loaded_by_a_line(void)
{
	uint32_t line = join(native_frame(moves), script());

	some_tags();
	born(0x1000, line);
	for (uint64_t i = 0; i < 4; i++)
		born_of_size(0x10000 + i * 0x10000, 8192, line);
	for (uint64_t i = 0; i < 3; i++) {
		born(0x9000, forward());
		died(0x9000, script());
		born(0xa000, script());
		died(0xa000, script());
	}
	now();
}

/* No module made any: the file's tensors are the weights. */
static void loaded_and_assigned(void)
{
	some_tags();
	born(0x1000, frame(script(), TORCH "serialization.py", "load"));
	now();
	backward_pass();
}

/* The file has the weights, copied into the model, and two moments of them, of which Adam makes
 * none. */
static void moments_from_a_file(void)
{
	uint32_t line = frame(script(), TORCH "serialization.py", "load");

	born(0x9000, script());
	leaf(0x9000, 1);
	born(0x3000, line);
	born(0x1000, line);
	born(0x2000, line);
	backward_pass();
	range(GMT_RANGE_BEGIN, 1, "Optimizer.step#AdamW.step");
	range(GMT_RANGE_END, 1, "Optimizer.step#AdamW.step");
	now();
}

/* After each pass the winners' rows of all keys and values. */
static void rows_of_beams(void)
{
	uint32_t line = join(native_frame(takes_rows), script()), inside = forward();
	uint64_t at = 0;

	for (uint64_t i = 0; i < 3; i++) {
		uint64_t before = at;

		born(0x9000, inside);
		at = i == 2 ? 0x1000 : 0x20000 + i * 0x10000;
		for (uint64_t k = 0; k < 4; k++)
			born(at + k * 0x1000, line);
		for (uint64_t k = 0; before && k < 4; k++)
			died(before + k * 0x1000, script());
		died(0x9000, script());
	}
	now();
	born(0xa000, script());
	born(0x9000, inside);
}

/* A checkpoint, or a batch, is read from a file when passes are over, and one pass is made of it.
 */
static void read_for_a_pass(uint64_t first, uint64_t second)
{
	uint32_t line = frame(script(), TORCH "serialization.py", "load");

	two_parameters();
	born(0x9000, forward());
	backward_pass();
	died(0x9000, script());
	born_of_size(0x1000, first, line);
	born_of_size(0x10000, second, line);
	born_of_size(0x20000, first, line);
	now();
	born(0x9000, forward());
	died(0x9000, script());
	died(0x1000, script());
	died(0x10000, script());
}

static void model_read_late(void)
{
	read_for_a_pass(4096, 8192);
}

static void batch_read_late(void)
{
	read_for_a_pass(3072, 1536);
}

/* Minibatches: rows of what a replay buffer has on the device, and a step with each. */
static void rows_of_minibatches(void)
{
	uint32_t line = join(native_frame(takes_rows), script());

	some_tags();
	for (uint64_t i = 0; i < 3; i++) {
		born(0x9000, forward());
		died(0x9000, script());
		for (uint64_t k = 0; k < 4; k++)
			born(0x1000 + k * 0x1000, line);
		if (i == 2)
			now();
		born(0xa000, forward());
		for (uint64_t k = 0; k < 4; k++)
			died(0x1000 + k * 0x1000, script());
		backward_pass();
		died(0xa000, script());
	}
}

/* Room for a replay buffer: one large tensor, and small ones that are by chance as large as biases.
 */
static void room_as_large_as_weights(void)
{
	uint32_t line = join(native_frame(maker), script());

	two_parameters();
	born_of_size(0x100000, 1 << 20, line);
	born(0x1000, line);
	born_of_size(0x2000, 8192, line);
	born_of_size(0x4000, 8192, line);
	for (unsigned i = 0; i < 3; i++) {
		born(0x9000, forward());
		backward_pass();
		died(0x9000, script());
	}
	now();
}

/* kept.append(y.half()) after each step */
static void gathered(void)
{
	uint32_t line = join(native_frame(computes), script());

	some_tags();
	for (uint64_t i = 0; i < 3; i++) {
		born(0x9000, forward());
		backward_pass();
		born(i == 2 ? 0x1000 : 0x20000 + i * 0x10000, line);
		died(0x9000, script());
	}
	now();
	born(0x9000, forward());
}

/* As many as there are weights of a size; autograd saves nothing, and passes come and go. */
static void keys_and_values(void *(*makes)(void), bool trained)
{
	uint32_t made = frame(script(), TORCH "nn/modules/module.py", "Module._apply");
	uint32_t line = join(native_frame(makes), script());

	for (uint64_t i = 0; i < 4; i++)
		born(0x8000 + i * 0x1000, made);
	born_of_size(0x1000, 1 << 16, line);
	for (uint64_t i = 1; i < 4; i++)
		born_of_size(i << 20, 1 << 16, line);
	for (unsigned i = 0; i < 3; i++) {
		born(0x5000, forward());
		died(0x5000, script());
		born(0x6000, script());
		died(0x6000, script());
	}
	now();
	if (trained)
		backward_pass();
}

static void served(void)
{
	keys_and_values(zeros, false);
}

static void constants_for_layers(void)
{
	keys_and_values(maker, false);
}

static void batches_for_layers(void)
{
	keys_and_values(zeros, true);
}

/* A table of embeddings that is updated in backward keeps the optimizer's state itself. */
static void state_of_a_table(void)
{
	uint32_t made = statement(frame(script(), TORCH "nn/modules/sparse.py", "Table.__init__"),
				  "make_state", "make_state(self.register, prefix=\"momentum1\")");

	some_tags();
	born(0x1000, join(native_frame(zeros), made));
	saved(0x1000, 1, GMT_SAVED_PLAIN);
	now();
}

/* A module of that name has a setting which is called momentum. */
static void weight_with_momentum(void)
{
	uint32_t made = statement(frame(script(), TORCH "nn/modules/norm.py", "Norm.__init__"),
				  "make_norm", "make_norm(momentum=c[\"momentum\"])");

	born(0x1000, join(native_frame(zeros), made));
	now();
}

/* Each gradient is added to its part of one buffer, by a hook. */
static void buffer_of_gradients(void)
{
	some_tags();
	born(0x1000, join(native_frame(zeros), statement(script(), "Buffer.__init__",
							 "self.grad_data = torch.zeros(16)")));
	for (unsigned i = 0; i < 3; i++) {
		born(0x9000, forward());
		backward_pass();
		died(0x9000, script());
	}
	now();
}

static const struct scene scenes[] = {
	{ "fused-state", "optimizer_state", "module-frames", state_of_a_table },
	{ "module-frames", "parameters", "nothing", weight_with_momentum },
	{ "gradient-partition", "gradients", "made-outside", buffer_of_gradients },
	{ "cache-layers", "kv_cache", "made-outside", served },
	{ "made-outside", "inputs", "prepared", batches_for_layers },
	{ "made-outside", "inputs", "prepared", constants_for_layers },
	{ "made-outside", "inputs", "prepared", batches_as_large_as_weights },
	{ "weights-loaded", "parameters", "made-outside", loaded_by_a_line },
	{ "weights-read", "parameters", "prepared", model_read_late },
	{ "prepared", "inputs", "computed-outside", batch_read_late },
	{ "made-outside", "inputs", "prepared", minibatches_as_large_as_weights },
	{ "weights-read", "parameters", "nothing", loaded_and_assigned },
	{ "state-loaded", "optimizer_state", "weights-read", moments_from_a_file },
	{ "cache-rows", "kv_cache", "computed-outside", rows_of_beams },
	{ "prepared", "inputs", "computed-outside", rows_of_minibatches },
	{ "made-outside", "inputs", "prepared", room_as_large_as_weights },
	{ "computed-outside", "forward_temporaries", "nothing", gathered },
};

const struct scenes scenes_of_data = { scenes, sizeof(scenes) / sizeof(scenes[0]) };

/* SPDX-License-Identifier: Apache-2.0 */
/* For each rule of the classifier a short life of a block that it, and no other, decides; those on
 * graphs that nobody tells of are in scenes_of_graphs.c. */
#include "scenes.h"
#include "../../format/record.h"

/* The scenes. The block in question lies at 0x1000. */

static void leaf_of_module(void)
{
	born(0x1000, frame(frame(forward(), TORCH "nn/modules/lazy.py", "LazyLinear.materialize"),
			   TORCH "nn/parameter.py", "Parameter.__new__"));
	leaf(0x1000, 1);
	now();
}

static void leaf_elsewhere(void)
{
	born(0x1000, script());
	for (int i = 0; i < 3; i++) {
		leaf(0x1000, 1);
		backward_pass();
	}
	now();
}

/* The graph is kept until the next one is there, and with it the leaf's node. */
static void leaf_told_once(void)
{
	born(0x1000, script());
	leaf(0x1000, 1);
	for (int i = 0; i < 4; i++) {
		backward_pass();
		born_in_backward(0x2000, 0);
		grad(0x2000, 1);
		died(0x2000, script());
	}
	now();
}

/* A module's weight is replaced by a new tensor in each forward pass. */
static void replaced_weight(void)
{
	uint32_t inside = forward();

	some_tags();
	born(0x8000, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	for (uint64_t i = 0; i < 2; i++) {
		born(0xa000, script());
		born(i ? 0x1000 : 0x9000, inside);
		died(i ? 0x9000 : 0x8000, inside);
		died(0xa000, script());
	}
	now();
}

/* What an optimizer keeps is replaced by a larger one, with its parameter. */
static void replaced_state(void)
{
	some_tags();
	range(GMT_RANGE_BEGIN, 1, "Optimizer.step#AdamW.step");
	born(0x8000, script());
	range(GMT_RANGE_END, 1, "Optimizer.step#AdamW.step");
	backward_pass();
	born_of_size(0x1000, 6144, script());
	died(0x8000, script());
	now();
}

static void unsharded(void)
{
	born(0x1000, frame(forward(), TORCH "distributed/fsdp/_fully_shard/_fsdp_param.py",
			   "FSDPParam.alloc_all_gather_outputs"));
	now();
}

static void gradient(void)
{
	leaf(0x9000, 1);
	born_in_backward(0x1000, 0);
	grad(0x1000, 1);
	now();
}

/* No tag tells of a sparse gradient, but where it is freed does: of those of before, or itself. */
static void cleared(void)
{
	uint32_t clear = frame(script(), TORCH "optim/optimizer.py", "Optimizer.zero_grad");
	uint32_t node = native_frame(computes);

	some_tags();
	born_in_backward(0x2000, node);
	died(0x2000, clear);
	born_in_backward(0x1000, node);
	now();
}

static void gradient_by_statement(void)
{
	some_tags();
	born(0x1000, statement(script(), "setup", "p.grad = torch.zeros_like(p)"));
	now();
}

static void leaf_by_statement(void)
{
	born(0x1000, statement(0, "<module>", "w = torch.randn(10, requires_grad=True)"));
	now();
}

/* The gradient that arrives is given up in backward; the bucket stays. */
static void buckets(void)
{
	born(0x1000, frame(script(), TORCH "nn/parallel/distributed.py", "_ddp_init_helper"));
	leaf(0x9000, 1);
	born_in_backward(0x2000, 0);
	grad(0x2000, 1);
	died_in_backward(0x2000);
	now();
}

static void reduced(void)
{
	born_in_backward(0x1000,
			 frame(script(), TORCH "distributed/fsdp/_fully_shard/_fsdp_collectives.py",
			       "foreach_reduce"));
	now();
	died(0x1000, script());
}

static void loaded(void)
{
	born(0x1000, frame(script(), TORCH "serialization.py", "load"));
	now();
}

static void state(void)
{
	range(GMT_RANGE_BEGIN, 1, "Optimizer.step#AdamW.step");
	born(0x1000, script());
	range(GMT_RANGE_END, 1, "Optimizer.step#AdamW.step");
	now();
}

static void state_by_frames(void)
{
	born(0x1000, frame(script(), TORCH "optim/optimizer.py", "Optimizer.load_state_dict"));
	now();
}

static void buffer_by_frames(void)
{
	forward();
	born(0x1000, statement(script(), "Net.__init__",
			       "self.register_buffer('order', torch.arange(10))"));
	now();
}

static void cache_by_statement(void)
{
	forward();
	born(0x1000, statement(script(), "Net.__init__", "self.cache_k = torch.zeros(16)"));
	now();
}

/* Room that the first pass makes and the later ones find. */
static void cache_in_forward(void)
{
	uint32_t line = statement(forward(), "Net.keep", "self.kv_cache = torch.zeros(16)");

	born(0x1000, join(native_frame(maker), line));
	for (uint64_t i = 0; i < 3; i++) {
		born(0xa000, script());
		died(0xa000, script());
		born(0x9000, forward());
		died(0x9000, script());
	}
	now();
}

static void parameter_by_frames(void)
{
	born(0x1000, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	now();
}

static void workspace(void)
{
	born_in_backward(0x1000, native_frame(getCurrentCUDABlasHandle));
	now();
	born(0x2000, forward());
}

/* A pass finds it there. */
static void made_outside(void)
{
	some_tags();
	born(0x1000, native_frame(maker));
	born(0x2000, forward());
	now();
}

/* No pass yet, but a model. */
static void made_for_a_model(void)
{
	born(0x8000, frame(script(), TORCH "nn/modules/module.py", "Module._apply"));
	born(0x1000, native_frame(maker));
	now();
}

/* Passes found the others of its line. */
static void made_again(void)
{
	uint32_t line = native_frame(maker);

	some_tags();
	born(0x3000, line);
	born(0x2000, forward());
	died(0x3000, script());
	born(0x1000, line);
	now();
}

/* No model, no pass: the script only holds it. */
static void only_held(void)
{
	born(0x1000, native_frame(maker));
	now();
}

/* One that made no others, and no pass came. */
static void held_after_the_passes(void)
{
	born(0x2000, forward());
	born(0x1000, native_frame(maker));
	now();
}

static void input(void)
{
	born(0x1000, script());
	saved(0x1000, 1, GMT_SAVED_PLAIN);
	now();
}

static void activation(void)
{
	born(0x1000, forward());
	saved(0x1000, 1, 0);
	now();
}

/* Saved though nothing differentiable made it, but computed from what a forward pass gave. */
static void answer_of_another(void)
{
	born(0x2000, forward());
	born(0x1000, join(native_frame(computes), script()));
	saved(0x1000, 1, GMT_SAVED_PLAIN);
	now();
}

static void packed(void)
{
	born_in_backward(0x1000,
			 frame(script(), TORCH "utils/checkpoint.py", "X.<locals>.recompute_fn"));
	saved(0x1000, 0, GMT_SAVED_PACKED);
	now();
}

static void saved_soon(void)
{
	born(0x1000, forward());
	now();
	saved(0x1000, 1, GMT_SAVED_OUTPUT);
}

static void gradient_by_life(void)
{
	born_in_backward(0x1000, 0);
	now();
	died(0x1000, script());
}

/* The recording ends in the pass: nothing shows that it stays. */
static void made_in_the_last_pass(void)
{
	born_in_backward(0x1000, 0);
	now();
}

static void activation_by_life(void)
{
	born(0x1000, forward());
	now();
	died_in_backward(0x1000);
}

static void cache_by_frames(void)
{
	born(0x1000, frame(forward(), "/home/u/net.py", "KVCache.update"));
	now();
}

/* A compiler's cache runs the model. */
static void pass_of_a_cached_artifact(void)
{
	born(0x1000, frame(forward(), "/x/torch/_inductor/standalone_compile.py",
			   "CacheCompiledArtifact.__call__"));
	now();
}

/* Keys are appended to those of before, which this line then gives up. */
static void keys_given_up_by(uint32_t line)
{
	uint32_t inside = forward(), append = join(native_frame(appends), inside);

	born(0x1000, append);
	born(0x4000, inside);
	now();
	born(0x8000, script());
	born(0x2000, append);
	died(0x1000, line);
}

/* The pass itself, */
static void cache_by_life(void)
{
	keys_given_up_by(forward());
}

/* or its caller, after it. */
static void cache_by_appending(void)
{
	keys_given_up_by(script());
}

/* A module keeps what it computed last, and replaces it in its next pass. */
static void attribute_of_a_module(void)
{
	uint32_t inside = forward();

	some_tags();
	born(0x1000, inside);
	born(0x4000, inside);
	now();
	born(0x8000, script());
	born(0x2000, inside);
	died(0x1000, inside);
}

/* Results that a pass appends to one another; the script has them until the next ones are there. */
static void appended_results(void)
{
	uint32_t append = join(native_frame(appends), forward());

	some_tags();
	born(0x1000, append);
	now();
	born(0x8000, script());
	born(0x2000, append);
	died(0x1000, script());
}

static void parameter_by_life(void)
{
	born(0x1000, script());
	for (int i = 0; i < 2; i++) {
		born(0x2000 + i * 0x1000, forward());
		backward_pass();
	}
	now();
}

static void communication(void)
{
	born_in_backward(0x1000,
			 frame(script(), TORCH "distributed/distributed_c10d.py", "all_reduce"));
	now();
	born(0x2000, forward());
}

static void optimizer_temporary(void)
{
	range(GMT_RANGE_BEGIN, 1, "Optimizer.step#AdamW.step");
	born(0x1000, script());
	now();
	died(0x1000, script());
	range(GMT_RANGE_END, 1, "Optimizer.step#AdamW.step");
}

static void backward_temporary(void)
{
	some_tags();
	born_in_backward(0x1000, 0);
	now();
	died_in_backward(0x1000);
}

/* An optimizer around another one copies gradients into a partition of its own. */
static void gradient_partition(void)
{
	some_tags();
	born_in_backward(0x1000,
			 frame(script(), "/home/u/zero.py", "Zero.copy_grads_in_partition"));
	backward_pass();
	now();
}

static void forward_temporary(void)
{
	born(0x1000, forward());
	now();
	died(0x1000, forward());
}

/* The batch is normalised before the model sees it. */
static void prepared(void)
{
	some_tags();
	born(0x1000, script());
	now();
	born(0x2000, forward());
	died(0x1000, script());
}

static void computed_outside(void)
{
	some_tags();
	born(0x2000, forward());
	born(0x1000, script());
	now();
	died(0x1000, script());
}

static void nothing(void)
{
	some_tags();
	born(0x1000, script());
	now();
}

static const struct scene scenes[] = {
	{ "leaf", "parameters", "module-frames", leaf_of_module },
	{ "leaf", "parameters", "plain-saved", leaf_elsewhere },
	{ "leaf", "parameters", "plain-saved", leaf_told_once },
	{ "replaced-weight", "parameters", "forward", replaced_weight },
	{ "replaced-state", "optimizer_state", "nothing", replaced_state },
	{ "unsharded", "parameters", "forward", unsharded },
	{ "gradient", "gradients", "backward", gradient },
	{ "cleared", "gradients", "backward", cleared },
	{ "gradient-statement", "gradients", "nothing", gradient_by_statement },
	{ "leaf-statement", "parameters", "nothing", leaf_by_statement },
	{ "gradient-buckets", "gradients", "communication", buckets },
	{ "reduced", "gradients", "communication", reduced },
	{ "weights-read", "parameters", "nothing", loaded },
	{ "made-outside", "inputs", "nothing", made_outside },
	{ "made-outside", "inputs", "nothing", made_for_a_model },
	{ "made-outside", "inputs", "nothing", made_again },
	{ "state", "optimizer_state", "optimizer", state },
	{ "state-frames", "optimizer_state", "optimizer", state_by_frames },
	{ "buffer-frames", "buffers", "nothing", buffer_by_frames },
	{ "module-frames", "parameters", "nothing", parameter_by_frames },
	{ "workspace", "workspace", "gradient-life", workspace },
	{ "plain-saved", "inputs", "saved", input },
	{ "saved", "activations", "forward", activation },
	{ "saved", "activations", "computed-outside", answer_of_another },
	{ "packed", "activations", "backward", packed },
	{ "saved-soon", "activations", "forward", saved_soon },
	{ "gradient-life", "gradients", "backward", gradient_by_life },
	{ "backward", "backward_temporaries", "nothing", made_in_the_last_pass },
	{ "activation-life", "activations", "activation-result", activation_by_life },
	{ "forward", "forward_temporaries", "nothing", pass_of_a_cached_artifact },
	{ "cache-frames", "kv_cache", "forward", cache_by_frames },
	{ "cache-life", "kv_cache", "forward", cache_by_life },
	{ "cache-statement", "kv_cache", "buffer-frames", cache_by_statement },
	{ "cache-statement", "kv_cache", "forward", cache_in_forward },
	{ "cache-life", "kv_cache", "forward", cache_by_appending },
	{ "parameter-life", "parameters", "prepared", parameter_by_life },
	{ "communication", "communication", "gradient-life", communication },
	{ "optimizer", "optimizer_temporaries", "nothing", optimizer_temporary },
	{ "backward", "backward_temporaries", "nothing", backward_temporary },
	{ "gradient-partition", "gradients", "backward", gradient_partition },
	{ "forward", "forward_temporaries", "nothing", forward_temporary },
	{ "forward", "forward_temporaries", "nothing", attribute_of_a_module },
	{ "forward", "forward_temporaries", "nothing", appended_results },
	{ "prepared", "inputs", "computed-outside", prepared },
	{ "computed-outside", "forward_temporaries", "nothing", computed_outside },
	{ "nothing", "unknown", "nothing", nothing },
	{ "nothing", "unknown", "nothing", only_held },
	{ "nothing", "unknown", "nothing", held_after_the_passes },
};

const struct scenes scenes_of_rules = { scenes, sizeof(scenes) / sizeof(scenes[0]) };

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts from source lines and names of native functions. They are found once for each stack, and
 * only when a rule needs them, because names of native functions are slow.
 */
#include "rules.h"

#include "../base/ending.h"

static uint32_t look_at_statement(const struct stacks *s, const struct frame *f)
{
	const struct defs_source *found = defs_source(s->defs, f->file, f->line);

	return found && found->text.len ? statement_places(found->text.s) : 0;
}

/* "_allocate_kv_cache", "create_kv_buffers.<locals>.<listcomp>": a cache, by the word "kv".
 * "LinearWithLoRA.create_lora_weights" makes as many blocks, but no cache. */
static uint32_t look_at_function(const struct frame *f)
{
	for (const char *at = f->function; (at = strstr(at, "kv")); at += 2)
		if ((at == f->function || strchr("_.", at[-1])) && strchr("_.", at[2]))
			return PLACE_CACHE;
	if (strstr(f->function, "KVPool.")) /* SGLang */
		return PLACE_CACHE;
	return strcasestr(f->function, "lora") ? PLACE_ADAPTER : 0;
}

/* Facts from the innermost line of the script and the name of its function. The frames inside of it
 * are a library's. */
static uint32_t look_at_script(struct stacks *s, uint32_t stack)
{
	uint32_t found;
	bool module = false;
	size_t i = 0;

	stacks_read_python(s, stack);
	for (; i < s->count && owners_is_plumbing(s->frames[i].file); i++)
		if (strstr(s->frames[i].file, "torch/nn/") != NULL)
			module = true;
	if (i == s->count)
		return 0;
	found = look_at_statement(s, &s->frames[i]) | look_at_function(&s->frames[i]);
	return module ? found & ~(PLACE_ATTRIBUTE | PLACE_CACHE) : found;
}

static uint32_t look_at_python(struct stacks *s, uint32_t stack)
{
	uint32_t found = 0;

	stacks_read_python(s, stack);
	for (size_t i = 0; i < s->count && i < 12; i++) {
		const struct frame *f = &s->frames[i];
		const char *name = ending_behind(f->function, '.');

		found |= look_at_statement(s, f) & (PLACE_BUFFER | PLACE_TABLE | PLACE_STATE);
		if (found & PLACE_BUFFER || !strcmp(name, "_apply") || !strcmp(name, "__init__"))
			break;
	}
	return found;
}

uint32_t place_of_python(struct classifier *c, uint32_t stack)
{
	if (!c->owners)
		return 0;
	return map_known(&c->places, stack, PLACE_KNOWN | look_at_python(c->owners->stacks, stack));
}

uint32_t place_of_line(struct classifier *c, uint32_t stack)
{
	if (!c->owners)
		return 0;
	return map_known(&c->places, (uint64_t)2 << 32 | stack,
			 PLACE_KNOWN | look_at_script(c->owners->stacks, stack));
}

uint32_t place_of_script(struct classifier *c, const struct history *h)
{
	return life_made_by(h, STACK_PYTHON) ? place_of_line(c, h->block.stack) : 0;
}

/* Parts of the names of native functions; the innermost frame that fits counts. If the libraries
 * are not on this machine only exported functions have names: around cuDNN the last two. */
static const struct {
	uint32_t place;
	const char *const *parts;
} functions[] = {
	{ PLACE_WORKSPACE,
	  ONE_OF("CUDABlasLtWorkspace", "getCurrentCUDABlasHandle", "at::native::run_single_conv",
		 "at::native::run_fused_conv", "at::native::run_conv_plan",
		 "at::native::generate_and_filter_plans", "at::native::cudnn_convolution",
		 "at::native::convolution_backward") },
	{ PLACE_NETWORK, ONE_OF("c10d::ProcessGroup") },
	{ PLACE_CAST, ONE_OF("at::autocast::cached_cast") },
	{ PLACE_STORAGE, ONE_OF("THPStorage_pynew") },
};

/* How the names of PyTorch's functions for Python begin: those that make a tensor, bring one to the
 * device, take rows, append tensors, or compute one. Of the last kind PLACE_RESULT marks those
 * whose gradient needs the result, PLACE_TAKES those whose gradient needs the inputs. */
static const struct {
	uint32_t place;
	const char *const *begin;
} ops[] = {
	{ PLACE_MAKER | PLACE_ROOM, ONE_OF("empty", "zeros") },
	{ PLACE_ROOM, ONE_OF("new_empty", "new_zeros") },
	{ PLACE_MAKER,
	  ONE_OF("ones", "full", "rand", "arange", "to_", "new_", "normal", "eye", "linspace") },
	{ PLACE_MAKER | PLACE_MOVED, ONE_OF("tensor(", "as_tensor", "to(", "cuda") },
	{ PLACE_ROWS,
	  ONE_OF("index_select", "gather", "getitem", "repeat_interleave", "contiguous", "clone") },
	{ PLACE_CAT, ONE_OF("cat(", "concat") },
	{ PLACE_RESULT, ONE_OF("relu", "sigmoid", "tanh", "softmax", "log_softmax", "exp(", "sqrt",
			       "rsqrt", "elu", "logsumexp") },
	{ PLACE_TAKES | PLACE_RESULT, ONE_OF("scaled_dot_product_attention") },
	{ PLACE_TAKES, ONE_OF("linear(", "conv", "matmul", "mm(", "bmm(", "addmm", "baddbmm",
			      "einsum", "layer_norm", "rms_norm", "group_norm", "batch_norm",
			      "gelu", "silu", "mul(", "abs", "log(", "pow", "square", "mse_loss") },
};

/* "mul(" is also how "mul::call" and, with its overload, "mul_Tensor::call" begin. */
static bool begins(const char *op, const char *begin)
{
	size_t n = strcspn(begin, "(");

	if (strncmp(op, begin, n))
		return false;
	return !begin[n] || op[n] == '(' || op[n] == ':' ||
	       (op[n] == '_' && op[n + 1] >= 'A' && op[n + 1] <= 'Z');
}

/* `converts`: to another type, so that the tensor was on the device before. */
static uint32_t place_of_op(const char *op, bool converts)
{
	uint32_t found = 0;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		for (const char *const *begin = ops[i].begin; *begin; begin++)
			if (begins(op, *begin))
				found |= ops[i].place;
	if (!(found & PLACE_MAKER))
		return found | PLACE_COMPUTED;
	return converts ? found & ~PLACE_MOVED : found;
}

/* What the native frames have shown so far, read from inside out. */
struct passed {
	const char *op; /* the outermost operator */
	bool tensor;	/* the memory is a tensor's, so it is no workspace */
};

static const char *behind(const char *text, const char *begin)
{
	size_t n = strlen(begin);

	return strncmp(text, begin, n) ? NULL : text + n;
}

/* The operator that Python called, if frame i is its binding, else NULL. PyTorch does not export
 * bindings: a frame without a name in that library is the binding of the operator `inside`. */
static const char *op_of(struct stacks *s, size_t i, uint64_t seq, const char *inside)
{
	const struct symbol *f =
		i < s->count ? symbols_find(s->symbols, s->frames[i].ip, seq) : NULL;

	if (!f)
		return NULL;
	if (!f->function[0] && strstr(f->module, "/libtorch_python"))
		return inside;
	return behind(f->function, "torch::autograd::THPVariable_");
}

/* `outer`: the operator of the frame around, by which x.half() and the like are known. */
static uint32_t place_of_conversion(const char *outer)
{
	bool narrows = outer && words_begin(outer, ONE_OF("half(", "bfloat16(", "byte("));

	return PLACE_CONVERTED | (narrows ? PLACE_NARROWED : 0);
}

static void pass(struct passed *p, const char *function)
{
	const char *op = behind(function, "at::_ops::");

	p->op = op ? op : p->op;
	if (strstr(function, "at::detail::empty") || strstr(function, "resize_bytes"))
		p->tensor = true;
}

static uint32_t place_of_function(const char *function, const struct passed *p)
{
	for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++)
		if (words_in(function, strlen(function), functions[k].parts))
			return p->tensor || p->op ? functions[k].place & ~PLACE_WORKSPACE
						  : functions[k].place;
	return 0;
}

static uint32_t look_at_native(struct stacks *s, uint32_t stack, uint64_t seq)
{
	struct passed p = { 0 };
	uint32_t found = 0;
	bool converts = false;

	stacks_read_native(s, stack, seq);
	for (size_t i = 0; i < s->count; i++) {
		const char *f = symbols_find(s->symbols, s->frames[i].ip, seq)->function, *op;

		pass(&p, f);
		op = op_of(s, i, seq, p.op);
		if (!found)
			found = place_of_function(f, &p);
		if (behind(f, "at::_ops::to_dtype::") != NULL)
			converts = true;
		if (op && converts)
			found |= place_of_conversion(op_of(s, i + 1, seq, NULL));
		if (op)
			return found | place_of_op(op, converts);
	}
	return found;
}

uint32_t place_of_stack(struct classifier *c, uint32_t stack, uint64_t seq)
{
	if (!c->owners || !stack)
		return 0;
	return map_known(&c->places, (uint64_t)1 << 32 | stack,
			 PLACE_KNOWN | look_at_native(c->owners->stacks, stack, seq));
}

uint32_t place_of_native(struct classifier *c, const struct history *h)
{
	return place_of_stack(c, h->block.stack, h->block.seq);
}

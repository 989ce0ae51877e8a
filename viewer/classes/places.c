/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What needs a line of source or the name of a native function: asked once for each stack, and only
 * when a rule comes to it, because names of native functions are slow.
 */
#include <string.h>

#include "rules.h"

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/* What the innermost line of the script says: the frames within it are a library's. */
static uint32_t look_at_script(struct stacks *s, uint32_t stack)
{
	uint32_t found;
	bool module = false;
	size_t i = 0;

	stacks_read_python(s, stack);
	for (; i < s->count && owners_is_plumbing(s->frames[i].file); i++)
		module |= strstr(s->frames[i].file, "torch/nn/modules/") != NULL;
	if (i == s->count)
		return 0;
	found = statement_places(s->frames[i].file, s->frames[i].line);
	return module ? found & ~(PLACE_ATTRIBUTE | PLACE_CACHE) : found;
}

static uint32_t look_at_python(struct stacks *s, uint32_t stack)
{
	stacks_read_python(s, stack);
	for (size_t i = 0; i < s->count && i < 12; i++) {
		const struct frame *f = &s->frames[i];
		const char *name = last_part(f->function);

		if (statement_registers_buffer(f->file, f->line))
			return PLACE_BUFFER;
		if (!strcmp(name, "_apply") || !strcmp(name, "__init__"))
			break;
	}
	return 0;
}

uint32_t place_of_python(struct classifier *c, uint32_t stack)
{
	bool fresh;
	uint32_t *at;

	if (!c->owners)
		return 0;
	at = map_put(&c->places, stack, &fresh);
	if (fresh)
		*at = PLACE_KNOWN | look_at_python(c->owners->stacks, stack);
	return *at;
}

uint32_t place_of_script(struct classifier *c, const struct block *b)
{
	bool fresh;
	uint32_t *at;

	if (!c->owners || !(b->signs & STACK_PYTHON))
		return 0;
	at = map_put(&c->places, (uint64_t)2 << 32 | b->stack, &fresh);
	if (fresh)
		*at = PLACE_KNOWN | look_at_script(c->owners->stacks, b->stack);
	return *at;
}

/* Parts of the names of native functions; the innermost that fits counts. */
static const struct {
	const char *part;
	uint32_t place;
} functions[] = {
	{ "CUDABlasWorkspace", PLACE_WORKSPACE },
	{ "CUDABlasLtWorkspace", PLACE_WORKSPACE },
	{ "getCurrentCUDABlasHandle", PLACE_WORKSPACE },
	{ "getNewWorkspace", PLACE_WORKSPACE },
	{ "at::native::run_single_conv", PLACE_WORKSPACE },
	{ "at::native::run_fused_conv", PLACE_WORKSPACE },
	{ "at::native::run_conv_plan", PLACE_WORKSPACE },
	{ "at::native::generate_and_filter_plans", PLACE_WORKSPACE },
	{ "c10d::ProcessGroup", PLACE_NETWORK },
};

/* Python's own names of functions that make a tensor, or bring one to the device. */
static bool is_maker(const char *op)
{
	static const char *const makers[] = { "empty",	"zeros",  "ones",   "full", "rand",
					      "arange", "tensor", "to(",    "to_",  "cuda",
					      "new_",	"copy_",  "normal", "eye",  "linspace" };

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
		if (!strncmp(op, makers[i], strlen(makers[i])))
			return true;
	return false;
}

static uint32_t place_of_op(const char *op)
{
	if (!strncmp(op, "cat(", 4) || !strncmp(op, "concat", 6))
		return PLACE_COMPUTED | PLACE_CAT;
	return is_maker(op) ? PLACE_MAKER : PLACE_COMPUTED;
}

static uint32_t look_at_native(struct stacks *s, const struct block *b)
{
	static const char binding[] = "torch::autograd::THPVariable_";
	uint32_t found = 0;

	stacks_read_native(s, b->stack, b->seq);
	for (size_t i = 0; i < s->count; i++) {
		const char *f = symbols_find(s->symbols, s->frames[i].ip, b->seq)->function;

		for (size_t k = 0; !found && k < sizeof(functions) / sizeof(functions[0]); k++)
			if (strstr(f, functions[k].part))
				found = functions[k].place;
		if (!strncmp(f, binding, sizeof(binding) - 1))
			return found | place_of_op(f + sizeof(binding) - 1);
	}
	return found;
}

uint32_t place_of_native(struct classifier *c, const struct block *b)
{
	bool fresh;
	uint32_t *at;

	if (!c->owners || !b->stack)
		return 0;
	at = map_put(&c->places, (uint64_t)1 << 32 | b->stack, &fresh);
	if (fresh)
		*at = PLACE_KNOWN | look_at_native(c->owners->stacks, b);
	return *at;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "module_tree.h"

#include <string.h>

#include "../base/ending.h"

static bool is_call(const struct frame *f)
{
	return ending_is(f->file, "torch/nn/modules/module.py");
}

/* "MLP" of "MLP.forward" and of "build.<locals>.MLP.forward"; NULL: no forward method. */
static const char *class_of_method(const struct frame *f, size_t *len)
{
	const char *dot = strrchr(f->function, '.'), *start = f->function;

	if (!dot || strcmp(dot, ".forward"))
		return NULL;
	for (const char *p = f->function; p < dot; p++)
		if (*p == '.')
			start = p + 1;
	*len = dot - start;
	return start;
}

/* From the outermost frame inwards: a call of nn.Module, then the forward that it calls, whatever
 * wrappers lie between. */
static uint32_t place_module(struct flame *m, const struct stacks *s)
{
	const struct frame *forward = NULL;
	bool called = false;
	uint32_t at = 0;

	for (size_t i = s->count; i-- > 0;) {
		const struct frame *f = &s->frames[i];
		size_t len = 0;
		const char *class = called && !is_call(f) ? class_of_method(f, &len) : NULL;

		if (is_call(f)) {
			called = true;
			continue;
		}
		if (!class)
			continue;
		at = flame_child(m, at,
				 &(struct flame_node){ .name = (char *)class,
						       .file = f->file,
						       .kind = FLAME_MODULE },
				 len);
		forward = f;
		called = false;
	}
	if (forward)
		at = flame_child(m, at,
				 &(struct flame_node){ .name = (char *)forward->function,
						       .file = forward->file,
						       .line = forward->line ? forward->line : 1,
						       .kind = FLAME_PYTHON },
				 strlen(forward->function));
	return at;
}

void modules_find(struct flame *out, const struct snapshot *s, int category, struct stacks *stacks)
{
	flame_begin(out);
	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];

		if (category >= 0 && s->classes[i] != category)
			continue;
		stacks_read_python(stacks, b->stack);
		flame_count(out, place_module(out, stacks), b->size, 1, s->classes[i]);
	}
	flame_sort(out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the stacks of the [memory] events in a trace of torch.profiler with with_stack=True: Python
 * functions, each with its first line, and the backward node that a thread of the engine evaluates.
 * A trace has them as ranges of a thread. The ranges that enclose an event are its stack.
 */
#include "../base/json.h"
#include "../base/sorted.h"
#include "import_parts.h"

#define EVALUATES "autograd::engine::evaluate_function: "
#define LONGEST	  1024

void import_around_add(struct import *im, struct json event, struct json name, uint32_t index)
{
	struct import_around a = { .from = json_number(json_member(event, "ts")),
				   .thread = json_unsigned(json_member(event, "tid")),
				   .name = name,
				   .index = index };
	char text[LONGEST];

	a.to = a.from + json_number(json_member(event, "dur"));
	a.evaluation = name.s && !strncmp(json_string(name, text, sizeof(text)), EVALUATES,
					  strlen(EVALUATES));
	if (name.s && !a.evaluation && !json_is(json_member(event, "cat"), "python_function"))
		return;
	*need_item(im->around, im->around_count, im->around_room) = a;
	if (name.s && !a.evaluation)
		im->functions = true;
}

COMPARE(by_start, struct import_around,
	ORDER(x->thread, y->thread) ?: ORDER(x->from, y->from) ?: ORDER(y->to, x->to))

/*
 * Adds the frame of "torch/nn/modules/module.py(1775): _call_impl"; other names are not Python
 * functions. The profiler cuts off the folder of Python's path. PyTorch's files get
 * "site-packages/" back, which marks them as a package's.
 */
static void add_frame(struct import *im, struct import_around *a)
{
	static const char package[] = "site-packages/";
	char text[sizeof(package) + LONGEST], *file = text + strlen(package), *line, *name;

	memcpy(text, package, strlen(package));
	json_string(a->name, file, LONGEST);
	if (!strncmp(file, EVALUATES, strlen(EVALUATES))) {
		name = file + strlen(EVALUATES);
		a->stack.node = import_string(im, name, strlen(name));
		a->stack.engine = true;
		return;
	}
	line = strchr(file, '(');
	name = strstr(file, "): ");
	if (!name || !line || line == file || line > name)
		return;
	*line++ = 0;
	a->stack =
		import_stack_inner(im, a->stack, name + 3, strncmp(file, "torch/", 6) ? file : text,
				   (uint32_t)strtoul(line, NULL, 10));
}

/* Without with_stack=True there are no stacks: backward passes alone would be one long step. */
void import_around_find(struct import *im)
{
	struct import_around *all = im->around;
	size_t top = 0; /* 1 + the innermost open range, 0 = none */
	uint32_t evaluations = 0;

	if (im->functions)
		qsort(all, im->around_count, sizeof(*all), by_start);
	for (size_t i = 0; im->functions && i < im->around_count; i++) {
		while (top && (all[top - 1].thread != all[i].thread || all[top - 1].to < all[i].to))
			top = all[top - 1].outer;
		all[i].outer = top;
		all[i].evaluation = all[i].evaluation ? ++evaluations
				    : top	      ? all[top - 1].evaluation
						      : 0;
		if (top)
			all[i].stack = all[top - 1].stack;
		if (!all[i].name.s) {
			*map_put(&im->whose, all[i].index, NULL) = (uint32_t)i;
			continue;
		}
		add_frame(im, &all[i]);
		top = i + 1;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lake_recording.h"

const char *lake_module(struct lake_rows *x, uint32_t stack)
{
	struct stacks *s = &x->timeline->stacks;
	size_t n = 0;

	x->module[0] = 0;
	if (!stack)
		return x->module;
	stacks_read_python(s, stack);
	for (size_t i = s->count; i-- > 0;) {
		const char *name = s->frames[i].function, *dot = strrchr(name, '.');
		const char *start = name;

		if (!dot || !owners_is_forward(name))
			continue;
		for (const char *p = name; p < dot; p++)
			if (*p == '.')
				start = p + 1;
		if (n + (size_t)(dot - start) + 2 > sizeof(x->module))
			break;
		n += (size_t)snprintf(x->module + n, sizeof(x->module) - n, "%s%.*s", n ? "/" : "",
				      (int)(dot - start), start);
	}
	return x->module;
}

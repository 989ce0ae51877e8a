/* SPDX-License-Identifier: Apache-2.0 */
#include "callers.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "owners.h"

void callers_init(struct callers *c, struct stacks *stacks)
{
	*c = (struct callers){ .stacks = stacks };
}

void callers_free(struct callers *c)
{
	free(c->found);
	map_free(&c->known);
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && !strcmp(s + len - n, end);
}

static bool is_module_call(const struct frame *f)
{
	return ends_with(f->file, "torch/nn/modules/module.py") &&
	       strstr(f->function, "_call_impl");
}

static bool is_optimizer_step(const struct frame *f)
{
	return strstr(f->file, "/torch/optim/") &&
	       (ends_with(f->function, ".step") || strstr(f->function, "profile_hook_step"));
}

static uint64_t mix(uint64_t hash, const char *s, unsigned line)
{
	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 1099511628211ull;
	return (hash ^ line) * 1099511628211ull;
}

static struct caller look(struct callers *c, uint32_t stack)
{
	struct caller out = { 0 };
	static const uint64_t start = 14695981039346656037ull;
	uint64_t hash = start;

	stacks_read_python(c->stacks, stack);
	for (size_t i = 0; i < c->stacks->count; i++) {
		const struct frame *f = &c->stacks->frames[i];

		out.python = true;
		out.module |= is_module_call(f);
		out.optimizer |= is_optimizer_step(f);
		if (strstr(f->function, "profile_hook_step"))
			hash = start; /* an optimizer's own lines do not tell who called it */
		if (!owners_is_plumbing(f->file))
			hash = mix(mix(hash, f->file, 0), f->function, f->line);
	}
	out.lines = hash == start ? 0 : hash | 1;
	return out;
}

struct caller callers_find(struct callers *c, uint32_t stack)
{
	bool fresh;
	uint32_t *at;
	struct caller found;

	if (!stack)
		return (struct caller){ 0 };
	at = map_put(&c->known, stack, &fresh);
	if (!fresh)
		return c->found[*at];
	*at = c->count;
	found = look(c, stack);
	c->found = need_grow(c->found, &c->room, c->count, sizeof(*c->found));
	c->found[c->count++] = found;
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "module_tree.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

static uint32_t new_node(struct modules *m, uint32_t parent, const char *name, size_t len,
			 const char *file, unsigned line)
{
	uint32_t id = m->count;

	*need_item(m->items, m->count, m->room) = (struct module){
		.name = need_copy(name, len), .file = file, .line = line, .parent = parent
	};
	if (id) {
		m->items[id].next = m->items[parent].first;
		m->items[parent].first = id;
	}
	return id;
}

static uint32_t child(struct modules *m, uint32_t parent, const char *name, size_t len,
		      const char *file, unsigned line)
{
	for (uint32_t i = m->items[parent].first; i; i = m->items[i].next) {
		const struct module *x = &m->items[i];

		if (x->line == line && strlen(x->name) == len && !memcmp(x->name, name, len) &&
		    !strcmp(x->file, file))
			return i;
	}
	return new_node(m, parent, name, len, file, line);
}

static bool is_call(const struct frame *f)
{
	size_t len = strlen(f->file);
	static const char end[] = "torch/nn/modules/module.py";

	return len >= sizeof(end) - 1 && !strcmp(f->file + len - (sizeof(end) - 1), end);
}

/* "MLP" of "MLP.forward" and of "build.<locals>.MLP.forward"; NULL: no forward method. */
static const char *class_of(const struct frame *f, size_t *len)
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
static uint32_t place(struct modules *m, const struct stacks *s)
{
	const struct frame *forward = NULL, *inner = NULL;
	bool called = false;
	uint32_t at = 0;

	for (size_t i = s->count; i-- > 0;) {
		const struct frame *f = &s->frames[i];
		size_t len = 0;
		const char *class = called && !is_call(f) ? class_of(f, &len) : NULL;

		if (is_call(f)) {
			called = true;
			continue;
		}
		if (!class) {
			inner = f;
			continue;
		}
		at = child(m, at, class, len, f->file, 0);
		forward = inner = f;
		called = false;
	}
	if (forward)
		at = child(m, at, forward->function, strlen(forward->function), forward->file,
			   forward->line ? forward->line : 1);
	return at;
}

static void add(struct modules *m, uint32_t at, uint64_t bytes)
{
	for (;; at = m->items[at].parent) {
		m->items[at].bytes += bytes;
		m->items[at].blocks++;
		if (!at)
			break;
	}
}

/* Children from the largest to the smallest: insertion, for there are few. */
static void sort_children(struct modules *m, uint32_t parent)
{
	uint32_t sorted = 0, next;

	for (uint32_t i = m->items[parent].first; i; i = next) {
		uint32_t *at = &sorted;

		next = m->items[i].next;
		while (*at && m->items[*at].bytes >= m->items[i].bytes)
			at = &m->items[*at].next;
		m->items[i].next = *at;
		*at = i;
	}
	m->items[parent].first = sorted;
}

void modules_find(struct modules *out, const struct snapshot *s, int category,
		  struct stacks *stacks)
{
	*out = (struct modules){ 0 };
	new_node(out, 0, "", 0, "", 0);
	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];
		uint32_t at;

		if (category >= 0 && s->classes[i] != category)
			continue;
		stacks_read_python(stacks, b->stack);
		at = place(out, stacks);
		add(out, at, b->size);
		if (!at) {
			out->outside_bytes += b->size;
			out->outside_blocks++;
		}
	}
	for (uint32_t i = 0; i < out->count; i++)
		sort_children(out, i);
}

void modules_free(struct modules *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->items[i].name);
	free(m->items);
}

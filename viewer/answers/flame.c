/* SPDX-License-Identifier: Apache-2.0 */
#include "flame.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../recording/demangle.h"
#include "module_tree.h"

#define NAME 512

/* The frames of one stack, outermost first. */
struct path {
	struct path_frame {
		char name[NAME];
		enum flame_kind kind;
	} * frames;
	size_t count, room;
};

static void push_frame(struct path *p, enum flame_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void push_frame(struct path *p, enum flame_kind kind, const char *format, ...)
{
	struct path_frame *f = need_item(p->frames, p->count, p->room);
	va_list args;

	f->kind = kind;
	va_start(args, format);
	if (vsnprintf(f->name, NAME, format, args) < 0)
		f->name[0] = 0;
	va_end(args);
}

static uint32_t child_of_frame(struct flame *f, uint32_t parent, enum flame_kind kind,
			       const char *name)
{
	const struct flame_node like = { .name = (char *)name, .file = "", .kind = kind };

	return flame_child(f, parent, &like, strlen(name));
}

static void add_node(struct flame *f, const struct path *p, const struct flame_how *how,
		     uint64_t bytes, uint64_t blocks, unsigned category)
{
	uint32_t at = 0;

	if (how->classes)
		at = child_of_frame(f, at, FLAME_CLASS, category_words(category));
	for (size_t i = 0; i < p->count; i++) {
		const struct path_frame *one = &p->frames[how->inverted ? p->count - 1 - i : i];

		at = child_of_frame(f, at, one->kind, one->name);
	}
	flame_count(f, at, bytes, blocks, category);
}

static void push_native(struct path *p, const struct frame *f)
{
	char brief[200];

	if (f->function[0])
		push_frame(p, FLAME_NATIVE, "%s",
			   demangle_brief(f->function, brief, sizeof(brief)));
	else
		push_frame(p, FLAME_NATIVE, "%s+0x%" PRIx64, owners_base(f->module), f->offset);
}

/* Python runs on no thread of autograd's: there the node that asked stands for it. */
static void read_frames(struct path *p, struct stacks *s, const struct block *b,
			enum flame_frames which)
{
	p->count = 0;
	if (which == FRAMES_PYTHON)
		stacks_read_python(s, b->stack);
	else
		stacks_read(s, b->stack, b->seq);
	if (!b->memory && b->name && (which == FRAMES_PYTHON ? !s->count : true))
		push_frame(p, FLAME_NATIVE, "%s (backward)", defs_string(s->defs, b->name).s);
	for (size_t i = s->count; i-- > 0;) {
		const struct frame *f = &s->frames[i];

		if (f->python && which != FRAMES_NATIVE)
			push_frame(p, FLAME_PYTHON, "%s (%s:%u)", f->function, owners_base(f->file),
				   f->line);
		else if (!f->python && which != FRAMES_PYTHON)
			push_native(p, f);
	}
	if (!p->count)
		push_frame(p, FLAME_NATIVE, "(no %s frames)",
			   which == FRAMES_PYTHON ? "Python" : "recorded");
}

static void add_stacks(struct flame *f, const struct snapshot *s, struct stacks *stacks,
		       const struct flame_how *how)
{
	struct path p = { 0 };

	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];

		if (how->category >= 0 && s->classes[i] != how->category)
			continue;
		read_frames(&p, stacks, b, how->frames);
		add_node(f, &p, how, b->size, 1, s->classes[i]);
	}
	free(p.frames);
}

/* Root to node. */
static void module_path(struct path *p, const struct flame *m, uint32_t at)
{
	const struct flame_node *x = &m->nodes[at];

	if (!at)
		return;
	module_path(p, m, x->parent);
	if (x->line)
		push_frame(p, FLAME_PYTHON, "%s (%s:%u)", x->name, owners_base(x->file), x->line);
	else
		push_frame(p, FLAME_MODULE, "%s", x->name);
}

static void add_modules_of(struct flame *f, const struct snapshot *s, struct stacks *stacks,
			   const struct flame_how *how, int category)
{
	struct path p = { 0 };
	struct flame m;

	modules_find(&m, s, category, stacks);
	for (uint32_t i = 1; i <= m.count; i++) { /* the root at last */
		const struct flame_node *n = &m.nodes[i % m.count];

		p.count = 0;
		module_path(&p, &m, (uint32_t)(i % m.count));
		if (!p.count)
			push_frame(&p, FLAME_MODULE, "(outside of modules)");
		if (n->own_blocks)
			add_node(f, &p, how, n->own_bytes, n->own_blocks, (unsigned)category);
	}
	flame_free(&m);
	free(p.frames);
}

void flame_build(struct flame *f, const struct snapshot *s, struct owners *owners,
		 const struct flame_how *how)
{
	flame_begin(f);
	if (!how->modules)
		add_stacks(f, s, owners->stacks, how);
	for (int c = 0; how->modules && c < CATEGORIES; c++)
		if (s->blocks[c] && (how->category < 0 || how->category == c))
			add_modules_of(f, s, owners->stacks, how, c);
	flame_sort(f);
}

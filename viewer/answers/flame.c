/* SPDX-License-Identifier: Apache-2.0 */
#include "flame.h"

#include "../base/ending.h"
#include "../recording/symbols.h"

/* The tree of a flame graph: its nodes, their bytes and their order. */

#define NAME 512

/* A frame on the way to a node. */
struct path_frame {
	char name[NAME];
	enum flame_kind kind;
	const char *file; /* "" without places */
	unsigned line;
};

static uint32_t new_node(struct flame *f, uint32_t parent, const struct path_frame *like)
{
	uint32_t id = (uint32_t)f->count;
	struct flame_node *n = need_item(f->nodes, f->count, f->room);

	*n = (struct flame_node){ .name = need_copy(like->name, strlen(like->name)),
				  .file = like->file,
				  .line = like->line,
				  .kind = like->kind,
				  .parent = parent };
	if (id) {
		n->next = f->nodes[parent].first;
		f->nodes[parent].first = id;
	}
	return id;
}

/* Finds or makes a child and returns its index. */
static uint32_t flame_child(struct flame *f, uint32_t parent, const struct path_frame *like)
{
	for (uint32_t i = f->nodes[parent].first; i; i = f->nodes[i].next) {
		const struct flame_node *n = &f->nodes[i];

		if (n->kind == like->kind && n->line == like->line &&
		    !strcmp(n->name, like->name) && !strcmp(n->file, like->file))
			return i;
	}
	return new_node(f, parent, like);
}

static void flame_count(struct flame *f, uint32_t at, const struct block *b)
{
	f->nodes[at].own_bytes += b->size;
	f->nodes[at].own_blocks++;
	for (;; at = f->nodes[at].parent) {
		struct flame_node *n = &f->nodes[at];

		n->category = n->blocks && n->category != b->category ? CATEGORIES : b->category;
		n->bytes += b->size;
		n->blocks++;
		if (!at)
			break;
	}
}

/* Sorts the children, largest first, by insertion because there are few. */
static void sort_children(struct flame *f, uint32_t parent)
{
	uint32_t sorted = 0, next;

	for (uint32_t i = f->nodes[parent].first; i; i = next) {
		uint32_t *at = &sorted;

		next = f->nodes[i].next;
		while (*at && f->nodes[*at].bytes >= f->nodes[i].bytes)
			at = &f->nodes[*at].next;
		f->nodes[i].next = *at;
		*at = i;
	}
	f->nodes[parent].first = sorted;
}

void flame_free(struct flame *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->nodes[i].name);
	free(f->nodes);
	*f = (struct flame){ 0 };
}

/* The frames of one stack, outermost first. */
struct path {
	struct path_frame *frames;
	size_t count, room;
};

static char *new_frame(struct path *p, enum flame_kind kind, const char *file, unsigned line)
{
	struct path_frame *f = need_item(p->frames, p->count, p->room);

	f->kind = kind;
	f->file = file;
	f->line = line;
	return f->name;
}

#define push_placed(p, kind, file, line, ...) \
	text_put(new_frame((p), (kind), (file), (line)), NAME, __VA_ARGS__)
#define push_frame(p, kind, ...) push_placed(p, kind, "", 0, __VA_ARGS__)

static void add_node(struct flame *f, const struct path *p, const struct flame_how *how,
		     const struct block *b)
{
	struct path_frame class = { .kind = FLAME_CLASS, .file = "" };
	uint32_t at = 0;

	if (how->classes) {
		text_put(class.name, NAME, "%s", categories[b->category].words);
		at = flame_child(f, at, &class);
	}
	for (size_t i = 0; i < p->count; i++)
		at = flame_child(f, at, &p->frames[how->inverted ? p->count - 1 - i : i]);
	flame_count(f, at, b);
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

/* Autograd's threads have no Python frames, so the backward node is shown instead. */
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

static void read_modules(struct path *p, const struct stacks *s, bool places)
{
	const struct frame *forward[OWNER_MODULES], *last;
	size_t count = owners_modules(s, forward);
	unsigned line;

	p->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct defs_text class = owners_module_class(forward[i]);

		push_placed(p, FLAME_MODULE, places ? forward[i]->file : "", 0, "%.*s",
			    (int)class.len, class.s);
	}
	if (!count && !places)
		push_frame(p, FLAME_MODULE, "(outside of modules)");
	if (!count)
		return;
	last = forward[count - 1];
	line = last->line ? last->line : 1;
	if (places)
		push_placed(p, FLAME_PYTHON, last->file, line, "%s", last->function);
	else
		push_frame(p, FLAME_PYTHON, "%s (%s:%u)", last->function, owners_base(last->file),
			   line);
}

void flame_build(struct flame *f, const struct snapshot *s, struct owners *owners,
		 const struct flame_how *how)
{
	struct path p = { 0 };

	*f = (struct flame){ 0 };
	new_node(f, 0, &(struct path_frame){ .name = "all", .file = "", .kind = FLAME_ALL });
	FOR_BLOCKS (b, &s->moment) {
		if (how->category >= 0 && b->category != how->category)
			continue;
		if (how->modules) {
			stacks_read_python(owners->stacks, b->stack);
			read_modules(&p, owners->stacks, how->places);
		} else {
			read_frames(&p, owners->stacks, b, how->frames);
		}
		add_node(f, &p, how, b);
	}
	free(p.frames);
	for (uint32_t i = 0; i < f->count; i++)
		sort_children(f, i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* flame: the blocks of a moment by the stacks that allocated them, as folded stacks. */
#include "../answers/flame.h"
#include "command.h"

static bool has_value(const char *value, const char *word)
{
	return value && !strcmp(value, word);
}

static struct flame_how how_of(const struct flame_options *o)
{
	return (struct flame_how){ .frames = has_value(o->frames, "native") ? FRAMES_NATIVE
					     : has_value(o->frames, "both") ? FRAMES_BOTH
									    : FRAMES_PYTHON,
				   .inverted = o->inverted,
				   .classes = o->classes,
				   .modules = has_value(o->by, "module"),
				   .category = o->category };
}

/* Fills names with the frames of a node, outermost first. Returns how many, at most `room`. */
static size_t outermost_first(const struct flame *f, uint32_t at, const char **names, size_t room)
{
	size_t n = 0, depth = 0;

	for (uint32_t i = at; i; i = f->nodes[i].parent)
		depth++;
	for (uint32_t i = at; i; i = f->nodes[i].parent)
		if (--depth < room) {
			names[depth] = f->nodes[i].name;
			n++;
		}
	return n;
}

/* Prints "outer;inner bytes". A semicolon in a name becomes a comma. */
static void folded(struct emit *out, const struct flame *f, uint32_t at)
{
	const char *names[STACKS_DEPTH];
	size_t n = outermost_first(f, at, names, STACKS_DEPTH), len = 1;
	char *line, *to;

	for (size_t i = 0; i < n; i++)
		len += strlen(names[i]) + 1;
	to = line = need_new(len);
	for (size_t i = 0; i < n; i++) {
		for (const char *s = names[i]; *s; s++)
			*to++ = *s == ';' ? ',' : *s;
		*to++ = i + 1 < n ? ';' : 0;
	}
	emit_line(out, "%s %" PRIu64, line, f->nodes[at].own_bytes);
	free(line);
}

struct flame_view {
	const struct flame *flame;
	const char *names[STACKS_DEPTH]; /* frames of the current stack */
};

static bool stack_row(void *ctx, size_t i, struct row_flame_stack *row)
{
	struct flame_view *v = ctx;
	const struct flame_node *node = &v->flame->nodes[i];

	if (!i || !node->own_blocks)
		return false;
	*row = (struct row_flame_stack){
		.frames = { outermost_first(v->flame, (uint32_t)i, v->names, STACKS_DEPTH), NULL,
			    v->names },
		.bytes = node->own_bytes,
		.blocks = node->own_blocks,
	};
	return true;
}

static void print_stacks(struct emit *out, const struct flame *f, const struct snapshot *s)
{
	struct flame_view view = { .flame = f };
	struct row_flame row = { .device = s->moment.device,
				 .time_ns = s->moment.time_ns,
				 .bytes = f->nodes[0].bytes,
				 .blocks = f->nodes[0].blocks,
				 .stacks = { f->count, stack_row, &view } };

	emit_document(out, flame, &row);
	if (emit_json(out))
		return;
	for (uint32_t i = 1; i < f->count; i++)
		if (f->nodes[i].own_blocks)
			folded(out, f, i);
}

int run_flame(const struct flame_options *o, struct emit *out, struct timeline *t,
	      struct moment *mo)
{
	const struct flame_how how = how_of(o);
	struct snapshot s = { .model = &t->model, .moment = *mo };
	struct flame f;

	snapshot_sort(&s, t);
	flame_build(&f, &s, &t->owners, &how);
	if (!f.nodes[0].blocks)
		say_note("%s: nothing%s%s is alive at that moment; --at names another", o->file,
			 o->category < 0 ? "" : " of class ",
			 o->category < 0 ? "" : categories[o->category].name);
	print_stacks(out, &f, &s);
	flame_free(&f);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts lists of frames to nodes of the stack tree. A snapshot's list mixes Python and native
 * frames. A recording keeps two chains; the native one has a frame of the interpreter's loop in
 * place of each run of Python frames. Each list, frame and node is converted once, and found again
 * by an index or a 64-bit hash.
 */
#include "../../format/record.h"
#include "../base/arithmetic.h"
#include "../base/ending.h"
#include "import_parts.h"

#define NAME_MAX_BYTES (16u * 1024)
#define LOOP	       "_PyEval_EvalFrameDefault"

struct import_frame {
	uint64_t value; /* of the frame's node */
	bool native, loop, engine, evaluates;
	uint32_t node; /* string id of the backward node that it runs, 0 = none */
};

/* Copies a member of a frame up to its first zero byte; returns text. */
static char *text_of(const struct import *im, const struct pickle_value *dict, const char *key,
		     char text[NAME_MAX_BYTES + 1])
{
	const struct pickle_value *v = pickle_text(&im->p, dict, key);

	snprintf(text, NAME_MAX_BYTES + 1, "%.*s", v ? (int)arithmetic_least(v->count, INT_MAX) : 0,
		 v ? v->text : "");
	return text;
}

/* Replaces the backslashes of a Windows path: C:\a\b.py becomes C:/a/b.py. In other paths they are
 * part of names. */
static void make_plain(char *file)
{
	bool drive = isalpha((unsigned char)file[0]) && file[1] == ':' &&
		     (file[2] == '\\' || file[2] == '/');

	if (drive || !strchr(file, '/'))
		while ((file = strchr(file, '\\')))
			*file = '/';
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Whether the file is a library or the interpreter, which the newest PyTorch names if the source is
 * unknown. */
static bool is_object(const char *file)
{
	const char *slash = strrchr(file, '/');

	return ending_is(file, ".so") || strstr(file, ".so.") || ending_is(file, ".dll") ||
	       ending_is(file, ".pyd") || (slash && !strncmp(slash, "/python", 7));
}

/* Whether a frame is native: the name has arguments or scopes, or the file is C++, "??" or none. */
static bool is_native(const char *name, const char *file)
{
	static const char *const kinds[] = { ".c",  ".cc", ".cpp", ".cxx", ".cu",  ".cuh", ".h",
					     ".hh", ".S",  ".hpp", ".inc", ".inl", ".o",   ".rs" };

	if (ending_is(file, ".py") || file[0] == '<')
		return false;
	return !*file || !strcmp(file, "??") || is_object(file) ||
	       ANY_OF(x, kinds, sizeof(kinds) / sizeof(kinds[0]), ending_is(file, *x)) ||
	       strchr(name, '(') || strstr(name, "::");
}

/* Writes a definition: a head, then file and name. */
static void define_names(struct import *im, unsigned kind, uint32_t id, const void *head,
			 size_t head_len, const char *file, const char *name)
{
	char payload[64 + 2 * NAME_MAX_BYTES], *at = mempcpy(payload, head, head_len);

	at = mempcpy(at, file, strlen(file));
	at = mempcpy(at, name, strlen(name));
	import_def(im, kind, id, payload, (size_t)(at - payload));
}

static uint64_t define_code(struct import *im, const char *name, const char *file, uint32_t line)
{
	struct gmt_def_code head = { .first_line = line,
				     .file_len = (uint32_t)strlen(file),
				     .name_len = (uint32_t)strlen(name) };

	define_names(im, GMT_DEF_CODE, ++im->frames.code_count, &head, sizeof(head), file, name);
	/* the place before the first instruction, which has the line of the code object */
	return (uint64_t)im->frames.code_count << 32 | 0xfffffffe;
}

static uint64_t define_symbol(struct import *im, const char *name, const char *file, uint32_t line)
{
	struct gmt_def_symbol head = { .address = ++im->frames.symbol_count, .line = line };

	if (!strcmp(file, "??"))
		file = "";
	head.file_len = (uint32_t)strlen(file);
	head.name_len = (uint32_t)strlen(name);
	define_names(im, GMT_DEF_SYMBOL, im->frames.symbol_count, &head, sizeof(head), file, name);
	return head.address;
}

/* "torch::autograd::generated::AddmmBackward0::apply(..." -> "AddmmBackward0" */
static uint32_t node_name(struct import *im, const char *name)
{
	const char *apply = strstr(name, "::apply("), *from = apply;

	if (!begins(name, "torch::autograd::") || !apply || strchr(name, '(') < apply)
		return 0;
	while (from > name && from[-1] != ':')
		from--;
	return import_string(im, from, apply - from);
}

static struct import_frame define(struct import *im, const char *name, const char *file,
				  uint32_t line)
{
	struct import_frame f = { .native = is_native(name, file) };

	if (!f.native) {
		f.value = define_code(im, name, file, line);
		return f;
	}
	f.loop = begins(name, LOOP);
	f.engine = strstr(name, "torch::autograd::Engine::thread_init(");
	f.evaluates = begins(name, "torch::autograd::Engine::evaluate_function(");
	f.node = node_name(im, name);
	f.value = f.loop ? 0 : define_symbol(im, name, file, line);
	return f;
}

/* The index of a frame in `known`, where a new one is added. */
static uint32_t known(struct import *im, const char *name, const char *file, uint32_t line)
{
	struct import_frames *fs = &im->frames;
	uint64_t h = map_hash_text(map_hash_text(line, name), file);
	uint32_t at = map_number(&fs->texts, h, fs->known_count);

	if (at == fs->known_count)
		*need_item(fs->known, fs->known_count, fs->known_room) =
			define(im, name, file, line);
	return at;
}

static const struct import_frame *frame_of(struct import *im, const struct pickle_value *dict)
{
	bool fresh;
	uint32_t *at = map_put(&im->frames.frames, (uint64_t)(dict - im->p.values), &fresh);

	if (fresh) {
		char name[NAME_MAX_BYTES + 1], file[NAME_MAX_BYTES + 1];

		text_of(im, dict, "name", name);
		make_plain(text_of(im, dict, "filename", file));
		*at = known(im, name, file, (uint32_t)pickle_number(&im->p, dict, "line"));
	}
	return &im->frames.known[*at];
}

static uint32_t add_node(struct import *im, uint32_t parent, uint32_t kind, uint64_t value)
{
	struct gmt_def_stack s = { value, parent, kind };
	bool fresh;
	uint32_t *at = map_put(&im->frames.nodes, map_hash(0, &s, sizeof(s)), &fresh);

	if (fresh) {
		*at = ++im->frames.node_count;
		import_def(im, GMT_DEF_STACK, *at, &s, sizeof(s));
	}
	return *at;
}

static uint64_t interpreter(struct import *im)
{
	if (!im->frames.interpreter)
		im->frames.interpreter = define_symbol(im, LOOP, "", 0);
	return im->frames.interpreter;
}

/* From the outermost frame to the innermost. A run of Python frames gets one interpreter loop. */
static void build(struct import *im, const struct pickle_value *list, struct import_stack *s)
{
	uint32_t native = 0, python = 0;
	bool in_python = false;

	for (uint32_t i = list->count; i-- > 0 && import_visit(im);) {
		const struct import_frame *f = frame_of(im, pickle_item(&im->p, list, i));

		if (f->loop)
			continue;
		if (f->native) {
			native = add_node(im, native, GMT_FRAME_NATIVE, f->value);
			s->engine |= f->engine;
			s->node = f->node ? f->node : f->evaluates ? 0 : s->node;
		} else {
			if (!in_python)
				native = add_node(im, native, GMT_FRAME_NATIVE, interpreter(im));
			python = add_node(im, python, GMT_FRAME_PYTHON, f->value | !in_python);
		}
		in_python = !f->native;
		s->native |= f->native;
		if (!f->native)
			s->python = true;
	}
	s->id = !s->native ? python
		: !python  ? native
			   : add_node(im, native, GMT_FRAME_JOIN, python);
}

struct import_stack import_stack(struct import *im, const struct pickle_value *frames)
{
	struct import_frames *fs = &im->frames;
	struct import_stack s = { 0 };
	bool fresh;
	uint32_t *at;

	if (!frames || frames->type != PICKLE_LIST || !frames->count)
		return s;
	at = map_put(&fs->lists, (uint64_t)(frames - im->p.values), &fresh);
	if (!fresh)
		return fs->stacks[*at];
	*at = (uint32_t)fs->count;
	build(im, frames, &s);
	*need_item(fs->stacks, fs->count, fs->room) = s;
	im->any_python |= s.python;
	im->any_native |= s.native;
	return s;
}

struct import_stack import_stack_inner(struct import *im, struct import_stack s, const char *name,
				       const char *file, uint32_t line)
{
	uint32_t at = known(im, name, file, line);
	const struct import_frame *f = &im->frames.known[at];

	if (!f->native) {
		s.id = add_node(im, s.id, GMT_FRAME_PYTHON, f->value | !s.python);
		s.python = im->any_python = true;
	}
	return s;
}

void import_frames_free(struct import_frames *f)
{
	map_free(&f->lists);
	map_free(&f->frames);
	map_free(&f->texts);
	map_free(&f->nodes);
	free(f->stacks);
	free(f->known);
}

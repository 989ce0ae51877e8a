/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks.h"

#include "../../format/pylines.h"
#include "../../format/record.h"

void stacks_init(struct stacks *s, const struct defs *defs, struct symbols *symbols)
{
	*s = (struct stacks){ .defs = defs, .symbols = symbols };
}

void stacks_free(struct stacks *s)
{
	free(s->frames);
	free(s->native);
	free(s->python);
}

/* Follows one chain of nodes of one kind; a node of another kind belongs to the other chain. */
static void follow(struct stacks *s, uint32_t id)
{
	const struct defs_node *n;

	for (size_t i = 0; id && i < STACKS_DEPTH && (n = defs_node(s->defs, id)); i++) {
		if (n->frame == GMT_FRAME_NATIVE)
			*need_item(s->native, s->native_count, s->native_room) = n->value;
		else if (n->frame == GMT_FRAME_PYTHON)
			*need_item(s->python, s->python_count, s->python_room) = n->value;
		else
			break;
		id = n->parent;
	}
}

static void split(struct stacks *s, uint32_t id)
{
	const struct defs_node *n = defs_node(s->defs, id);

	s->count = s->native_count = s->python_count = 0;
	if (n && n->frame == GMT_FRAME_JOIN) {
		follow(s, (uint32_t)n->value);
		follow(s, n->parent);
	} else {
		follow(s, id);
	}
}

static struct frame *frame_add(struct stacks *s)
{
	struct frame *f = need_item(s->frames, s->count, s->room);

	*f = (struct frame){ .function = "", .file = "", .module = "" };
	return f;
}

static void add_python(struct stacks *s, uint64_t value)
{
	const struct defs_code *c = defs_code(s->defs, value >> 32);
	long lasti = (int32_t)(uint32_t)value >> 1;
	struct frame *f = frame_add(s);

	f->python = true;
	if (!c)
		return;
	f->function = c->name.s;
	f->file = c->file.s;
	f->first_line = c->first_line;
	f->line = gmt_pylines_line(c->python, c->first_line, c->table.s, c->table.len, lasti);
}

static void add_native(struct stacks *s, const struct symbol *sym, uint64_t ip)
{
	struct frame *f = frame_add(s);

	f->function = sym->function;
	f->file = sym->file;
	f->module = sym->module;
	f->line = sym->line;
	f->offset = sym->offset;
	f->ip = ip;
}

enum interpreter { NOT_INTERPRETER, EVAL_FRAME, TAIL_CALL };

/* Whether a native function runs Python code. Since 3.14 each instruction can be a function that
 * calls the next one last, so a run of them is one interpreter. */
static enum interpreter interpreter(const struct symbol *s)
{
	if (!strncmp(s->raw, "_PyEval_EvalFrameDefault", 24))
		return EVAL_FRAME;
	return strncmp(s->raw, "_TAIL_CALL_", 11) ? NOT_INTERPRETER : TAIL_CALL;
}

/* The recorder's hooks are between the program's functions and the library functions called. */
static bool is_recorder(const char *module)
{
	static const char name[] = "libgpumemtrace.so";

	return !strncmp(ending_behind(module, '/'), name, sizeof(name) - 1);
}

/* Puts Python frames in place of each interpreter's call, up to the one that C called. */
static void merge(struct stacks *s, uint64_t seq, bool lines)
{
	enum interpreter before = NOT_INTERPRETER, now;
	size_t python = 0;

	for (size_t i = 0; i < s->native_count; i++, before = now) {
		const struct symbol *symbol = symbols_find(s->symbols, s->native[i], seq);
		bool done = false;

		now = interpreter(symbol);
		if (now == NOT_INTERPRETER && !is_recorder(symbol->module))
			add_native(s, lines ? symbols_place(symbol) : symbol, s->native[i]);
		if (now == NOT_INTERPRETER || (now == TAIL_CALL && before == TAIL_CALL))
			continue;
		while (python < s->python_count && !done) {
			done = s->python[python] & 1;
			add_python(s, s->python[python++]);
		}
	}
	while (python < s->python_count)
		add_python(s, s->python[python++]);
}

void stacks_read(struct stacks *s, uint32_t id, uint64_t seq)
{
	split(s, id);
	merge(s, seq, true);
}

void stacks_read_names(struct stacks *s, uint32_t id, uint64_t seq)
{
	split(s, id);
	merge(s, seq, false);
}

void stacks_read_python(struct stacks *s, uint32_t id)
{
	split(s, id);
	for (size_t i = 0; i < s->python_count; i++)
		add_python(s, s->python[i]);
}

void stacks_read_native(struct stacks *s, uint32_t id, uint64_t seq)
{
	split(s, id);
	for (size_t i = 0; i < s->native_count; i++) {
		const struct defs_module *m = symbols_module(s->symbols, s->native[i], seq);
		struct frame *f;

		if (m && is_recorder(m->path.s))
			continue;
		f = frame_add(s);
		f->ip = s->native[i];
		f->module = m ? m->path.s : "";
	}
}

const struct frame *stacks_in_file(struct stacks *s, uint32_t id, const char *const *words)
{
	stacks_read_python(s, id);
	return FIRST_OF(f, s->frames, s->count, words_in(f->file, strlen(f->file), words));
}

const struct frame *stacks_in_function(struct stacks *s, uint32_t id, const char *const *words)
{
	stacks_read_python(s, id);
	return FIRST_OF(f, s->frames, s->count, words_in(f->function, strlen(f->function), words));
}

bool stacks_have(struct stacks *s, uint32_t id, uint64_t seq, const char *part)
{
	stacks_read_names(s, id, seq);
	for (size_t i = 0; i < s->count && !s->frames[i].python; i++)
		if (strstr(s->frames[i].function, part))
			return true;
	return false;
}

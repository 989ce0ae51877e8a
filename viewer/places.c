/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What needs a line of source or the name of a native function: asked once for each stack, and only
 * when a rule comes to it, because names of native functions are slow.
 */
#include <stdio.h>
#include <string.h>

#include "rules.h"

enum { LOOK_BACK = 6, LOOK_ON = 40, WIDTH = 1024 };

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/* Reads lines [from, from + n) into text, one behind the other; how many there are. */
static int read_lines(const char *path, unsigned from, int n, char text[][WIDTH])
{
	FILE *f = fopen(path, "r");
	unsigned line = 0;
	int got = 0;
	char skipped[WIDTH];

	while (f && got < n) {
		char *to = ++line < from ? skipped : text[got];

		if (!fgets(to, WIDTH, f))
			break;
		got += line >= from;
	}
	if (f)
		fclose(f);
	return got;
}

static int depth_of(const char *s)
{
	int depth = 0;

	for (; *s; s++)
		depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
	return depth;
}

/* The first name that a statement assigns to, "" if it is none. */
static void assigned(const char *s, char *name, size_t room)
{
	size_t n;

	s += strspn(s, " \t");
	n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	name[0] = 0;
	if (n && n < room && strchr(s, '=') && strchr(" ,=:", s[n]))
		snprintf(name, room, "%.*s", (int)n, s);
}

/* The lines around one: its statement is lines[first..at]. */
struct source {
	char lines[LOOK_BACK + LOOK_ON][WIDTH];
	int n, first, at;
	char name[64]; /* that the statement assigns to */
};

static bool read_statement(struct source *s, const char *path, unsigned line)
{
	unsigned from = line > LOOK_BACK ? line - LOOK_BACK : 1;

	s->n = read_lines(path, from, LOOK_BACK + LOOK_ON, s->lines);
	s->first = s->at = line - from;
	if (!line || s->at >= s->n)
		return false;
	for (int i = s->at, depth = 0; i > 0 && i > s->at - LOOK_BACK; i--) {
		depth += depth_of(s->lines[i - 1]);
		if (depth > 0) {
			s->first = i - 1;
			break;
		}
	}
	assigned(s->lines[s->first], s->name, sizeof(s->name));
	return true;
}

static bool says(const struct source *s, const char *part)
{
	for (int i = s->first; i <= s->at; i++)
		if (strstr(s->lines[i], part))
			return true;
	return false;
}

/* A later statement of the same function says it of the name that this one assigns to. */
static bool says_later(const struct source *s, const char *part)
{
	for (int i = s->at + 1; i < s->n && s->name[0] && !strstr(s->lines[i], "def "); i++)
		if (strstr(s->lines[i], part) && strstr(s->lines[i], s->name))
			return true;
	return false;
}

/* The statement around a line registers a buffer, or makes what a later one registers. */
static bool registers_buffer(const char *path, unsigned line)
{
	static struct source s;

	return read_statement(&s, path, line) &&
	       (says(&s, "register_buffer(") || says(&s, "_buffers[") ||
		says_later(&s, "register_buffer("));
}

/* "p.grad = torch.zeros_like(p)" */
static bool assigns_grad(const struct source *s)
{
	const char *text = s->lines[s->first], *end = strchr(text, '=');
	size_t n = end ? (size_t)(end - text) : 0;

	while (n && text[n - 1] == ' ')
		n--;
	return n > 4 && end[1] != '=' && !memcmp(text + n - 4, "grad", 4) &&
	       (text[n - 5] == '.' || text[n - 5] == '_');
}

static uint32_t look_at_script(struct stacks *s, uint32_t stack)
{
	static struct source at;
	uint32_t found = 0;
	size_t i = 0;

	stacks_read_python(s, stack);
	while (i < s->count && owners_is_plumbing(s->frames[i].file))
		i++;
	if (i == s->count || !read_statement(&at, s->frames[i].file, s->frames[i].line))
		return 0;
	if (assigns_grad(&at))
		found |= PLACE_GRAD;
	if (says(&at, "requires_grad=True") || says(&at, "requires_grad_(") ||
	    says(&at, "Parameter(") || says_later(&at, "requires_grad") ||
	    says_later(&at, "Parameter("))
		found |= PLACE_LEAF;
	return found;
}

static uint32_t look_at_python(struct stacks *s, uint32_t stack)
{
	stacks_read_python(s, stack);
	for (size_t i = 0; i < s->count && i < 12; i++) {
		const struct frame *f = &s->frames[i];
		const char *name = last_part(f->function);

		if (registers_buffer(f->file, f->line))
			return PLACE_BUFFER;
		if (!strcmp(name, "_apply") || !strcmp(name, "__init__"))
			break;
	}
	return 0;
}

uint32_t place_of_python(struct classifier *c, uint32_t stack)
{
	bool fresh;
	uint32_t *at;

	if (!c->owners)
		return 0;
	at = map_put(&c->places, stack, &fresh);
	if (fresh)
		*at = PLACE_KNOWN | look_at_python(c->owners->stacks, stack);
	return *at;
}

uint32_t place_of_script(struct classifier *c, const struct block *b)
{
	bool fresh;
	uint32_t *at;

	if (!c->owners || !(b->signs & STACK_PYTHON))
		return 0;
	at = map_put(&c->places, (uint64_t)2 << 32 | b->stack, &fresh);
	if (fresh)
		*at = PLACE_KNOWN | look_at_script(c->owners->stacks, b->stack);
	return *at;
}

/* Parts of the names of native functions; the innermost that fits counts. */
static const struct {
	const char *part;
	uint32_t place;
} functions[] = {
	{ "CUDABlasWorkspace", PLACE_WORKSPACE },	 { "CUDABlasLtWorkspace", PLACE_WORKSPACE },
	{ "getCurrentCUDABlasHandle", PLACE_WORKSPACE }, { "getNewWorkspace", PLACE_WORKSPACE },
	{ "c10d::ProcessGroup", PLACE_NETWORK },
};

/* Python's own names of functions that make a tensor, or bring one to the device. */
static bool is_maker(const char *op)
{
	static const char *const makers[] = { "empty",	"zeros",  "ones",   "full", "rand",
					      "arange", "tensor", "to(",    "to_",  "cuda",
					      "new_",	"copy_",  "normal", "eye",  "linspace" };

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
		if (!strncmp(op, makers[i], strlen(makers[i])))
			return true;
	return false;
}

static uint32_t look_at_native(struct stacks *s, const struct block *b)
{
	static const char binding[] = "torch::autograd::THPVariable_";
	uint32_t found = 0;

	stacks_read_native(s, b->stack, b->seq);
	for (size_t i = 0; i < s->count; i++) {
		const char *f = symbols_find(s->symbols, s->frames[i].ip, b->seq)->function;

		for (size_t k = 0; !found && k < sizeof(functions) / sizeof(functions[0]); k++)
			if (strstr(f, functions[k].part))
				found = functions[k].place;
		if (!strncmp(f, binding, sizeof(binding) - 1))
			return found |
			       (is_maker(f + sizeof(binding) - 1) ? PLACE_MAKER : PLACE_COMPUTED);
	}
	return found;
}

uint32_t place_of_native(struct classifier *c, const struct block *b)
{
	bool fresh;
	uint32_t *at;

	if (!c->owners || !b->stack)
		return 0;
	at = map_put(&c->places, (uint64_t)1 << 32 | b->stack, &fresh);
	if (fresh)
		*at = PLACE_KNOWN | look_at_native(c->owners->stacks, b);
	return *at;
}

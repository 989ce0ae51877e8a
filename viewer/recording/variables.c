/* SPDX-License-Identifier: Apache-2.0 */
#include "variables.h"

#include "owners.h"

#include <ctype.h>

/* c10::ScalarType: names as Python has them, and bytes of an element. */
static const struct {
	const char *name;
	unsigned bytes;
} types[] = {
	{ "uint8", 1 },		  { "int8", 1 },
	{ "int16", 2 },		  { "int32", 4 },
	{ "int64", 8 },		  { "float16", 2 },
	{ "float32", 4 },	  { "float64", 8 },
	{ "complex32", 4 },	  { "complex64", 8 },
	{ "complex128", 16 },	  { "bool", 1 },
	{ "qint8", 1 },		  { "quint8", 1 },
	{ "qint32", 4 },	  { "bfloat16", 2 },
	{ "quint4x2", 1 },	  { "quint2x4", 1 },
	{ "bits1x8", 1 },	  { "bits2x4", 1 },
	{ "bits4x2", 1 },	  { "bits8", 1 },
	{ "bits16", 2 },	  { "float8_e5m2", 1 },
	{ "float8_e4m3fn", 1 },	  { "float8_e5m2fnuz", 1 },
	{ "float8_e4m3fnuz", 1 }, { "uint16", 2 },
	{ "uint32", 4 },	  { "uint64", 8 },
};

#define TYPES (sizeof(types) / sizeof(types[0]))

const char *variables_type(const struct defs_variable *v)
{
	return v->head.type < TYPES ? types[v->head.type].name : "?";
}

uint64_t variables_bytes(const struct defs_variable *v)
{
	uint64_t n = v->head.type < TYPES ? types[v->head.type].bytes : 0;

	for (unsigned i = 0; i < v->head.dims; i++)
		if (__builtin_mul_overflow(n, v->sizes[i], &n))
			return 0;
	return n;
}

const char *variables_shape(const struct defs_variable *v, char buf[VARIABLE_SHAPE])
{
	text_put(buf, VARIABLE_SHAPE, "[");
	for (unsigned i = 0; i < v->head.dims; i++)
		text_add(buf, VARIABLE_SHAPE, "%s%" PRIu64, i ? ", " : "", v->sizes[i]);
	text_add(buf, VARIABLE_SHAPE, "]");
	return buf;
}

/* The node's frame is Python. */
static const struct defs_node *python_node(const struct defs *d, uint32_t id)
{
	const struct defs_node *n = defs_node(d, id);

	return n && n->frame == GMT_FRAME_PYTHON ? n : NULL;
}

static bool is_same(const struct defs_variable *a, const struct defs_variable *b)
{
	return a->head.addr == b->head.addr && a->head.bytes == b->head.bytes &&
	       a->head.tensors / 2 == b->head.tensors / 2; /* a tuple may have one */
}

static bool is_own(const struct frame *f)
{
	return !owners_is_plumbing(f->file) && !owners_is_stdlib(f->file);
}

static size_t add(struct variable_at *out, size_t count, size_t most, const struct variable_at *x)
{
	struct variable_at *known = FIRST_OF(k, out, count, is_same(k->variable, x->variable));

	if ((!known && count == most) || (x->variable->head.tensors > 1 && !x->own))
		return count;
	if (!known || (x->own && !known->own))
		*(known ? known : &out[count]) = *x;
	return count + !known;
}

static size_t collect(struct stacks *s, uint32_t stack, uint64_t seq, uint64_t since, bool refused,
		      struct variable_at *out, size_t most)
{
	const struct defs_node *n = defs_node(s->defs, stack);
	uint32_t id = n && n->frame == GMT_FRAME_JOIN ? (uint32_t)n->value : stack;
	size_t count = 0;

	stacks_read_python(s, stack);
	for (size_t i = 0; i < s->count && (n = python_node(s->defs, id)); i++, id = n->parent) {
		const struct defs_variables *x = defs_variables(s->defs, id, seq);

		if (x && refused && (!x->refused || x->seq < since || x->seq > seq))
			continue;
		for (uint32_t k = 0; x && k < x->count; k++)
			count = add(out, count, most,
				    &(struct variable_at){ defs_variable(s->defs, x, k),
							   s->frames[i], is_own(&s->frames[i]) });
	}
	return count;
}

size_t variables_at(struct stacks *s, uint32_t stack, uint64_t seq, struct variable_at *out,
		    size_t most)
{
	return collect(s, stack, seq, 0, false, out, most);
}

size_t variables_refused(struct stacks *s, uint32_t stack, uint64_t seq, uint64_t since,
			 struct variable_at *out, size_t most)
{
	return collect(s, stack, seq, since, true, out, most);
}

static const struct defs_code *code_of(const struct defs *d, const struct defs_node *n)
{
	return n ? defs_code(d, (uint32_t)(n->value >> 32)) : NULL;
}

/* No model outside of it calls it, but for wrappers. */
static bool is_outermost_forward(const struct defs *d, uint32_t node)
{
	const struct defs_node *n = python_node(d, node);
	bool is = false;

	for (unsigned depth = 0; n && depth < STACKS_DEPTH; depth++) {
		const struct defs_code *c = code_of(d, n);

		if (c && owners_is_forward(c->name.s) && !owners_is_plumbing(c->file.s)) {
			if (depth)
				return false;
			is = true;
		} else if (!depth) {
			return false;
		}
		n = python_node(d, n->parent);
	}
	return is;
}

uint64_t variables_first_size(const struct defs *d, uint64_t seq)
{
	const struct defs_variables *x = d->frames.items;

	for (size_t i = d->frames.count; i-- > 0;) {
		const struct defs_variable *v = defs_variable(d, &x[i], 0);

		if (x[i].seq <= seq && x[i].count && !v->head.tensors && v->head.dims &&
		    is_outermost_forward(d, x[i].node))
			return v->sizes[0];
	}
	return 0;
}

/* Behind the sign of an assignment, which is no ==, <=, >=, != and no argument's name. */
static const char *right_side(const char *statement)
{
	int depth = 0;

	for (const char *at = statement; *at; at++) {
		depth += !!strchr("([{", *at) - !!strchr(")]}", *at);
		if (!depth && *at == '=' && at[1] != '=' && at > statement &&
		    !strchr("=<>!", at[-1]))
			return at + 1;
	}
	return statement;
}

static const struct defs_variable *named(const struct variable_at *all, size_t count,
					 const struct frame *line, const char *name, size_t len)
{
	const struct variable_at *x =
		FIRST_OF(v, all, count,
			 v->frame.line == line->line && !strcmp(v->frame.file, line->file) &&
				 !v->variable->head.tensors && v->variable->name.len == len &&
				 !memcmp(v->variable->name.s, name, len));

	return x ? x->variable : NULL;
}

const char *variables_read(struct stacks *s, uint32_t stack, uint64_t seq, const struct frame *line,
			   const char *statement, char buf[VARIABLE_WORDS])
{
	enum { MOST = 3 };
	struct variable_at all[64];
	size_t count = variables_at(s, stack, seq, all, 64), shown = 0;
	const struct defs_variable *said[MOST], *v;
	char shape[VARIABLE_SHAPE];

	buf[0] = 0;
	for (const char *at = right_side(statement); *at && shown < MOST; at++) {
		size_t len = 0;

		while (isalnum((unsigned char)at[len]) || at[len] == '_')
			len++;
		v = len ? named(all, count, line, at, len) : NULL;
		if (v && at[-!!(at > statement)] != '.' && !ANY_OF(x, said, shown, *x == v)) {
			text_add(buf, VARIABLE_WORDS, "%s%.*s %s", shown ? ", " : "", (int)len, at,
				 variables_shape(v, shape));
			said[shown++] = v;
		}
		at += len ? len - 1 : 0;
	}
	return buf;
}

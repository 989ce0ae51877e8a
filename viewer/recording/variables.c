/* SPDX-License-Identifier: Apache-2.0 */
#include "variables.h"

#include <ctype.h>

/* Names of types in Python, by c10::ScalarType. */
static const char *const types[] = {
	"uint8",	   "int8",
	"int16",	   "int32",
	"int64",	   "float16",
	"float32",	   "float64",
	"complex32",	   "complex64",
	"complex128",	   "bool",
	"qint8",	   "quint8",
	"qint32",	   "bfloat16",
	"quint4x2",	   "quint2x4",
	"bits1x8",	   "bits2x4",
	"bits4x2",	   "bits8",
	"bits16",	   "float8_e5m2",
	"float8_e4m3fn",   "float8_e5m2fnuz",
	"float8_e4m3fnuz", "uint16",
	"uint32",	   "uint64",
};

const char *variables_type(const struct defs_variable *v)
{
	return v->head.type < sizeof(types) / sizeof(types[0]) ? types[v->head.type] : "?";
}

const char *variables_shape(const struct defs_variable *v, char buf[VARIABLE_SHAPE])
{
	text_put(buf, VARIABLE_SHAPE, "[");
	for (unsigned i = 0; i < v->head.dims; i++)
		text_add(buf, VARIABLE_SHAPE, "%s%" PRIu64, i ? ", " : "", v->sizes[i]);
	text_add(buf, VARIABLE_SHAPE, "]");
	return buf;
}

const char *variables_form(const struct defs_variable *v, char buf[VARIABLE_FORM])
{
	char shape[VARIABLE_SHAPE], many[32] = "";

	if (v->head.tensors)
		snprintf(many, sizeof(many), "%" PRIu32 ", first ", v->head.tensors);
	snprintf(buf, VARIABLE_FORM, "%s%s %s", many, variables_shape(v, shape), variables_type(v));
	return buf;
}

/* The node if its frame is a Python frame, else NULL. */
static const struct defs_node *python_node(const struct defs *d, uint32_t id)
{
	const struct defs_node *n = defs_node(d, id);

	return n && n->frame == GMT_FRAME_PYTHON ? n : NULL;
}

static bool is_same(const struct defs_variable *a, const struct defs_variable *b)
{
	return a->head.addr == b->head.addr && a->head.bytes == b->head.bytes &&
	       a->head.tensors / 2 == b->head.tensors / 2; /* a tuple can have one tensor */
}

static bool is_own(const struct frame *f)
{
	return !owners_is_plumbing(f->file) && !owners_is_stdlib(f->file);
}

static size_t add_variable(struct variable_at *out, size_t count, size_t most,
			   const struct variable_at *x)
{
	struct variable_at *known = FIRST_OF(k, out, count, is_same(k->variable, x->variable));

	if ((!known && count == most) || (x->variable->head.tensors > 1 && !x->own))
		return count;
	if (!known || (x->own && !known->own))
		*(known ? known : &out[count]) = *x;
	return count + !known;
}

static size_t collect_variables(struct stacks *s, uint32_t stack, uint64_t seq, uint64_t since,
				bool refused, struct variable_at *out, size_t most)
{
	const struct defs_node *n = defs_node(s->defs, stack);
	uint32_t id = n && n->frame == GMT_FRAME_JOIN ? (uint32_t)n->value : stack;
	size_t count = 0;

	stacks_read_python(s, stack);
	for (size_t i = 0; i < s->count && (n = python_node(s->defs, id)); i++, id = n->parent) {
		const struct defs_variables *x = defs_variables(s->defs, id, seq);
		const struct owner owner = { .function = s->frames[i].function,
					     .file = s->frames[i].file,
					     .line = s->frames[i].line };

		if (x && refused && (!x->refused || x->seq < since || x->seq > seq))
			continue;
		for (uint32_t k = 0; x && k < x->count; k++)
			count = add_variable(out, count, most,
					     &(struct variable_at){ defs_variable(s->defs, x, k),
								    owner, is_own(&s->frames[i]),
								    x->seq });
	}
	return count;
}

size_t variables_at(struct stacks *s, uint32_t stack, uint64_t seq, struct variable_at *out,
		    size_t most)
{
	return collect_variables(s, stack, seq, 0, false, out, most);
}

size_t variables_refused(struct stacks *s, uint32_t stack, uint64_t seq, uint64_t since,
			 struct variable_at *out, size_t most)
{
	return collect_variables(s, stack, seq, since, true, out, most);
}

static const struct defs_code *code_of(const struct defs *d, const struct defs_node *n)
{
	return n ? defs_code(d, (uint32_t)(n->value >> 32)) : NULL;
}

/* Whether it is the forward method of a model that no other model calls, except wrappers. */
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

/* Pictures, sequences, tokens of texts. A vector or a matrix may be of the nodes of a graph, and
 * two rows of numbers its edges. */
static bool may_be_batch(const struct defs_variable *v)
{
	return v->head.dims > 2 ||
	       (v->head.dims == 2 && v->sizes[0] != 2 && !strstr(variables_type(v), "float"));
}

uint64_t variables_first_size(const struct defs *d, uint64_t seq)
{
	const struct defs_variables *x = d->frames.items;

	for (size_t i = d->frames.count; i-- > 0;) {
		const struct defs_variable *v = defs_variable(d, &x[i], 0);

		if (x[i].seq <= seq && x[i].count && !v->head.tensors && v->head.dims &&
		    !memchr(v->name.s, '.', v->name.len) && is_outermost_forward(d, x[i].node))
			return may_be_batch(v) ? v->sizes[0] : 0;
	}
	return 0;
}

/* The text behind an assignment's "=", but not ==, <=, >=, != or that of a keyword argument. */
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

static const struct variable_at *named(const struct variable_at *all, size_t count,
				       const struct owner *line, const char *name, size_t len)
{
	return FIRST_OF(v, all, count,
			v->owner.line == line->line && !strcmp(v->owner.file, line->file) &&
				!v->variable->head.tensors && v->variable->name.len == len &&
				!memcmp(v->variable->name.s, name, len));
}

/* The length of a name with dots, such as "self.rows.shape". */
static size_t path_length(const char *at)
{
	size_t len = 0;

	while (isalnum((unsigned char)at[len]) || at[len] == '_' || (len && at[len] == '.'))
		len++;
	return len;
}

/* The variable of a path or of its longest known beginning, whose length *len becomes. */
static const struct variable_at *longest_named(const struct variable_at *all, size_t count,
					       const struct owner *line, const char *path,
					       size_t *len)
{
	while (*len) {
		const struct variable_at *v = named(all, count, line, path, *len);

		if (v)
			return v;
		while (*len && path[--*len] != '.')
			;
	}
	return NULL;
}

const char *variables_read(struct stacks *s, uint32_t stack, uint64_t seq, const struct owner *line,
			   const char *statement, char buf[VARIABLE_WORDS], uint64_t *noted)
{
	enum { MOST = 3 };
	struct variable_at all[64];
	size_t count = variables_at(s, stack, seq, all, 64), shown = 0;
	const struct variable_at *said[MOST], *v;
	char shape[VARIABLE_SHAPE];

	buf[0] = 0;
	for (const char *at = right_side(statement); *at && shown < MOST; at++) {
		size_t path = path_length(at), len = path;

		v = longest_named(all, count, line, at, &len);
		if (v && at[-!!(at > statement)] != '.' && !ANY_OF(x, said, shown, *x == v)) {
			text_add(buf, VARIABLE_WORDS, "%s%.*s %s", shown ? ", " : "", (int)len, at,
				 variables_shape(v->variable, shape));
			*noted = v->seq;
			said[shown++] = v;
		}
		at += path ? path - 1 : 0;
	}
	return buf;
}

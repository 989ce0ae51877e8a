/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine of a pickle: a stack of values, marks in it, and a memo of values by number. Nothing
 * here follows a value into others, so that no nesting is too deep. Every length is compared with
 * what is left of the input before it is believed.
 */
#include "pickle_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

#define UNSET UINT32_MAX

/* Values that lie above the innermost mark. */
static size_t above(const struct machine *m)
{
	return m->stack.count - (m->marks.count ? m->marks.v[m->marks.count - 1] : 0);
}

static bool has(struct machine *m, size_t n)
{
	return above(m) >= n || machine_fail(m, "the stack is too short");
}

/* The index in the stack of the innermost mark, which goes. */
static bool pop_mark(struct machine *m, size_t *from)
{
	*from = 0;
	if (!m->marks.count)
		return machine_fail(m, "a mark is missing");
	*from = m->marks.v[--m->marks.count];
	return true;
}

/* A dictionary of a few members takes what it needs, a long list an eighth more. */
static size_t room_for(size_t n)
{
	size_t step = n < 16 ? 1 : (size_t)1 << (60 - __builtin_clzll(n));

	return (n + step - 1) & ~(step - 1);
}

/* The values of the stack from there on go into it, `each` at a time. */
static void append(struct machine *m, struct pickle_value *v, size_t from, uint32_t each)
{
	size_t n = m->stack.count - from, all = v->count + n / each;

	if (room_for(all) > room_for(v->count))
		v->items = need_resize(v->items, room_for(all) * each * sizeof(*v->items));
	if (n)
		memcpy(v->items + (size_t)v->count * each, m->stack.v + from,
		       n * sizeof(*v->items));
	v->count = (uint32_t)all;
	m->stack.count = from;
}

static bool do_proto(struct machine *m)
{
	uint64_t version;

	if (!machine_take(m, 1, &version))
		return false;
	return (version >= 2 && version <= 5) ||
	       machine_fail(m, "a protocol that is none of 2 to 5");
}

/* Frames are advice for readers of streams. */
static bool do_frame(struct machine *m)
{
	uint64_t len;

	return machine_take(m, 8, &len);
}

static bool do_stop(struct machine *m)
{
	if (!has(m, 1))
		return false;
	m->p->root = m->stack.v[m->stack.count - 1];
	return m->stopped = true;
}

static bool do_mark(struct machine *m)
{
	if (m->stack.count >= PICKLE_VALUES)
		return machine_fail(m, "too many values");
	machine_push_ref(&m->marks, (uint32_t)m->stack.count);
	return true;
}

static bool do_pop(struct machine *m)
{
	if (!has(m, 1))
		return false;
	m->stack.count--;
	return true;
}

static bool do_pop_mark(struct machine *m)
{
	return pop_mark(m, &m->stack.count);
}

/* The value that lies at stack[i], if it is of that type. */
static struct pickle_value *container(struct machine *m, size_t i, unsigned type)
{
	struct pickle_value *v = &m->p->values[m->stack.v[i]];

	if (v->type == type)
		return v;
	machine_fail(m, type == PICKLE_LIST ? "append to a value that is not a list"
					    : "set in a value that is not a dictionary");
	return NULL;
}

/* The values from stack[from] on go into what lies below them: items of a list, or keys and values
 * of a dictionary. */
static bool add_from(struct machine *m, size_t from)
{
	unsigned each = m->op->n;
	struct pickle_value *v;

	if (!has(m, m->stack.count - from + 1) ||
	    !(v = container(m, from - 1, each == 1 ? PICKLE_LIST : PICKLE_DICT)))
		return false;
	if ((m->stack.count - from) % each)
		return machine_fail(m, "a key without a value");
	append(m, v, from, each);
	return true;
}

static bool do_add(struct machine *m)
{
	return has(m, m->op->n + 1) && add_from(m, m->stack.count - m->op->n);
}

static bool do_add_of_mark(struct machine *m)
{
	size_t from;

	return pop_mark(m, &from) && add_from(m, from);
}

/* The topmost values from stack[from] on become one. */
static bool tuple_from(struct machine *m, size_t from)
{
	struct pickle_value v = { .type = PICKLE_LIST, .form = PICKLE_TUPLE };

	append(m, &v, from, 1);
	return machine_push(m, v);
}

static bool do_tuple_of_mark(struct machine *m)
{
	size_t from;

	return pop_mark(m, &from) && tuple_from(m, from);
}

static bool do_tuple(struct machine *m)
{
	return has(m, m->op->n) && tuple_from(m, m->stack.count - m->op->n);
}

static bool do_get(struct machine *m)
{
	uint64_t i;

	if (!machine_take(m, m->op->n, &i))
		return false;
	if (i >= m->memo.count || m->memo.v[i] == UNSET)
		return machine_fail(m, "a value is used that was not kept");
	machine_push_ref(&m->stack, m->memo.v[i]);
	return true;
}

/* Numbers come nearly in order: one beyond the bytes that were read is no pickler's. */
static bool put(struct machine *m, uint64_t i)
{
	if (!has(m, 1))
		return false;
	if (i > (uint64_t)(m->at - m->start))
		return machine_fail(m, "a value is kept under a number that is too large");
	while (m->memo.count <= i)
		machine_push_ref(&m->memo, UNSET);
	m->memo.v[i] = m->stack.v[m->stack.count - 1];
	return true;
}

static bool do_put(struct machine *m)
{
	uint64_t i;

	return machine_take(m, m->op->n, &i) && put(m, i);
}

static bool do_memoize(struct machine *m)
{
	return put(m, m->memo.count);
}

static const struct opcode opcodes[256] = {
#define OP(code, name, run, n, form) [code] = { #name, run, n, form },
#include "pickle_ops.def"
#undef OP
};

static bool refuse(struct machine *m, unsigned code)
{
	char what[120];

	if (m->op->name)
		snprintf(what, sizeof(what),
			 "the opcode %s, which a memory snapshot does not need and which is not "
			 "executed,",
			 m->op->name);
	else
		snprintf(what, sizeof(what), "0x%02x, which is not an opcode of a pickle,", code);
	return machine_fail(m, what);
}

static bool run(struct machine *m)
{
	while (!m->stopped) {
		unsigned code;

		if (m->at == m->end) {
			m->at++;
			return machine_fail(m, "it ends too early");
		}
		code = *m->at++;
		m->op = &opcodes[code];
		if (!(m->op->run ? m->op->run(m) : refuse(m, code)))
			return false;
	}
	return true;
}

bool pickle_read(struct pickle *p, const void *data, size_t len)
{
	const uint8_t *start = data;
	struct machine m = { .p = p, .start = start, .at = start, .end = start + len };
	bool ok;

	*p = (struct pickle){ 0 };
	m.ints = need_new((1u << PICKLE_INTS) * sizeof(*m.ints));
	ok = run(&m);
	free(m.stack.v);
	free(m.marks.v);
	free(m.memo.v);
	free(m.ints);
	return ok;
}

void pickle_free(struct pickle *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->values[i].type >= PICKLE_LIST)
			free(p->values[i].items);
	free(p->values);
	p->values = NULL;
	p->count = p->room = 0;
}

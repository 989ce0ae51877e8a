/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine of a pickle: a stack of values, marks in it, and a memo of numbered values. Nothing
 * here follows a value into others, so no nesting is too deep. Every length is compared with the
 * rest of the input before it is used.
 */
#include "pickle.h"

#define PICKLE_VALUES (UINT32_MAX - 1)

#define PICKLE_INTS 16 /* bits of a hash */

struct refs {
	uint32_t *v;
	size_t count, room;
};

struct machine;

typedef bool operation(struct machine *m);

/* n: the bytes of the number or length that follows, or a type, or a count. */
struct opcode {
	const char *name; /* NULL: no such opcode */
	operation *run;	  /* NULL: it is an error */
	unsigned n, form;
};

struct machine {
	struct pickle *p;
	const uint8_t *start, *at, *end;
	struct refs stack, marks, memo;
	uint32_t *ints; /* 1 + index of the latest value with a number, by the number's hash */
	const struct opcode *op; /* the one that is executed */
	bool stopped;
};

/* Sets the error message; returns false. */
static bool machine_fail(struct machine *m, const char *what)
{
	snprintf(m->p->error, sizeof(m->p->error), "%s at byte %td of the pickle", what,
		 m->at - m->start - 1);
	return false;
}

static void machine_push_ref(struct refs *r, uint32_t ref)
{
	*need_item(r->v, r->count, r->room) = ref;
}

/* Reads n bytes, little-endian. */
static bool machine_take(struct machine *m, unsigned n, uint64_t *out)
{
	*out = 0;
	if ((size_t)(m->end - m->at) < n)
		return machine_fail(m, "it ends too early");
	for (unsigned i = 0; i < n; i++)
		*out |= (uint64_t)m->at[i] << 8 * i;
	m->at += n;
	return true;
}

static bool machine_push(struct machine *m, struct pickle_value v)
{
	struct pickle *p = m->p;

	if (p->count >= PICKLE_VALUES)
		return machine_fail(m, "too many values");
	machine_push_ref(&m->stack, (uint32_t)p->count);
	if (p->count == p->room) {
		p->room += p->room / 4 + 64;
		p->values = need_resize(p->values, p->room * sizeof(v));
	}
	p->values[p->count++] = v;
	return true;
}

/* Access to values. A value of a wrong type reads as a missing one. */

#define LOOK_BACK 64

const struct pickle_value *pickle_at(const struct pickle *p, uint32_t ref)
{
	return &p->values[ref];
}

const struct pickle_value *pickle_item(const struct pickle *p, const struct pickle_value *v,
				       uint32_t i)
{
	return v && v->type == PICKLE_LIST && i < v->count ? &p->values[v->items[i]] : NULL;
}

bool pickle_is(const struct pickle_value *text, const char *s)
{
	size_t len = strlen(s);

	return text && text->type == PICKLE_TEXT && text->count == len &&
	       !memcmp(text->text, s, len);
}

bool pickle_ends(const struct pickle_value *text, const char *s)
{
	size_t len = strlen(s);

	return text && text->type == PICKLE_TEXT && text->count >= len &&
	       !memcmp(text->text + text->count - len, s, len);
}

const struct pickle_value *pickle_get(const struct pickle *p, const struct pickle_value *dict,
				      const char *key)
{
	uint32_t least;

	if (!dict || dict->type != PICKLE_DICT)
		return NULL;
	least = dict->count > LOOK_BACK ? dict->count - LOOK_BACK : 0;
	for (size_t i = dict->count; i-- > least;)
		if (pickle_is(&p->values[dict->items[2 * i]], key))
			return &p->values[dict->items[2 * i + 1]];
	return NULL;
}

static const struct pickle_value *typed(const struct pickle_value *v, unsigned type)
{
	return v && v->type == type ? v : NULL;
}

uint64_t pickle_number(const struct pickle *p, const struct pickle_value *dict, const char *key)
{
	const struct pickle_value *v = pickle_get(p, dict, key);

	return v && (v->type == PICKLE_INT || v->type == PICKLE_BOOL) ? (uint64_t)v->number : 0;
}

const struct pickle_value *pickle_text(const struct pickle *p, const struct pickle_value *dict,
				       const char *key)
{
	return typed(pickle_get(p, dict, key), PICKLE_TEXT);
}

const struct pickle_value *pickle_list(const struct pickle *p, const struct pickle_value *dict,
				       const char *key)
{
	return typed(pickle_get(p, dict, key), PICKLE_LIST);
}

/* Opcodes that make a value without others in it. */

static bool pickle_do_value(struct machine *m)
{
	return machine_push(m, (struct pickle_value){ .type = (uint16_t)m->op->n,
						      .form = (uint16_t)m->op->form });
}

static bool pickle_do_bool(struct machine *m)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_BOOL, .number = m->op->n });
}

/* Pushes a number. Sizes, streams and addresses recur, so equal numbers can share a value. */
static bool push_int(struct machine *m, int64_t n)
{
	struct pickle_value v = { .type = PICKLE_INT, .number = n };
	uint32_t *known = &m->ints[(uint64_t)n * 0x9e3779b97f4a7c15u >> (64 - PICKLE_INTS)];

	if (*known && m->p->values[*known - 1].number == n) {
		machine_push_ref(&m->stack, *known - 1);
		return true;
	}
	*known = (uint32_t)m->p->count + 1;
	return machine_push(m, v);
}

static bool push_beyond(struct machine *m, uint64_t n)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_INT,
						      .form = PICKLE_BEYOND,
						      .number = (int64_t)n });
}

/* Only a number of 4 bytes has a sign. */
static bool pickle_do_int(struct machine *m)
{
	uint64_t n;

	return machine_take(m, m->op->n, &n) &&
	       push_int(m, m->op->n == 4 ? (int32_t)n : (int64_t)n);
}

/* Pushes a number in two's complement. It must fit into 64 bits, signed or unsigned. */
static bool long_of(struct machine *m, uint64_t len)
{
	uint64_t low, top = 0;
	unsigned kept = len < 8 ? (unsigned)len : 8;

	if (len > 9)
		return machine_fail(m, "a number of more than 64 bits");
	if (!machine_take(m, kept, &low) || !machine_take(m, (unsigned)(len - kept), &top))
		return false;
	if (top && (top != 0xff || !(low >> 63)))
		return machine_fail(m, "a number of more than 64 bits");
	if (kept && kept < 8 && low >> (8 * kept - 1) & 1)
		low |= UINT64_MAX << 8 * kept;
	return len > 8 && !top && low >> 63 ? push_beyond(m, low) : push_int(m, (int64_t)low);
}

static bool pickle_do_long(struct machine *m)
{
	uint64_t len;

	return machine_take(m, m->op->n, &len) && long_of(m, len);
}

/* The only number that is big-endian. */
static bool pickle_do_float(struct machine *m)
{
	struct pickle_value v = { .type = PICKLE_FLOAT };
	uint64_t bits;

	if (!machine_take(m, 8, &bits))
		return false;
	bits = __builtin_bswap64(bits);
	memcpy(&v.real, &bits, sizeof(bits));
	return machine_push(m, v);
}

static bool pickle_do_text(struct machine *m)
{
	struct pickle_value v = { .type = PICKLE_TEXT, .form = (uint16_t)m->op->form };
	uint64_t len;

	if (!machine_take(m, m->op->n, &len))
		return false;
	if (len > (uint64_t)(m->end - m->at) || len > UINT32_MAX)
		return machine_fail(m, "a text that is longer than the rest of the file");
	v.text = (const char *)m->at;
	v.count = (uint32_t)len;
	m->at += len;
	return machine_push(m, v);
}

#define UNSET UINT32_MAX

/* The number of values above the innermost mark. */
static size_t above(const struct machine *m)
{
	return m->stack.count - (m->marks.count ? m->marks.v[m->marks.count - 1] : 0);
}

static bool has(struct machine *m, size_t n)
{
	return above(m) >= n || machine_fail(m, "the stack is too short");
}

/* Removes the innermost mark. *from is its index in the stack. */
static bool pop_mark(struct machine *m, size_t *from)
{
	*from = 0;
	if (!m->marks.count)
		return machine_fail(m, "a mark is missing");
	*from = m->marks.v[--m->marks.count];
	return true;
}

/* The capacity for n elements: exactly n below 16, else up to an eighth more. */
static size_t room_for(size_t n)
{
	size_t step = n < 16 ? 1 : (size_t)1 << (60 - __builtin_clzll(n));

	return (n + step - 1) & ~(step - 1);
}

/* Moves the values from stack[from] on into v. `each` of them make one element. */
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

/* Skips the length of a frame, which only readers of streams need. */
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

/* The value at stack[i]; NULL, with an error, if it is not of that type. */
static struct pickle_value *container(struct machine *m, size_t i, unsigned type)
{
	struct pickle_value *v = &m->p->values[m->stack.v[i]];

	if (v->type == type)
		return v;
	machine_fail(m, type == PICKLE_LIST ? "append to a value that is not a list"
					    : "set in a value that is not a dictionary");
	return NULL;
}

/* Moves the values from stack[from] on into the list or dictionary below them. */
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

/* Replaces the values from stack[from] on by a tuple of them. */
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

/* Keeps the top value under number i. Picklers count up, so a number above the bytes read so far is
 * an error. */
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

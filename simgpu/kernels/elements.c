/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise kernels of small tensors. Unknown contents count as zero, and results from them are
 * guesses. Any thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "functors.h"
#include "numbers.h"
#include "view.h"

#define HELD	     3	 /* types[HELD]: of the operand in a wrapper */
#define GUESSED_MOST 256 /* most elements that are computed although no input value is known */

/* Layout of the arguments: the count first, then... */
enum {
	FORM_ROWS,    /* the functor, the pointers */
	FORM_CASTING, /* the same, then the types in memory */
	FORM_STRIDED, /* a structure: OffsetCalculator, pointers, functor */
	FORM_STEPPING /* the same, then the types in memory */
};

/* Functors that wrap another one and may hold one of its operands. */
enum { WRAPS_NOTHING, WRAPS_BOTH, HOLDS_LEFT, HOLDS_RIGHT };
static const struct {
	const char *mark;
	int wraps;
} wrappers[] = {
	{ "native::BinaryFunctor<", WRAPS_BOTH },
	{ "native::AUnaryFunctor<", HOLDS_LEFT },
	{ "native::BUnaryFunctor<", HOLDS_RIGHT },
};

/* ---- names ---- */

/* Returns the functor's name and sets the kernel's form. */
static struct text find_functor(struct kernel *k)
{
	bool rows = strstr(k->family->mark, "vectorized") != NULL;
	struct text t = text_argument(k, rows ? 1 : 0);

	k->form = text_has(text_argument(k, 5), "LoadWithCast") ? FORM_CASTING : FORM_ROWS;
	if (!strstr(k->family->mark, "native::elementwise"))
		return t;
	t = text_argument(k, 2);
	k->form = text_has(t, "gpu_kernel_impl_nocast<") ? FORM_STRIDED : FORM_STEPPING;
	return text_argument_of(
		t, k->form == FORM_STRIDED ? "gpu_kernel_impl_nocast<" : "gpu_kernel_impl<", 0);
}

/* Sets the result's type; the operands' types follow it. */
static void give(struct kernel *k)
{
	static const char other[] = {
		[GIVES_FLAG] = 'b', [GIVES_HALF] = 'H', [GIVES_BRAIN] = 'B', [GIVES_NAMED] = 0
	};

	k->types[0] = k->functor->gives == GIVES_SAME	  ? k->types[1]
		      : k->functor->gives == GIVES_SECOND ? k->types[2]
							  : other[k->functor->gives];
}

/* Type of the operand that a wrapper holds: the lambda's parameter, or the functor's template
 * argument. */
static char held_type(struct text inner)
{
	bool lambda = inner.at && inner.n && inner.at[inner.n - 1] == '}';

	return text_type(text_last_argument_of(inner, lambda ? "{lambda(" : "<", 0));
}

static bool parse_wrapped(struct kernel *k, struct text t)
{
	struct text inner;

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
		if (!text_has(t, wrappers[i].mark))
			continue;
		k->column = wrappers[i].wraps;
		k->operands = k->column == WRAPS_BOTH ? 2 : 1;
		for (int j = 0; j < 2; j++)
			k->types[j + 1] = text_type(text_argument_of(t, wrappers[i].mark, j));
		k->types[0] = text_type(text_argument_of(t, wrappers[i].mark, 2));
		inner = text_argument_of(t, wrappers[i].mark, 3);
		k->functor = functor_find(inner, 2);
		k->types[HELD] = held_type(inner);
		if (k->column != WRAPS_BOTH && !k->types[HELD])
			k->functor = NULL;
		return true;
	}
	return false;
}

/* A lambda's name shows the types of its parameters; a named functor has one type for all. */
static void parse_plain(struct kernel *k, struct text t)
{
	struct text parameter;

	k->column = WRAPS_NOTHING;
	if (t.at && t.n && t.at[t.n - 1] == '}') {
		for (k->operands = 0; k->operands < OPERANDS_MOST - 1; k->operands++) {
			parameter = text_last_argument_of(t, "{lambda(", k->operands);
			if (!parameter.at)
				break;
			k->types[k->operands + 1] = text_type(parameter);
		}
		k->functor = functor_find(t, k->operands);
	} else {
		k->functor = functor_find(t, -1);
		k->operands = k->functor ? k->functor->operands : 0;
		for (int i = 1; i <= (k->operands ? k->operands : 1); i++)
			k->types[i] = text_type(text_last_argument_of(t, "<", 0));
	}
	if (k->functor)
		give(k);
	if (k->functor && k->functor->gives == GIVES_NAMED)
		k->types[0] = text_type(text_argument_of(t, k->functor->mark, 1));
}

bool elements_parse(struct kernel *k)
{
	struct text t = find_functor(k);

	k->functor = NULL;
	if (!t.at)
		return false;
	if (!parse_wrapped(k, t))
		parse_plain(k, t);
	for (int i = 0; i <= k->operands; i++)
		if (!k->types[i])
			k->functor = NULL;
	return true;
}

/* ---- arguments ---- */

struct elements {
	const struct kernel *k;
	struct constants constants;
	long double held; /* operand in a wrapper */
	struct view views[OPERANDS_MOST];
	char *const *pointers;
	const uint32_t *steps; /* OffsetCalculator; NULL: contiguous */
	const char *functor;
	const int8_t *in, *out; /* types in memory, NULL: those of the functor */
	int32_t n;
};

/* The type letter of a c10::ScalarType; 0 for a type that is not computed. */
static char scalar_type(int8_t t)
{
	static const char types[] = { 'h', 'a', 's', 'i', 'l', 'H', 'f', 'd',
				      0,   0,	0,   'b', 0,   0,   0,	 'B' };

	return t >= 0 && t < (int)sizeof(types) ? types[t] : 0;
}

/* The pointers follow an OffsetCalculator, whose size depends on their number. */
static char *const *pointers_of(void *structure, int n)
{
	char *const *words = structure;

	words += (steps_words(n) + 1) / 2;
	for (int i = 0; i < n; i++)
		if (!sim_is_device_ptr(words[i]))
			return NULL;
	return words;
}

static void find_pointers(struct elements *e, void **args)
{
	static const int counts[] = { 3, 2, 4, 1 };

	if (e->k->form == FORM_ROWS || e->k->form == FORM_CASTING) {
		e->functor = args[1];
		e->pointers = args[2];
		return;
	}
	e->steps = args[1];
	if (e->k->functor)
		e->pointers = pointers_of(args[1], e->k->operands + 1);
	for (int i = 0; !e->pointers && !e->k->functor && i < 4; i++)
		e->pointers = pointers_of(args[1], counts[i]);
	e->functor = (const char *)(e->pointers + e->k->operands + 1);
}

/* Reads the functor inside a wrapper, then the operand that the wrapper holds. */
static size_t read_functor(struct elements *e)
{
	const struct kernel *k = e->k;
	char held = k->types[HELD];
	size_t used, size;

	used = functor_read(k->functor, &e->constants, e->functor, k->types[1]);
	if (k->column != HOLDS_LEFT && k->column != HOLDS_RIGHT)
		return used;
	size = number_size(held);
	used = (used + size - 1) / size * size;
	e->held = number_load(held, e->functor + used);
	return used + size;
}

static bool read_views(struct elements *e)
{
	const struct kernel *k = e->k;

	for (int i = 0; i <= k->operands; i++) {
		const int8_t *from = i ? e->in : e->out;
		char type = from ? scalar_type(from[i ? i - 1 : 0]) : k->types[i];
		const char *base = e->pointers[i];

		if (e->steps ? !view_steps(&e->views[i], base, type, e->steps, k->operands + 1, i)
			     : !view_row(&e->views[i], base, type, e->n))
			return false;
	}
	return e->views[0].n == e->n;
}

/* False if the kernel is not computed; the pointers are set if they are known. */
static bool read_call(struct elements *e, void **args)
{
	size_t size;

	memcpy(&e->n, args[0], sizeof(e->n));
	find_pointers(e, args);
	if (!e->pointers || !e->k->functor || e->n < 1)
		return false;
	size = read_functor(e);
	if (e->k->form == FORM_CASTING) {
		e->in = args[5];
		e->out = args[6];
	} else if (e->k->form == FORM_STEPPING) {
		e->out = (const int8_t *)e->functor + size;
		e->in = e->out + 1;
	}
	return read_views(e);
}

/* ---- computing ---- */

/* Element i at the address that the functor holds. */
static struct value taken(const struct elements *e, int64_t i)
{
	size_t size = number_size(e->k->types[1]);
	struct value value;
	char bytes[16];

	value.known = contents_look(bytes, e->constants.address, i * size, size);
	value.x = number_load(e->k->types[1], bytes);
	return value;
}

/* Computes element i. Guesses that are not finite become 0, because programs report them. */
static struct value element(const struct elements *e, struct value *const *in, int32_t i)
{
	const struct kernel *k = e->k;
	long double x[OPERANDS_MOST] = { e->held, e->held };
	int first = k->column == HOLDS_LEFT;
	bool choice = k->functor->gives == GIVES_SECOND, known = true;
	struct value value;

	for (int j = 0; j < k->operands; j++) {
		x[first + j] = number_cast(k->types[j + 1], in[j][i].x);
		known = known && (in[j][i].known || (choice && j == (x[0] != 0 ? 2 : 1)));
	}
	if (k->functor->holds == HOLDS_ADDRESS && x[1] != 0 && known)
		return taken(e, (int64_t)x[2]);
	value.x = number_cast(k->types[0], k->functor->compute(&e->constants, x));
	if (!known && !isfinite(value.x))
		value.x = 0;
	value.known = known;
	return value;
}

static bool any_known(const struct elements *e)
{
	for (int i = 1; i <= e->k->operands; i++)
		if (view_look(&e->views[i], 0).known || view_look(&e->views[i], e->n - 1).known)
			return true;
	return !e->k->operands;
}

/* Computes all results before it writes the first, because the output may overlap an operand. */
static bool compute(const struct elements *e)
{
	struct value *in[OPERANDS_MOST] = { NULL }, *out = values_new(e->n);
	bool done = out != NULL;

	for (int i = 0; done && i < e->k->operands; i++) {
		in[i] = values_new(e->n);
		done = in[i] != NULL;
		if (done)
			view_load(&e->views[i + 1], in[i]);
	}
	for (int32_t i = 0; done && i < e->n; i++)
		out[i] = element(e, in, i);
	if (done)
		view_store(&e->views[0], out);
	for (int i = 0; i < OPERANDS_MOST; i++)
		free(in[i]);
	free(out);
	return done;
}

static int64_t most_of(const struct elements *e)
{
	int64_t most = WHOLE_MOST;

	for (int i = 0; i <= e->k->operands; i++)
		most = whole_most(e->views[i].type) < most ? whole_most(e->views[i].type) : most;
	return most;
}

bool elements_launch(const struct call *c)
{
	struct elements e = { .k = c->k };

	if (!read_call(&e, c->args)) {
		if (!e.pointers)
			return false;
		sim_forget(e.pointers[0]);
		return true;
	}
	if (e.n > most_of(&e) || (e.n > GUESSED_MOST && !any_known(&e)) || !compute(&e))
		view_forget(&e.views[0]);
	return true;
}

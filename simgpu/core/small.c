/* SPDX-License-Identifier: Apache-2.0
 *
 * Small kernels that are computed: flags and counters that a program keeps on the device and reads
 * back to decide how to go on ("has every sequence ended?", "are all values finite?"). Only a few
 * of PyTorch's element-wise kernels, only of up to 256 elements; memory of unknown contents counts
 * as zero, as it reads, and what is made of it is a guess. Any thread.
 */
#include <math.h>
#include <string.h>
#include "core.h"
#include "kernels.h"
#include "numbers.h"

#define MOST 256 /* elements */

static long double compare(int mode, long double a, long double b)
{
	return mode == 0 ? a >= b : mode == 1 ? a > b : mode == 2 ? a <= b : a < b;
}

/* One element of a functor that takes its operands alike; `mode` is its first int. */
static long double compute(const struct kernel *k, int mode, long double a, long double b)
{
	switch (k->what) {
	case WHAT_FILL:
	case WHAT_COPY:
		return a;
	case WHAT_OR:
		return (int64_t)a | (int64_t)b;
	case WHAT_AND:
		return (int64_t)a & (int64_t)b;
	case WHAT_XOR:
		return (int64_t)a ^ (int64_t)b;
	case WHAT_NOT:
		return !a;
	case WHAT_EQUAL:
		return (a == b) == (mode == 0);
	case WHAT_COMPARE:
		return compare(mode, a, b);
	case WHAT_MULTIPLY:
		return a * b;
	case WHAT_DIVIDE:
		return a / b;
	case WHAT_ADD:
		return a + b;
	default:
		return fabsl(a);
	}
}

#define OPERANDS 3 /* with the result */

struct small {
	const struct kernel *k;
	int n, mode;
	long double scalar, factor;
	bool known;	       /* all operands of this element */
	char *const *at;       /* the result, then the operands */
	const uint32_t *steps; /* of an OffsetCalculator; NULL: one behind the other */
	char types[OPERANDS];
};

/* c10::ScalarType -> as C++ mangles it; 0 for what is not computed. */
static char scalar_type(int8_t t)
{
	static const char types[] = { 'h', 'a', 's', 'i', 'l', 0, 'f', 'd', 0, 0, 0, 'b' };

	return t >= 0 && t < (int)sizeof(types) ? types[t] : 0;
}

/* What the functor holds: a mode, an operand, and for sums a factor of the second operand. */
static void read_functor(struct small *s, const char *functor)
{
	const struct kernel *k = s->k;
	int size = number_size(k->in);

	s->factor = 1;
	if (k->what == WHAT_EQUAL || k->what == WHAT_COMPARE)
		memcpy(&s->mode, functor, sizeof(s->mode));
	if (k->scalar >= 0)
		s->scalar = number_load(k->in, functor + k->scalar);
	if (k->what == WHAT_ADD)
		s->factor = number_load(k->in, functor + (k->operands == 2 ? 0 : size));
}

static bool read_types(struct small *s, void **args)
{
	const struct kernel *k = s->k;
	const int8_t *in, *out;

	s->types[0] = k->out;
	s->types[1] = s->types[2] = k->in;
	if (k->family != KERNEL_CASTING)
		return true;
	in = args[5];
	out = args[6];
	s->types[0] = scalar_type(out[0]);
	s->types[1] = scalar_type(in[0]);
	if (k->operands == 2)
		s->types[2] = scalar_type(in[1]);
	return s->types[0] && s->types[1] && s->types[2];
}

/* The pointers stand behind an OffsetCalculator, whose size depends on how many they are. */
static char *const *pointers_of(void *structure, int n)
{
	char *const *words = structure;

	words += (steps_words(n) + 1) / 2;
	for (int i = 0; i < n; i++)
		if (!sim_is_device_ptr(words[i]))
			return NULL;
	return words;
}

/* What can be said of the call: false if it is not computed; `at` is set wherever it is known. */
static bool read_call(struct small *s, void **args)
{
	static const int counts[] = { 3, 2, 4, 1 };
	const struct kernel *k = s->k;
	const char *functor = args[1];

	memcpy(&s->n, args[0], sizeof(s->n));
	if (k->family == KERNEL_STRIDED || k->family == KERNEL_STEPPING) {
		s->steps = args[1];
		if (k->what != WHAT_UNKNOWN)
			s->at = pointers_of(args[1], k->operands + 1);
		for (int i = 0; !s->at && k->what == WHAT_UNKNOWN && i < 4; i++)
			s->at = pointers_of(args[1], counts[i]);
		functor = (const char *)(s->at + k->operands + 1);
	} else {
		s->at = args[2];
	}
	if (!s->at || s->n < 1 || s->n > MOST || k->what == WHAT_UNKNOWN ||
	    k->family == KERNEL_STEPPING || !read_types(s, args))
		return false;
	read_functor(s, functor);
	return true;
}

/* How far behind its address an element lies. */
static size_t place(const struct small *s, int operand, uint32_t i)
{
	if (!s->steps)
		return (size_t)i * number_size(s->types[operand]);
	return steps_offset(s->steps, s->k->operands + 1, operand, i);
}

static long double operand(struct small *s, int which, int i)
{
	char bytes[16];

	if (!contents_look(bytes, s->at[which], place(s, which, i), number_size(s->types[which])))
		s->known = false;
	return number_cast(s->k->in, number_load(s->types[which], bytes));
}

/* A quotient of guesses would be no number, which programs take for a failure. */
static long double element(struct small *s, int i)
{
	const struct kernel *k = s->k;
	long double a, b = s->scalar;

	s->known = true;
	if (k->operands == 0)
		return s->scalar;
	a = operand(s, 1, i);
	if (k->operands == 2)
		b = operand(s, 2, i);
	if (k->what == WHAT_DIVIDE && !s->known)
		return 0;
	if (k->scalar_first)
		return compute(k, s->mode, s->scalar, a * s->factor);
	return compute(k, s->mode, a, b * s->factor);
}

/* Results, and which of them are known. */
struct results {
	char bytes[MOST * 8];
	bool known[MOST], all_known;
};

static void write_results(const struct small *s, const struct results *r)
{
	size_t size = number_size(s->types[0]);

	if (!s->steps && r->all_known) {
		contents_write(s->at[0], r->bytes, s->n * size, true);
		return;
	}
	for (int i = 0; i < s->n; i++)
		contents_write(s->at[0] + place(s, 0, i), r->bytes + i * size, size, r->known[i]);
}

/* All results are worked out before the first is written, which may be where an operand lies. */
static void do_elements(const struct kernel *k, void **args)
{
	struct small s = { .k = k };
	struct results r;

	if (!read_call(&s, args)) {
		if (s.at)
			sim_forget(s.at[0]);
		return;
	}
	r.all_known = true;
	for (int i = 0; i < s.n; i++) {
		long double x = number_cast(k->out, element(&s, i));

		number_store(s.types[0], r.bytes + i * number_size(s.types[0]), x);
		r.known[i] = s.known;
		r.all_known = r.all_known && s.known;
	}
	write_results(&s, &r);
}

bool small_launch(const void *host, void *stream, const unsigned int grid[3], void **args)
{
	const struct kernel *k = args ? kernel_find(host) : NULL;

	if (!k || k->family == KERNEL_OTHER || sim_capturing(stream))
		return false;
	if (k->family == KERNEL_LISTS)
		return lists_launch(k, grid[0], args);
	if (k->family == KERNEL_CAT)
		return cat_launch(k, grid[1], args);
	if (k->family == KERNEL_SCALER)
		return scaler_launch(args);
	if (k->family == KERNEL_REDUCE)
		reduce_launch(k, args[0]);
	else
		do_elements(k, args);
	return true;
}

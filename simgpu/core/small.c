/* SPDX-License-Identifier: Apache-2.0
 *
 * Small kernels that are computed: flags and counters that a program keeps on the device and reads
 * back to decide how to go on ("has every sequence ended?", "are all values finite?"). Only a few
 * of PyTorch's element-wise kernels and whole reductions, only of up to 256 elements; memory of
 * unknown contents counts as zero, as it reads. Everything else about values is not simulated. Any
 * thread.
 */
#include <math.h>
#include <string.h>
#include "core.h"
#include "kernels.h"
#include "numbers.h"

#define MOST	     256 /* elements */
#define REDUCE_WORDS 160 /* of ReduceOp are looked at */
#define CONFIG_INTS  24	 /* where its configuration must begin */

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

/* ---- element-wise kernels ---- */

#define OPERANDS 3 /* with the result */

/* Where an element lies: PyTorch's OffsetCalculator for that many pointers, of which the number of
 * dimensions comes first, then 25 sizes of three words each, then 25 rows of strides in bytes. */
#define DIMS	   25
#define SIZE_AT(d) (1 + 3 * (d))
#define STRIDES_AT SIZE_AT(DIMS)

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

	words += (4 * (STRIDES_AT + DIMS * n) + 7) / 8;
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

static char *place(const struct small *s, int operand, uint32_t i)
{
	int pointers = s->k->operands + 1;
	size_t offset = 0;

	if (!s->steps)
		return s->at[operand] + (size_t)i * number_size(s->types[operand]);
	for (uint32_t d = 0; d < s->steps[0] && d < DIMS && s->steps[SIZE_AT(d)]; d++) {
		uint32_t size = s->steps[SIZE_AT(d)];

		offset += (size_t)(i % size) * s->steps[STRIDES_AT + d * pointers + operand];
		i /= size;
	}
	return s->at[operand] + offset;
}

static long double operand(struct small *s, int which, int i)
{
	char bytes[16];
	bool known[16];

	contents_look(bytes, known, place(s, which, i), number_size(s->types[which]));
	s->known = s->known && known[0];
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

/* All results are worked out before the first is written, which may be where an operand lies. */
static void do_elements(const struct kernel *k, void **args)
{
	long double results[MOST];
	bool known[MOST];
	struct small s = { .k = k };
	bool computed = read_call(&s, args);
	char bytes[16];

	if (!computed && s.at)
		sim_forget(s.at[0]);
	for (int i = 0; computed && i < s.n; i++) {
		results[i] = number_cast(k->out, element(&s, i));
		known[i] = s.known;
	}
	for (int i = 0; computed && i < s.n; i++) {
		number_store(s.types[0], bytes, results[i]);
		contents_write(place(&s, 0, i), bytes, number_size(s.types[0]), known[i]);
	}
}

/* ---- reductions of a whole tensor ---- */

/* A guess raises no alarm: whether all are true, or any, is decided by what is known, so checks of
 * what kernels would have computed pass (is all of it finite, is each probability positive?). */
static long double reduce(const struct kernel *k, const char *values, const bool *known, int n)
{
	long double total = k->what == WHAT_ALL;
	int size = number_size(k->in);

	for (int i = 0; i < n; i++) {
		long double x = number_load(k->in, values + i * size);

		if (k->what == WHAT_SUM || k->what == WHAT_MEAN)
			total += x;
		else if (k->what == WHAT_ANY)
			total = total || (x && known[i * size]);
		else if (k->what == WHAT_ALL)
			total = total && (x || !known[i * size]);
		else if (!i || (k->what == WHAT_MAXIMUM ? x > total : x < total))
			total = x;
	}
	return k->what == WHAT_MEAN ? total / n : total;
}

/* How many elements go into the one result; 0 if there are more results. ReduceOp's configuration
 * is a row of ints: an element's size, inputs, outputs, eight steps and factors, then a block's
 * width, height and threads, by which it is told from what happens to stand before it. */
static int inputs_of(const struct kernel *k, const int *ints)
{
	for (int i = 0; i < CONFIG_INTS; i++) {
		const int *c = ints + i;

		if (c[0] == number_size(k->in) && c[1] > 0 && c[2] > 0 && c[11] > 0 && c[12] > 0 &&
		    c[13] == c[11] * c[12] && c[13] <= 1024)
			return c[2] == 1 ? c[1] : 0;
	}
	return 0;
}

/* Where the structure holds the source's address. Behind it stand the result's, two that are nearly
 * always empty (a second result, a buffer), two that only a large reduction has (a buffer, its
 * semaphores) and a first index of 0. Parts of the structure are not initialised and may hold other
 * addresses. */
static void *const *addresses_in(void *const *words)
{
	for (int i = 0; i < REDUCE_WORDS; i++) {
		void *const *w = words + i;
		bool large = sim_is_device_ptr(w[4]) && sim_is_device_ptr(w[5]);

		if (sim_is_device_ptr(w[0]) && sim_is_device_ptr(w[1]) && !w[2] && !w[3] &&
		    (large || (!w[4] && !w[5])) && !w[6])
			return w;
	}
	return NULL;
}

static void do_reduction(const struct kernel *k, void *structure)
{
	static __thread char values[SIM_SMALL];
	static __thread bool known[SIM_SMALL];
	void *const *at = addresses_in(structure);
	int n = k->what == WHAT_UNKNOWN ? 0 : inputs_of(k, structure);
	size_t bytes = n > 0 ? (size_t)n * number_size(k->in) : 0;
	bool all_known = true;
	char result[16] = { 0 };

	if (!at)
		return;
	if (!bytes || (bytes > SIM_SMALL && k->what != WHAT_ALL)) {
		sim_forget(at[1]);
		return;
	}
	if (bytes > SIM_SMALL)
		bytes = n = 0;
	contents_look(values, known, at[0], bytes);
	for (size_t i = 0; i < bytes; i++)
		all_known = all_known && known[i];
	number_store(k->out, result, number_cast(k->out, reduce(k, values, known, n)));
	contents_write(at[1], result, number_size(k->out), all_known && n);
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
		do_reduction(k, args[0]);
	else
		do_elements(k, args);
	return true;
}

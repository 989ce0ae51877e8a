/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers, as PyTorch's kernels draw them: cuRAND's Philox4x32-10 with the generator's seed
 * and offset, and a sequence for each thread. So a program with a seed gets the same numbers as on
 * the card. Any thread.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"
#include "view.h"

#define THREADS	     256 /* of a block */
#define PER_2_32     2.3283064e-10f
#define PER_2_32_2PI (2.3283064e-10f * 6.2831855f)

enum { UNIFORM, NORMAL, WHOLE, WHOLE_OF_TYPE, EXPONENTIAL, FLAGS, OTHER };

static const struct {
	const char *mark;
	int form;
} forms[] = {
	{ "::uniform_kernel<", UNIFORM },      { "::normal_kernel<", NORMAL },
	{ "::random_from_to_kernel<", WHOLE }, { "::exponential_kernel<", EXPONENTIAL },
	{ "::random_kernel<", WHOLE_OF_TYPE }, { "::bernoulli_kernel<", FLAGS },
};

static bool draws_whole(const struct kernel *k)
{
	return k->form == WHOLE || k->form == WHOLE_OF_TYPE;
}

/* Types: of the result, of the drawn number. Column: whether the functor holds an OffsetCalculator
 * before the address, because the result's elements have no common stride (also if it has no
 * dimension). */
bool random_parse(struct kernel *k)
{
	struct text t = { k->text, strlen(k->text) }, to = text_argument(k, 3);

	k->form = OTHER;
	k->types[0] = text_type(text_argument_of(t, "distribution_nullary_kernel<", 0));
	k->types[1] = text_type(text_argument(k, 0));
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (text_has(t, forms[i].mark))
			k->form = forms[i].form;
	k->column = to.n >= 3 && !memcmp(to.at + to.n - 3, "#2}", 3);
	if (to.n < 3 || (!k->column && memcmp(to.at + to.n - 3, "#1}", 3)) || !k->types[0] ||
	    !k->types[1] ||
	    (number_is_real(k->types[1]) ? k->types[1] != 'f' || draws_whole(k) : !draws_whole(k)))
		k->form = OTHER;
	return true;
}

/* ---- Philox4x32-10 ---- */

static void philox(uint32_t out[4], uint64_t seed, uint64_t at, uint64_t sequence)
{
	uint32_t x = (uint32_t)at, y = (uint32_t)(at >> 32);
	uint32_t z = (uint32_t)sequence, w = (uint32_t)(sequence >> 32);
	uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);

	for (int round = 0; round < 10; round++) {
		uint64_t a = 0xd2511f53ull * x, b = 0xcd9e8d57ull * z;

		x = (uint32_t)(b >> 32) ^ y ^ low;
		y = (uint32_t)b;
		z = (uint32_t)(a >> 32) ^ w ^ high;
		w = (uint32_t)a;
		low += 0x9e3779b9;
		high += 0xbb67ae85;
	}
	out[0] = x;
	out[1] = y;
	out[2] = z;
	out[3] = w;
}

static float uniform(uint32_t x)
{
	return (float)x * PER_2_32 + PER_2_32 / 2;
}

static float normal(const uint32_t x[4], int i)
{
	float v = (float)x[i | 1] * PER_2_32_2PI + PER_2_32_2PI / 2;
	float s = sqrtf(-2 * logf(uniform(x[i & ~1])));

	return i & 1 ? s * cosf(v) : s * sinf(v);
}

/* ---- distributions ---- */

struct random {
	const struct kernel *k;
	uint64_t seed, offset;
	struct view out;
	float x[2];	      /* range; or mean and deviation; or rate */
	float least, end;     /* of a range, in the result's own type */
	uint64_t range, base; /* of whole numbers; base is signed */
	double p;
};

/* The divisor of random_() without bounds: one more than the greatest whole number of the type, or,
 * for floats, than the greatest up to which each whole number has a value. */
static uint64_t range_of_type(char type)
{
	static const struct {
		char type;
		int bits;
	} ranges[] = { { 'f', 24 }, { 'd', 53 }, { 'H', 11 }, { 'B', 8 }, { 'b', 1 } };
	int bits = 8 * number_size(type) - (strchr("asil", type) != NULL);

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (ranges[i].type == type)
			return (1ull << ranges[i].bits) + number_is_real(type);
	return 1ull << bits;
}

static long double drawn(const struct random *r, const uint32_t x[4], int i)
{
	uint64_t whole = r->k->types[1] == 'm' || r->k->types[1] == 'l'
				 ? (uint64_t)x[2 * i] << 32 | x[2 * i + 1]
				 : x[i];
	float f;

	switch (r->k->form) {
	case UNIFORM:
		f = (float)number_cast(r->k->types[0], uniform(x[i]) * r->x[0] + r->least);
		return f == r->end ? r->least : f;
	case NORMAL:
		return normal(x, i) * r->x[1] + r->x[0];
	case EXPONENTIAL:
		f = uniform(x[i]);
		return -1 / r->x[0] * (f >= 1 - FLT_EPSILON / 2 ? -FLT_EPSILON / 2 : logf(f));
	case FLAGS:
		return uniform(x[i]) < r->p;
	case WHOLE_OF_TYPE:
		return (long double)(whole % range_of_type(r->k->types[0]));
	default:
		return (long double)(int64_t)(whole % r->range + r->base);
	}
}

/* A graph's generator has its seed and offset in device memory. Their addresses show that, because
 * the place of the flag depends on the version. False if they are not known. */
static bool read_state(struct random *r, const char *state)
{
	uint32_t within;
	uint64_t at[2];

	memcpy(at, state, sizeof(at));
	memcpy(&within, state + 16, sizeof(within));
	r->seed = at[0];
	r->offset = at[1];
	progress_work(at[1]);
	if (!sim_is_device_ptr((void *)at[0]) || !sim_is_device_ptr((void *)at[1]))
		return true;
	if (!contents_look(&r->seed, (void *)at[0], 0, 8) ||
	    !contents_look(&r->offset, (void *)at[1], 0, 8))
		return false;
	r->offset += within;
	return true;
}

/* The result's address in the functor: at its beginning, or after an OffsetCalculator. */
static const char *address_of(const struct call *c)
{
	return (const char *)c->args[3] + (c->k->column ? (steps_words(1) + 1) / 2 * 8 : 0);
}

static bool find_result(struct random *r, const struct call *c)
{
	const char *at = address_of(c), *base = *(char *const *)at;
	int32_t stride;

	if (c->k->column)
		return view_steps(&r->out, base, c->k->types[0], c->args[3], 1, 0);
	memcpy(&stride, at + 8, sizeof(stride));
	view_row(&r->out, base, c->k->types[0], call_number(c, 0));
	r->out.strides[0] = stride;
	return true;
}

/* The functor: address, a 4-byte stride if the result has one, then parameters in words of 4 bytes,
 * or in aligned words of 8. */
static bool read_random(struct random *r, const struct call *c)
{
	const char *words = address_of(c) + (c->k->column ? 8 : 12);
	const char *wide = address_of(c) + (c->k->column ? 8 : 16);
	char own = c->k->types[0];

	memcpy(r->x, words, sizeof(r->x));
	r->least = (float)number_load(own, words + 4);
	r->end = (float)number_load(own, words + 4 + number_size(own));
	memcpy(&r->range, wide, sizeof(r->range));
	memcpy(&r->base, wide + 8, sizeof(r->base));
	memcpy(&r->p, wide, sizeof(r->p));
	return c->k->form != OTHER && find_result(r, c) && read_state(r, c->args[1]) &&
	       (c->k->form != WHOLE || r->range);
}

bool random_launch(const struct call *c)
{
	struct random r = { .k = c->k };
	int64_t threads = (int64_t)c->grid[0] * THREADS;
	int unroll = text_number(text_argument(c->k, 1), 0);
	void *to = *(void *const *)address_of(c);
	struct value *values;

	if (!sim_is_device_ptr(to))
		return false;
	if (!read_random(&r, c) || unroll < 1 || unroll > 4 || r.out.n < 1 ||
	    r.out.n > SMALL_MOST || !(values = values_new(r.out.n))) {
		sim_forget(to);
		return true;
	}
	for (int64_t i = 0; i < r.out.n; i++) {
		int64_t turn = i / threads;
		uint32_t x[4];

		philox(x, r.seed, r.offset / 4 + turn / unroll, i % threads);
		values[i] =
			(struct value){ number_cast(r.out.type, drawn(&r, x, (int)(turn % unroll))),
					true };
	}
	view_store(&r.out, values);
	free(values);
	return true;
}

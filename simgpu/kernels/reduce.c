/* SPDX-License-Identifier: Apache-2.0
 *
 * Small reductions: sums, means, norms, variances, largest and smallest with their indices, any and
 * all, of whole tensors and along dimensions. Any thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"
#include "view.h"

#define GUESSED_MOST 1024 /* most elements that are computed although no input value is known */
#define WORDS	     160  /* words of ReduceOp that are searched */
#define INTS	     24	  /* its configuration begins in the first so many ints */
#define CONFIG	     16	  /* ints in the configuration */

struct state {
	long double total, other; /* of the elements so far */
	int64_t n, where, other_where;
	long double correction; /* of a variance */
	bool root;
};

enum second { SECOND_NONE, SECOND_INDEX, SECOND_SAME };

struct reducer {
	const char *mark;
	void (*next)(struct state *s, long double x, bool known);
	long double (*finish)(const struct state *s);
	enum second second; /* type of a second result */
	long double (*finish_second)(const struct state *s);
};

/* ---- steps, one for each element ---- */

static void next_sum(struct state *s, long double x, bool known)
{
	(void)known;
	s->total += x;
}

static void next_product(struct state *s, long double x, bool known)
{
	(void)known;
	s->total = s->n ? s->total * x : x;
}

/* Guesses do not count here. all() and any() are decided by the known values alone, so that a
 * program's sanity checks (all finite? every probability positive?) pass on results that were not
 * computed. */
static void next_any(struct state *s, long double x, bool known)
{
	s->total = s->total != 0 || (x != 0 && known);
}

static void next_all(struct state *s, long double x, bool known)
{
	s->total = (!s->n || s->total != 0) && (x != 0 || !known);
}

static void next_largest(struct state *s, long double x, bool known)
{
	(void)known;
	if (s->n && !(x > s->total) && (!isnan(x) || isnan(s->total)))
		return;
	s->total = x;
	s->where = s->n;
}

static void next_smallest(struct state *s, long double x, bool known)
{
	(void)known;
	if (s->n && !(x < s->total) && (!isnan(x) || isnan(s->total)))
		return;
	s->total = x;
	s->where = s->n;
}

static void next_both(struct state *s, long double x, bool known)
{
	struct state high = *s;

	high.total = s->other;
	next_largest(&high, x, known);
	next_smallest(s, x, known);
	s->other = high.total;
}

static void next_squares(struct state *s, long double x, bool known)
{
	(void)known;
	s->total += x * x;
}

static void next_absolutes(struct state *s, long double x, bool known)
{
	next_sum(s, fabsl(x), known);
}

static void next_present(struct state *s, long double x, bool known)
{
	next_sum(s, x != 0, known);
}

static void next_absolute_largest(struct state *s, long double x, bool known)
{
	next_largest(s, fabsl(x), known);
}

static void next_absolute_smallest(struct state *s, long double x, bool known)
{
	next_smallest(s, fabsl(x), known);
}

/* Updates the mean and the sum of squared differences from it. */
static void next_variance(struct state *s, long double x, bool known)
{
	long double off = x - s->other;

	(void)known;
	s->other += off / (s->n + 1);
	s->total += off * (x - s->other);
}

static long double total(const struct state *s)
{
	return s->total;
}

static long double other(const struct state *s)
{
	return s->other;
}

static long double where(const struct state *s)
{
	return s->where;
}

static long double mean(const struct state *s)
{
	return s->total / s->n;
}

static long double root(const struct state *s)
{
	return sqrtl(s->total);
}

static long double variance(const struct state *s)
{
	long double freedom = s->n - s->correction, v = s->total / (freedom > 0 ? freedom : 0);

	return s->root ? sqrtl(v) : v;
}

static const struct reducer reductions[] = {
	{ "MaxNanFunctor<", next_largest, total, SECOND_NONE, NULL },
	{ "MinNanFunctor<", next_smallest, total, SECOND_NONE, NULL },
	{ "::MaxOps<", next_largest, total, SECOND_INDEX, where },
	{ "::MinOps<", next_smallest, total, SECOND_INDEX, where },
	{ "::ArgMaxOps<", next_largest, where, SECOND_NONE, NULL },
	{ "::ArgMinOps<", next_smallest, where, SECOND_NONE, NULL },
	{ "::MinMaxOps<", next_both, total, SECOND_SAME, other },
	{ "or_kernel_cuda(", next_any, total, SECOND_NONE, NULL },
	{ "and_kernel_cuda(", next_all, total, SECOND_NONE, NULL },
	{ "nansum_functor", NULL, NULL, SECOND_NONE, NULL },
	{ "sum_functor<", next_sum, total, SECOND_NONE, NULL },
	{ "prod_functor<", next_product, total, SECOND_NONE, NULL },
	{ "::MeanOps<", next_sum, mean, SECOND_NONE, NULL },
	{ "::NormTwoOps<", next_squares, root, SECOND_NONE, NULL },
	{ "::NormOneOps<", next_absolutes, total, SECOND_NONE, NULL },
	{ "::NormZeroOps<", next_present, total, SECOND_NONE, NULL },
	{ "::AbsMaxOps<", next_absolute_largest, total, SECOND_NONE, NULL },
	{ "::AbsMinOps<", next_absolute_smallest, total, SECOND_NONE, NULL },
	{ "::WelfordOps<", next_variance, variance, SECOND_SAME, other },
};

/* reduce_kernel<threads, vector, ReduceOp<in, functor, unsigned int, out, ...>> */
bool reduce_parse(struct kernel *k)
{
	struct text op = text_argument(k, 2), name = text_argument_of(op, "ReduceOp<", 1);

	k->reducer = NULL;
	k->types[0] = text_type(text_argument_of(op, "ReduceOp<", 0));
	k->types[1] = text_type(text_argument_of(op, "ReduceOp<", 3));
	for (size_t i = 0; name.at && i < sizeof(reductions) / sizeof(reductions[0]); i++)
		if (text_has(name, reductions[i].mark)) {
			k->reducer = reductions[i].next ? &reductions[i] : NULL;
			break;
		}
	if (!k->types[0] || !k->types[1])
		k->reducer = NULL;
	return true;
}

/* ---- PyTorch's ReduceOp ---- */

struct reduction {
	const struct kernel *k;
	struct state start;
	struct view results, starts, inputs; /* results; first input of each; inputs of one */
	char *second;
};

/* The place of the source's address in the structure, or NULL. The next addresses are those of the
 * result, a second result (usually NULL), a buffer (usually NULL), and two that only a large
 * reduction has (a buffer, its semaphores), then a first index of 0. Parts of the structure are not
 * initialised and may hold other addresses. */
static void *const *addresses_in(void *const *words)
{
	for (int i = 0; i < WORDS; i++) {
		void *const *w = words + i;
		bool large = sim_is_device_ptr(w[4]) && sim_is_device_ptr(w[5]);

		if (sim_is_device_ptr(w[0]) && sim_is_device_ptr(w[1]) &&
		    (!w[2] || sim_is_device_ptr(w[2])) && !w[3] && (large || (!w[4] && !w[5])) &&
		    !w[6])
			return w;
	}
	return NULL;
}

/* Its configuration is a row of ints: an element's size, inputs, outputs, eight steps and factors,
 * then a block's width, height and threads. Two OffsetCalculators follow, of a result's inputs and
 * of the results, then the addresses. All are checked, so that other words are not mistaken for
 * it. */
static bool read_at(struct reduction *r, const int *c)
{
	const uint32_t *in = (const uint32_t *)c + CONFIG, *out = in + steps_words(1);
	uintptr_t end = (uintptr_t)(out + steps_words(2));
	void *const *at = (void *const *)((end + 7) & ~(uintptr_t)7);

	if (c[0] <= 0 || c[0] > 64 || c[1] <= 0 || c[2] <= 0 || c[11] <= 0 || c[12] <= 0 ||
	    c[13] != c[11] * c[12] || c[13] > 1024)
		return false;
	if (!view_steps(&r->inputs, at[0], r->k->types[0], in, 1, 0) || r->inputs.n != c[1] ||
	    !view_steps(&r->results, at[1], r->k->types[1], out, 2, 0) || r->results.n != c[2] ||
	    !view_steps(&r->starts, at[0], r->k->types[0], out, 2, 1))
		return false;
	if (r->k->reducer->second == SECOND_NONE)
		return true; /* that address is not defined */
	r->second = at[2];
	return !r->second || sim_is_device_ptr(r->second);
}

/* A variance's structure begins with the correction of the count and a flag for the root. */
static bool read_config(struct reduction *r, const int *ints)
{
	char real = r->k->types[0] == 'd' ? 'd' : 'f';

	r->start.correction = number_load(real, ints);
	r->start.root = ((const char *)ints)[number_size(real)] != 0;
	for (int i = 0; i < INTS; i++)
		if (read_at(r, ints + i))
			return true;
	return false;
}

/* ---- computing ---- */

/* The second result has the same layout as the first, in elements. */
static void put_second(const struct reduction *r, int64_t o, struct value value)
{
	const struct reducer *f = r->k->reducer;
	struct view v = r->results;

	v.base = r->second;
	v.type = f->second == SECOND_INDEX ? 'l' : v.type;
	for (int d = 0; d < v.dims; d++)
		v.strides[d] = v.strides[d] / number_size(r->results.type) * number_size(v.type);
	view_put(&v, o, value);
}

static bool chooses(const struct reducer *f)
{
	return f->finish == where || f->finish_second == where;
}

/* An index chosen from unknown values: row o chooses element o, so that choices are spread
 * evenly. */
static void choose(const struct reduction *r, int64_t o)
{
	struct value place = { o % r->inputs.n, true };

	if (r->k->reducer->second != SECOND_INDEX) {
		view_put(&r->results, o, place);
		return;
	}
	view_put(&r->results, o, (struct value){ 0, false });
	if (r->second)
		put_second(r, o, place);
}

static void do_result(const struct reduction *r, int64_t o)
{
	const struct reducer *f = r->k->reducer;
	struct view in = r->inputs;
	struct state s = r->start;
	struct value *values = values_new(in.n), result = { 0, false };

	in.base += view_offset(&r->starts, o);
	if (values)
		result.known = view_load(&in, values);
	for (s.n = 0; values && s.n < in.n; s.n++)
		f->next(&s, values[s.n].x, values[s.n].known);
	free(values);
	if (!result.known && chooses(f) && assumes(CONTENTS_EVEN)) {
		choose(r, o);
		return;
	}
	result.x = number_cast(r->k->types[1], f->finish(&s));
	view_put(&r->results, o, result);
	if (!r->second || f->second == SECOND_NONE)
		return;
	result.x = f->finish_second(&s);
	put_second(r, o, result);
}

static bool worth_it(const struct reduction *r)
{
	int64_t n = r->inputs.n * r->results.n;

	return n <= GUESSED_MOST ||
	       (n <= whole_most(r->k->types[0]) &&
		(view_look(&r->inputs, 0).known || view_look(&r->inputs, r->inputs.n - 1).known));
}

/* Results of elements that are not computed: all() is true, and the largest float is 1 and the
 * smallest 0, because programs divide by the difference. */
static void guess_result(const struct reduction *r)
{
	const struct reducer *f = r->k->reducer;
	bool largest = f->next == next_largest || f->next == next_absolute_largest;
	bool real = number_is_real(r->results.type);

	if (f->next == next_all || (real && largest))
		view_put(&r->results, 0, (struct value){ 1, false });
	if (real && f->next == next_both && r->second)
		put_second(r, 0, (struct value){ 1, false });
}

static bool nothing_found(const struct reduction *r)
{
	struct value result = view_look(&r->results, 0);

	return !result.known && result.x == 0;
}

bool reduce_launch(const struct call *c)
{
	struct reduction r = { .k = c->k };
	void *structure = c->args[0];
	void *const *at;

	if (!c->k->reducer || !read_config(&r, structure)) {
		at = addresses_in(structure);
		for (int i = 1; at && i <= 2; i++)
			sim_forget(at[i]);
		return at != NULL;
	}
	if (worth_it(&r)) {
		for (int64_t o = 0; o < r.results.n; o++)
			do_result(&r, o);
		if (r.results.n == 1 && nothing_found(&r))
			guess_result(&r);
		return true;
	}
	view_forget(&r.results);
	if (r.second)
		sim_forget(r.second);
	if (chooses(c->k->reducer) && r.inputs.n && r.results.n <= CHOICE_MOST &&
	    assumes(CONTENTS_EVEN))
		for (int64_t o = 0; o < r.results.n; o++)
			choose(&r, o);
	if (r.results.n == 1)
		guess_result(&r);
	return true;
}

/* ---- products, which PyTorch compiles at run time ---- */

bool product_parse(struct kernel *k)
{
	static const struct reducer product = { "", next_product, total, SECOND_NONE, NULL };

	k->reducer = &product;
	return true;
}

/* The name shows no type, but the structure begins with the initial value 1, whose bits reveal it.
 * Both half types are multiplied as floats, so they cannot be distinguished. */
static char type_of_one(const void *one)
{
	static const char types[] = { 'l', 'd', 'i', 'f' };
	char bytes[16];

	for (size_t i = 0; i < sizeof(types); i++) {
		memset(bytes, 0, sizeof(bytes));
		number_store(types[i], bytes, 1);
		if (!memcmp(bytes, one, number_size(types[i])))
			return types[i];
	}
	return 0;
}

bool product_launch(const struct call *c)
{
	struct kernel typed = *c->k;
	struct call call = *c;
	struct reduction r = { .k = &typed };

	typed.types[0] = typed.types[1] = type_of_one(c->args[0]);
	call.k = &typed;
	if (!typed.types[0] || !read_config(&r, c->args[0]))
		typed.reducer = NULL;
	for (int d = 0; typed.reducer && d < r.inputs.dims; d++)
		if (r.inputs.strides[d] % number_size(typed.types[0]))
			typed.reducer = NULL;
	return reduce_launch(&call);
}

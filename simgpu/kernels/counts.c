/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges, histograms, searches in sorted rows, and softmax. Any thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"
#include "view.h"

/* ---- ranges ---- */

enum { RANGE, EVENLY };

/* Place from 1 in types[] of type i in PyTorch's list of floats; 0 for its complex types. */
static int place_of_real(int i)
{
	return i < 1 || i == 3 || i == 4 ? 0 : 5 + (i > 4 ? i - 2 : i);
}

/* Types: of the result. The name shows only its place in PyTorch's list of types. */
bool range_parse(struct kernel *k)
{
	static const char types[] = { 'h', 'a', 'i', 'l', 's', 'd', 'f', 'H', 'B' };
	struct text t = text_argument(k, 1);
	bool evenly = text_has(t, "linspace_cuda_out(");
	struct text list = text_after(t, evenly ? "::{lambda()#"
						: "{lambda()#1}::operator()() const::{lambda()#");
	int i = text_number(list, 0);

	if (evenly && i == 1)
		i = text_number(text_after(list, "::{lambda()#"), 0);
	else if (evenly)
		i = place_of_real(text_number(text_after(list, "::{lambda()#"), 0));
	if ((!evenly && !text_has(t, "arange_cuda_out(")) || i < 1 || i > (int)sizeof(types))
		return false;
	k->form = evenly ? EVENLY : RANGE;
	k->types[0] = types[i - 1];
	return true;
}

struct range {
	struct view out;
	long double start, end, step;
	int64_t n, half;
};

/* Arguments: count, functor, result. The functor of a range holds start and step; that of linspace
 * start, end, count, and values derived from them. */
static bool read_range(struct range *r, const struct call *c)
{
	char own = c->k->types[0];
	bool real = number_is_real(own);
	char wide = !real ? 'l' : own == 'd' ? 'd' : 'f';
	const char *f = c->args[1];
	int size = number_size(own);

	r->n = call_number(c, 0);
	if (!view_row(&r->out, call_address(c, 2), own, r->n))
		return false;
	if (c->k->form == RANGE) {
		r->start = number_load(wide, f);
		r->step = number_load(wide, f + number_size(wide));
		return true;
	}
	r->start = number_load(own, f);
	r->end = number_load(own, f + size);
	r->step = r->n > 1 ? (r->end - r->start) / (r->n - 1) : 0;
	r->half = r->n / 2;
	f += (2 * size + 7) / 8 * 8;
	return *(const int64_t *)f == r->n;
}

bool range_launch(const struct call *c)
{
	struct value *values;
	struct range r;

	if (!read_range(&r, c)) {
		if (call_address(c, 2))
			sim_forget(call_address(c, 2));
		return call_address(c, 2) != NULL;
	}
	values = r.n <= whole_most(r.out.type) ? values_new(r.n) : NULL;
	if (!values) {
		view_forget(&r.out);
		return true;
	}
	for (int64_t i = 0; i < r.n; i++)
		values[i] = (struct value){ c->k->form == EVENLY && i >= r.half
						    ? r.end - r.step * (r.n - 1 - i)
						    : r.start + r.step * i,
					    true };
	view_store(&r.out, values);
	free(values);
	return true;
}

/* ---- histograms ---- */

/* Types: of the counts, of the elements, of a size. */
bool histogram_parse(struct kernel *k)
{
	for (int i = 0; i < 3; i++)
		k->types[i] = text_type(text_argument(k, i));
	return k->types[2] != 0;
}

static int64_t bin_of(char type, long double x, long double low, long double high, int64_t bins)
{
	int64_t bin;

	if (type == 'f')
		bin = (int64_t)(((float)x - (float)low) * (float)bins / ((float)high - (float)low));
	else
		bin = (int64_t)truncl((x - low) * bins / (high - low));
	return bin == bins ? bin - 1 : bin;
}

/* Arguments: counts, partial counts, elements, number of bins, least, largest, number of elements,
 * and a functor, which holds the weights if there are any. */
bool histogram_launch(const struct call *c)
{
	char own = c->k->types[1], wide = !number_is_real(own) ? 'l' : own == 'd' ? 'd' : 'f';
	int word = c->k->types[2] ? number_size(c->k->types[2]) : 8;
	bool weighs = text_has(text_after(text_argument(c->k, 7), "{lambda("), "#1}");
	long double low = number_load(wide, c->args[4]), high = number_load(wide, c->args[5]);
	struct value *in = NULL, *weights = NULL;
	struct view out, from, weight;
	int64_t bins;

	if (!view_info(&out, c->args[0], c->k->types[0], word))
		return false;
	bins = *(const int64_t *)c->args[3];
	if (own && view_info(&from, c->args[2], own, word))
		in = view_known(&from);
	if (in && weighs && view_info(&weight, c->args[7], c->k->types[0], word) &&
	    weight.n == from.n)
		weights = view_known(&weight);
	if (!in || (weighs && !weights) || bins != out.n || high <= low)
		view_forget(&out);
	else
		for (int64_t i = 0; i < from.n; i++) {
			int64_t bin = bin_of(wide, in[i].x, low, high, bins);
			struct value old;

			if (!(in[i].x >= low && in[i].x <= high) || bin < 0 || bin >= bins)
				continue;
			old = view_look(&out, bin);
			old.x += weights ? weights[i].x : 1;
			view_put(&out, bin, old);
		}
	free(in);
	free(weights);
	return true;
}

/* ---- searches ---- */

/* Arguments: result, sought values, rows, the order of unsorted rows, lengths of a row of sought
 * values and of a row, number of sought values, whether after equal elements, whether of one
 * row. */
bool search_launch(const struct call *c)
{
	char type = text_type(text_parameter(c->k, 1)), index = text_type(text_parameter(c->k, 0));
	int64_t in_row = call_number(c, 4), row = call_number(c, 5), n = call_number(c, 6);
	bool right = *(const bool *)c->args[7], one = *(const bool *)c->args[8];
	struct value *sought = NULL, *rows = NULL;
	struct view out, in, sorted;
	int64_t all = one ? row : in_row > 0 ? n / in_row * row : 0;

	if (!view_row(&out, call_address(c, 0), index, n))
		return false;
	if (!call_address(c, 3) && view_row(&in, call_address(c, 1), type, n) &&
	    view_row(&sorted, call_address(c, 2), type, all)) {
		sought = view_known(&in);
		rows = view_known(&sorted);
	}
	for (int64_t i = 0; sought && rows && i < n; i++) {
		const struct value *r = rows + (one ? 0 : i / in_row * row);
		int64_t at = 0;

		while (at < row && (right ? !(r[at].x > sought[i].x) : !(r[at].x >= sought[i].x)))
			at++;
		view_put(&out, i, (struct value){ at, true });
	}
	if (!sought || !rows)
		view_forget(&out);
	free(sought);
	free(rows);
	return true;
}

/* ---- softmax ---- */

static void soft_row(struct value *v, int64_t n, int64_t step, bool log)
{
	long double most = -INFINITY, sum = 0;

	for (int64_t i = 0; i < n; i++)
		most = fmaxl(most, v[i * step].x);
	for (int64_t i = 0; i < n; i++)
		sum += expl(v[i * step].x - most);
	for (int64_t i = 0; i < n; i++) {
		long double x = v[i * step].x - most;

		v[i * step].x = log ? x - logl(sum) : expl(x) / sum;
	}
}

/* `outer` times `inner` rows of n elements, which lie `inner` apart. */
static bool soft(const struct call *c, int64_t outer, int64_t n, int64_t inner, bool log)
{
	struct view out, in;
	struct value *values;
	int64_t all = outer * n * inner;

	if (outer < 0 || n < 0 || inner < 0 ||
	    !view_row(&out, call_address(c, 0), text_type(text_parameter(c->k, 0)), all) ||
	    !view_row(&in, call_address(c, 1), text_type(text_parameter(c->k, 1)), all))
		return false;
	values = view_known(&in);
	if (!values) {
		view_forget(&out);
		return true;
	}
	for (int64_t i = 0; i < outer * inner; i++)
		soft_row(values + i / inner * n * inner + i % inner, n, inner, log);
	view_store(&out, values);
	free(values);
	return true;
}

/* Arguments: result, source, rows, stride, length, mask. */
bool softmax_launch(const struct call *c)
{
	bool log = text_has(text_argument(c->k, 4), "true");

	if (call_number(c, 3) != call_number(c, 4) || call_address(c, 5)) {
		if (call_address(c, 0))
			sim_forget(call_address(c, 0));
		return call_address(c, 0) != NULL;
	}
	return soft(c, call_number(c, 2), call_number(c, 4), 1, log);
}

/* Arguments: result, source, outer size, length, inner size. */
bool softmax_outer_launch(const struct call *c)
{
	return soft(c, call_number(c, 2), call_number(c, 3), call_number(c, 4),
		    strstr(c->k->text, "LogSoftMaxForwardEpilogue") != NULL);
}

/* Arguments: result, source, length. There is a row for each block. */
bool softmax_row_launch(const struct call *c)
{
	return soft(c, c->grid[0], call_number(c, 2), 1,
		    strstr(c->k->text, "LogSoftMaxForwardEpilogue") != NULL);
}

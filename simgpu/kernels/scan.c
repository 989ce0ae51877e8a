/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sums, products, maxima and minima, along a dimension or of one row. Any thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "iterator.h"

enum { OTHER, SUM, PRODUCT, LARGEST, SMALLEST };

static int how(const char *text)
{
	return strstr(text, "::plus<") || strstr(text, "SumOp<")	  ? SUM
	       : strstr(text, "::multiplies<") || strstr(text, "ProdOp<") ? PRODUCT
	       : strstr(text, "::greater_equal<")			  ? LARGEST
	       : strstr(text, "::less_equal<")				  ? SMALLEST
									  : OTHER;
}

struct row {
	struct view in, out, places; /* places: their base is NULL if not wanted */
	int how;
};

static void scan_row(const struct row *r, bool before)
{
	struct value total = { r->how == PRODUCT, true };
	int64_t place = 0;

	for (int64_t i = 0; i < r->in.n; i++) {
		struct value x = view_look(&r->in, i), was = total;
		bool takes =
			!i || (r->how == LARGEST ? x.x >= total.x : x.x <= total.x) || isnan(x.x);

		total.known = total.known && x.known;
		if (r->how == SUM || r->how == PRODUCT)
			total.x = r->how == SUM ? total.x + x.x : total.x * x.x;
		else if (takes && !(i && isnan(total.x) && !isnan(x.x)))
			total.x = x.x, place = i;
		total.x = r->how == SUM || r->how == PRODUCT ? number_cast(r->out.type, total.x)
							     : total.x;
		view_put(&r->out, i, before ? was : total);
		if (r->places.base)
			view_put(&r->places, i, (struct value){ place, total.known });
	}
}

/* ---- PyTorch's, along a dimension ---- */

/* A row of n elements that lie `inner` apart. */
static struct view row_at(void *base, char type, int64_t start, int64_t n, int64_t inner)
{
	int64_t size = number_size(type);

	return (struct view){ .base = (char *)base + start * size,
			      .type = type,
			      .dims = 1,
			      .sizes = { n },
			      .strides = { inner * size },
			      .n = n };
}

static bool scan_all(const struct call *c, void *const at[3], int64_t outer, int64_t inner,
		     int64_t n)
{
	char type = c->k->types[0];
	struct view all = row_at(at[1], type, 0, outer * inner * n, 1);

	if (!type || !at[0] || !at[1])
		return false;
	if (!view_worth(&all) || c->k->form == OTHER) {
		sim_forget(at[0]);
		if (at[2])
			sim_forget(at[2]);
		return true;
	}
	for (int64_t i = 0; i < outer * inner; i++) {
		int64_t start = i / inner * inner * n + i % inner;
		struct row r = { .how = c->k->form };

		r.in = row_at(at[1], type, start, n, inner);
		r.out = row_at(at[0], type, start, n, inner);
		if (at[2])
			r.places = row_at(at[2], 'l', start, n, inner);
		scan_row(&r, false);
	}
	return true;
}

bool scan_parse(struct kernel *k)
{
	k->types[0] = text_type(text_parameter(k, 0));
	k->form = how(k->text);
	return true;
}

/* Arguments: result, source, outer rows, inner rows, a row's length. */
bool scan_outer_launch(const struct call *c)
{
	void *at[] = { call_address(c, 0), call_address(c, 1), NULL };

	return scan_all(c, at, call_number(c, 2), call_number(c, 3), call_number(c, 4));
}

bool scan_inner_launch(const struct call *c)
{
	void *at[] = { call_address(c, 0), call_address(c, 1), NULL };

	return scan_all(c, at, call_number(c, 2), 1, call_number(c, 3));
}

/* Arguments: source, result, indices; then the same. */
bool scan_outer_places_launch(const struct call *c)
{
	void *at[] = { call_address(c, 1), call_address(c, 0), call_address(c, 2) };

	return scan_all(c, at, call_number(c, 3), call_number(c, 4), call_number(c, 5));
}

bool scan_inner_places_launch(const struct call *c)
{
	void *at[] = { call_address(c, 1), call_address(c, 0), call_address(c, 2) };

	return scan_all(c, at, call_number(c, 3), 1, call_number(c, 4));
}

/* ---- CUB's, of one row ---- */

/* Arguments: source, result, two of CUB's own, operation, initial value, count. */
bool scan_row_launch(const struct call *c)
{
	char out = text_type(text_parameter(c->k, 1));
	int64_t n = call_number(c, 6);
	bool before = !text_has(text_parameter(c->k, 5), "NullType");
	struct iterator in;
	struct row r = { .how = c->k->form };
	struct value *values;

	if (!out || !call_address(c, 1) || n < 0)
		return false;
	if (!view_row(&r.out, call_address(c, 1), out, n))
		return false;
	values = c->k->form != OTHER && (!before || c->k->form == SUM) && iterator_read(&in, c, 0)
			 ? iterator_known(&in, n)
			 : NULL;
	if (!values) {
		view_forget(&r.out);
		return true;
	}
	for (struct value total = { r.how == PRODUCT, true }, *v = values; v < values + n; v++) {
		long double was = total.x;

		total.x = number_cast(out, r.how == SUM ? total.x + v->x : total.x * v->x);
		v->x = before ? was : total.x;
	}
	view_store(&r.out, values);
	free(values);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements moved along a dimension: index_select, index_add, roll, triangles, repeats, and sums of
 * elements with the same index. Any thread.
 */
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"
#include "view.h"

/* Types: of the elements, of the indices, of a size. */
bool along_parse(struct kernel *k)
{
	struct text to = text_parameter(k, 0), index = text_parameter(k, 2);

	k->types[0] = text_type(text_argument_of(to, "TensorInfo<", 0));
	k->types[1] = text_type(text_argument_of(index, "TensorInfo<", 0));
	k->types[2] = text_type(text_argument_of(to, "TensorInfo<", 1));
	return k->types[2] != 0;
}

struct along {
	struct view to, from, index; /* to, from: one slice */
	int64_t to_step, from_step;  /* in bytes, from slice to slice */
};

/* The stride of one of a TensorInfo's dimensions. */
static int64_t stride_of(const struct call *c, int arg, int dim)
{
	int word = number_size(c->k->types[2]);
	const char *strides =
		(const char *)c->args[arg] + sizeof(void *) + (size_t)VIEW_DIMS * word;

	return (int64_t)number_load(word == 8 ? 'l' : 'i', strides + (size_t)dim * word) *
	       number_size(c->k->types[0]);
}

static bool read_along(struct along *a, const struct call *c)
{
	int word = number_size(c->k->types[2]);
	int64_t to = call_number(c, 3), from = call_number(c, 4);

	if (to < 0 || to >= VIEW_DIMS || from < 0 || from >= VIEW_DIMS ||
	    !view_info(&a->to, c->args[0], c->k->types[0], word) ||
	    !view_info(&a->from, c->args[1], c->k->types[0], word) ||
	    !view_info(&a->index, c->args[2], c->k->types[1], word))
		return false;
	a->to_step = stride_of(c, 0, (int)to);
	a->from_step = stride_of(c, 1, (int)from);
	return true;
}

static struct value at(const struct view *v, int64_t i, int64_t offset)
{
	struct view moved = *v;

	moved.base += offset;
	return view_look(&moved, i);
}

static void put_at(const struct view *v, int64_t i, int64_t offset, struct value value)
{
	struct view moved = *v;

	moved.base += offset;
	view_put(&moved, i, value);
}

/* Arguments: result, source, indices, dimension of the result, dimension of the source. */
bool index_select_launch(const struct call *c)
{
	struct along a;

	if (!read_along(&a, c))
		return false;
	if (a.to.n * a.index.n > SMALL_MOST) {
		sim_forget(a.to.base);
		return true;
	}
	for (int64_t i = 0; i < a.index.n; i++) {
		struct value index = view_look(&a.index, i), nothing = { 0, false };

		for (int64_t e = 0; e < a.to.n; e++)
			put_at(&a.to, e, i * a.to_step,
			       index.known && index.x >= 0
				       ? at(&a.from, e, (int64_t)index.x * a.from_step)
				       : nothing);
	}
	return true;
}

/* The same arguments, then sizes, the operation, and a factor. */
bool index_func_launch(const struct call *c)
{
	bool adds = strstr(c->k->text, "::ReduceAdd>") != NULL;
	struct value *index;
	struct along a;

	if (!read_along(&a, c))
		return false;
	index = adds && a.from.n * a.index.n <= SMALL_MOST ? view_known(&a.index) : NULL;
	if (!index)
		sim_forget(a.to.base);
	for (int64_t i = 0; index && i < a.index.n; i++)
		for (int64_t e = 0; e < a.from.n; e++) {
			struct value x = at(&a.from, e, i * a.from_step);
			struct value old = at(&a.to, e, (int64_t)index[i].x * a.to_step);
			int last = strstr(c->k->family->mark, "Small") ? 9 : 10;

			x.x = old.x + x.x * number_load(a.to.type, c->args[last]);
			x.known = x.known && old.known;
			put_at(&a.to, e, (int64_t)index[i].x * a.to_step, x);
		}
	free(index);
	return true;
}

/* Arguments: sorted indices, their places before the sort, source, result, number of indices,
 * length of a slice, the outer dimension's stride and size, whether to add. */
bool index_sum_launch(const struct call *c)
{
	int64_t n = call_number(c, 4), length = call_number(c, 5), step = call_number(c, 6);
	int64_t outer = call_number(c, 7);
	bool adds = *(const bool *)c->args[8];
	char type = text_type(text_parameter(c->k, 3));
	struct value *sorted = NULL, *was = NULL;
	struct view v;

	if (!call_address(c, 3))
		return false;
	if (type && view_row(&v, call_address(c, 0), 'l', n))
		sorted = view_known(&v);
	if (type && view_row(&v, call_address(c, 1), 'l', n))
		was = view_known(&v);
	if (!sorted || !was || n * length * outer > SMALL_MOST)
		sim_forget(call_address(c, 3));
	else
		for (int64_t e = 0; e < n * length * outer; e++) {
			int64_t z = e / (n * length), i = e / length % n, f = e % length;
			struct view to, from;
			struct value x, old;

			if (!view_row(&from, call_address(c, 2), type, INT32_MAX) ||
			    !view_row(&to, call_address(c, 3), type, INT32_MAX))
				break;
			x = view_look(&from, ((int64_t)was[i].x + z * n) * length + f);
			old = view_look(&to, (int64_t)sorted[i].x * length + z * step + f);
			if (adds) {
				x.x += old.x;
				x.known = x.known && old.known;
			}
			view_put(&to, (int64_t)sorted[i].x * length + z * step + f, x);
		}
	free(sorted);
	free(was);
	return true;
}

/* Arguments: result, source, indices, their number, bytes of a row, rows of the source, bytes from
 * row to row of the source and of the result. */
bool gather_rows_launch(const struct call *c)
{
	int64_t n = call_number(c, 3), bytes = call_number(c, 4), rows = call_number(c, 5);
	char type = text_type(text_parameter(c->k, 2)), unit = bytes % 8 ? 'h' : 'm';
	char *to = call_address(c, 0), *from = call_address(c, 1);
	struct value *index = NULL;
	struct view v, in, out;

	if (!type)
		type = text_type(text_argument(c->k, 1));
	if (!to || !from || bytes < 1)
		return false;
	if (view_row(&v, call_address(c, 2), type, n) &&
	    n * bytes / number_size(unit) <= SMALL_MOST)
		index = view_known(&v);
	for (int64_t i = 0; index && i < n; i++) {
		int64_t row = (int64_t)index[i].x + (index[i].x < 0 ? rows : 0);

		if (!view_row(&in, from + row * call_number(c, 6), unit,
			      bytes / number_size(unit)) ||
		    !view_row(&out, to + i * call_number(c, 7), unit, in.n))
			break;
		for (int64_t j = 0; j < in.n; j++)
			view_put(&out, j, view_look(&in, j));
	}
	if (!index)
		sim_forget(to);
	free(index);
	return true;
}

/* Arguments: source, result, count, dimension, start, the dimension's size and stride. */
bool roll_launch(const struct call *c)
{
	int64_t n = call_number(c, 2), start = call_number(c, 4), size = call_number(c, 5);
	int64_t stride = call_number(c, 6);
	char type = text_type(text_parameter(c->k, 0));
	struct view from, to;

	if (!view_row(&from, call_address(c, 0), type, n) ||
	    !view_row(&to, call_address(c, 1), type, n) || size < 1 || stride < 1)
		return false;
	if (n > SMALL_MOST) {
		view_forget(&to);
		return true;
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t in = i % (stride * size) / stride;

		view_put(&to, i,
			 view_look(&from, in >= size - start ? i - (size - start) * stride
							     : i + start * stride));
	}
	return true;
}

/* Arguments: result, source, diagonal. The name shows the types and which part. */
bool triangle_launch(const struct call *c)
{
	struct text to = text_parameter(c->k, 0);
	char type = text_type(text_argument_of(to, "TensorInfo<", 0));
	char word = text_type(text_argument_of(to, "TensorInfo<", 1));
	bool upper = text_has(text_argument(c->k, 2), "true");
	int64_t k = call_number(c, 2);
	struct view out, in;

	if (!word || !view_info(&out, c->args[0], type, number_size(word)) ||
	    !view_info(&in, c->args[1], type, number_size(word)) || out.dims < 2)
		return false;
	if (!view_small(&out)) {
		view_forget(&out);
		return true;
	}
	for (int64_t i = 0; i < out.n; i++) {
		int64_t column = i % out.sizes[0], row = i / out.sizes[0] % out.sizes[1];
		bool stays = upper ? column - row >= k : column - row <= k;

		view_put(&out, i, stays ? view_look(&in, i) : (struct value){ 0, true });
	}
	return true;
}

/* Arguments: repeats of each element, their running sum, result, count, count of the result. */
bool repeat_launch(const struct call *c)
{
	char type = text_type(text_parameter(c->k, 0));
	int64_t n = call_number(c, 3), all = call_number(c, 4);
	struct value *times = NULL, *ends = NULL;
	struct view v, out;

	if (!view_row(&out, call_address(c, 2), type, all))
		return false;
	if (all <= SMALL_MOST && view_row(&v, call_address(c, 0), type, n))
		times = view_known(&v);
	if (times && view_row(&v, call_address(c, 1), 'l', n))
		ends = view_known(&v);
	for (int64_t i = 0; ends && i < n; i++)
		for (int64_t j = (int64_t)(ends[i].x - times[i].x); j < ends[i].x; j++)
			if (j >= 0 && j < all)
				view_put(&out, j, (struct value){ i, true });
	if (!ends)
		view_forget(&out);
	free(times);
	free(ends);
	return true;
}

/* Turns flat indices into a row for each dimension. Arguments: indices, sizes, number of
 * dimensions, number of indices. */
bool places_launch(const struct call *c)
{
	int64_t dims = call_number(c, 2), n = call_number(c, 3), step = 1;
	char word = text_type(text_argument_of(text_parameter(c->k, 1), "TensorDims<", 0));
	struct value *flat;
	struct view v, row;

	if (!word || dims < 1 || dims > 16 || !view_row(&v, call_address(c, 0), 'l', n))
		return false;
	flat = view_known(&v);
	if (!flat)
		view_forget(&v);
	for (int64_t d = dims - 1; flat && d >= 0; d--) {
		int64_t size = (int64_t)number_load(word, (const char *)c->args[1] +
								  d * number_size(word));

		if (size < 1 || !view_row(&row, v.base + d * n * 8, 'l', n))
			break;
		for (int64_t i = 0; i < n; i++)
			view_put(&row, i, (struct value){ (int64_t)flat[i].x / step % size, true });
		step *= size;
	}
	free(flat);
	return true;
}

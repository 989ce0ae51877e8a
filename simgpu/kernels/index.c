/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements by their index: PyTorch's index, index_put, take, flip, gather, scatter and their like,
 * whose kernels get one structure: an OffsetCalculator, then addresses and sizes. Any thread.
 */
#include <stdlib.h>
#include "kernels.h"
#include "numbers.h"
#include "view.h"

enum {
	FORM_OTHER,
	FORM_INDEX,
	FORM_INDEX_PUT,
	FORM_FLIP,
	FORM_TAKE,
	FORM_FILL,
	FORM_COPY,
	FORM_GATHER,
	FORM_SCATTER,
	FORM_SCATTER_VALUE
};

static const struct {
	const char *mark;
	int form;
} forms[] = {
	{ "index_kernel_impl<", FORM_INDEX },
	{ "index_put_kernel_impl<", FORM_INDEX_PUT },
	{ "flip_kernel_impl<", FORM_FLIP },
	{ "native::take_kernel(", FORM_TAKE },
	{ "index_fill_kernel_impl<", FORM_FILL },
	{ "index_copy_kernel_impl<", FORM_COPY },
	{ "_cuda_scatter_gather_internal_kernel<false", FORM_GATHER },
	{ "_cuda_scatter_gather_internal_kernel<true", FORM_SCATTER },
	{ "_cuda_scatter_fill_internal_kernel<", FORM_SCATTER_VALUE },
};

/* The operation that scatter applies to an element. */
enum { ASSIGN, ADD, MULTIPLY, SMALLEST, LARGEST };
static const struct {
	const char *mark;
	int how;
} manners[] = {
	{ "::TensorAssign", ASSIGN },	 { "::ReduceAdd", ADD },
	{ "::ReduceMean", ADD },	 { "::ReduceMultiply", MULTIPLY },
	{ "::ReduceMinimum", SMALLEST }, { "::ReduceMaximum", LARGEST },
};

/* Types: of the elements, of the indices. */
bool index_parse(struct kernel *k)
{
	struct text t = text_argument(k, 2), type = { 0 }, index = { 0 };

	k->form = FORM_OTHER;
	k->result = -1;
	for (size_t i = 0; t.at && i < sizeof(forms) / sizeof(forms[0]); i++)
		if (text_has(t, forms[i].mark)) {
			bool gathers =
				forms[i].form == FORM_GATHER || forms[i].form == FORM_SCATTER;

			k->form = forms[i].form;
			type = text_argument_of(t, gathers ? "_internal_kernel<" : forms[i].mark,
						gathers);
			index = text_argument_of(t, "_internal_kernel<", gathers + 1);
		}
	if (k->form == FORM_TAKE)
		type = text_argument_of(t, "cuda_take_put_kernel<", 0);
	k->types[0] = text_type(type);
	k->types[1] = index.at ? text_type(index) : 'l';
	if (k->form >= FORM_GATHER && !k->types[1])
		k->types[1] = 'l'; /* versions without that argument */
	for (size_t i = 0; t.at && i < sizeof(manners) / sizeof(manners[0]); i++)
		if (text_has(t, manners[i].mark))
			k->result = manners[i].how;
	return t.at != NULL;
}

/* ---- the structure ---- */

/* The 8-byte words after the OffsetCalculator. */
static char *const *words_of(const void *structure, int pointers)
{
	return (char *const *)structure + (steps_words(pointers) + 1) / 2;
}

static int64_t number(char *const *word)
{
	return (int64_t)(intptr_t)*word;
}

static void element_store(const struct view *v, size_t offset, struct value value)
{
	char bytes[16];

	number_store(v->type, bytes, value.x);
	contents_write(v->base + offset, bytes, number_size(v->type), value.known);
}

static struct value element_load(const struct view *v, size_t offset)
{
	struct value value;
	char bytes[16];

	value.known = contents_look(bytes, v->base, offset, number_size(v->type));
	value.x = number_load(v->type, bytes);
	return value;
}

/* Sets the index of an element; false if it is not known or out of range. */
static bool to_index(struct value value, int64_t size, int64_t *index)
{
	*index = (int64_t)value.x + (value.x < 0 ? size : 0);
	return value.known && *index >= 0 && *index < size;
}

#define INDICES 25

struct indexing {
	struct view to, from, index[INDICES];
	int64_t count; /* of indices; sizes and strides (bytes) are of their dimensions */
	char *const *sizes, *const *strides;
};

/* Number of elements (at least 1) that are contiguous in both tensors and have the same indices. */
static int64_t run_of(const struct indexing *x)
{
	int64_t run = 1;

	for (int d = 0; d < x->to.dims; d++) {
		int64_t row = run * number_size(x->to.type);

		if (x->to.strides[d] != row || x->from.strides[d] != row)
			return run;
		for (int64_t i = 0; i < x->count; i++)
			if (x->index[i].strides[d])
				return run;
		run *= x->to.sizes[d];
	}
	return run;
}

/* The offset in bytes by element e's indices; false if one of them is not known. */
static bool offset_of(const struct indexing *x, int64_t e, int64_t *offset)
{
	int64_t at;

	*offset = 0;
	for (int64_t i = 0; i < x->count; i++) {
		if (!to_index(view_look(&x->index[i], e), number(x->sizes + i), &at))
			return false;
		*offset += at * number(x->strides + i);
	}
	return true;
}

/* Structure: result, source, number of indices; then their addresses, and the sizes and strides in
 * bytes of their dimensions. */
static bool indexing_read(struct indexing *x, const struct call *c)
{
	char *const *w = words_of(c->args[1], 3);
	char type = c->k->types[0];

	x->count = number(w + 2);
	x->sizes = w + 3 + INDICES;
	x->strides = x->sizes + INDICES;
	if (!view_steps(&x->to, w[0], type, c->args[1], 3, 0) ||
	    !view_steps(&x->from, w[1], type, c->args[1], 3, 1) || x->count < 1 ||
	    x->count > INDICES)
		return false;
	for (int64_t i = 0; i < x->count; i++)
		if (!view_steps(&x->index[i], w[3 + i], 'l', c->args[1], 3, 2) ||
		    !view_worth(&x->index[i]))
			return false;
	return true;
}

static bool do_index(const struct call *c, int64_t n)
{
	bool puts = c->k->form == FORM_INDEX_PUT, known;
	unsigned char *data, *states;
	int64_t run, offset, e;
	struct indexing x;
	size_t bytes;

	if (!indexing_read(&x, c))
		return false;
	run = run_of(&x);
	bytes = (size_t)(run * number_size(x.to.type));
	data = malloc(2 * bytes + 1);
	states = data + bytes;
	for (e = 0; data && e < n; e += run) {
		char *to = x.to.base + view_offset(&x.to, e);

		known = offset_of(&x, e, &offset);
		if (!known && puts)
			break;
		contents_read(x.from.base + view_offset(&x.from, e) + (puts ? 0 : offset), data,
			      states, bytes);
		contents_computed(states, bytes, known);
		contents_store(to + (puts ? offset : 0), data, states, bytes);
	}
	free(data);
	return e >= n;
}

static bool do_flip(const struct call *c, int64_t n)
{
	char *const *w = words_of(c->args[1], 2);
	struct view to, from;

	if (!view_steps(&to, w[0], c->k->types[0], c->args[1], 2, 0) ||
	    !view_steps(&from, w[1], c->k->types[0], c->args[1], 2, 1))
		return false;
	view_sign(&to);
	view_sign(&from);
	for (int64_t e = 0; e < n; e++)
		element_store(
			&to, view_offset(&to, e),
			element_load(&(struct view){ .base = from.base + view_offset(&from, e),
						     .type = from.type },
				     0));
	return true;
}

/* Structure: result, indices, number of source elements, whether these are contiguous, their
 * OffsetCalculator if not, source. */
static bool do_take(const struct call *c, int64_t n)
{
	char *const *w = words_of(c->args[1], 2);
	bool row = *(const bool *)(w + 3);
	const uint32_t *steps = (const uint32_t *)(w + 3) + 1;
	char *const *source = (char *const *)(((uintptr_t)(steps + steps_words(1)) + 7) & ~7ull);
	struct view to, index, from;
	int64_t at;

	if (!view_steps(&to, w[0], c->k->types[0], c->args[1], 2, 0) ||
	    !view_steps(&index, w[1], 'l', c->args[1], 2, 1) || !view_worth(&index))
		return false;
	if (row ? !view_row(&from, *source, to.type, number(w + 2))
		: !view_steps(&from, *source, to.type, steps, 1, 0))
		return false;
	for (int d = 0; !row && d < from.dims; d++)
		from.strides[d] *= number_size(from.type);
	for (int64_t e = 0; e < n; e++)
		view_put(&to, e,
			 to_index(view_look(&index, e), from.n, &at) ? view_look(&from, at)
								     : (struct value){ 0, false });
	return true;
}

/* Structure: result, indices, the source if there is one, the dimension's size and stride in
 * elements, the value if there is no source. */
static bool do_fill(const struct call *c, int64_t n)
{
	bool copies = c->k->form == FORM_COPY;
	int pointers = copies ? 3 : 2;
	char *const *w = words_of(c->args[1], pointers), *const *size = w + pointers;
	char type = c->k->types[0];
	struct value value = { 0, true };
	struct view to, index, from;
	int64_t at;

	if (!view_steps(&to, w[0], type, c->args[1], pointers, 0) ||
	    !view_steps(&index, w[1], 'l', c->args[1], pointers, 1) ||
	    (copies && !view_steps(&from, w[2], type, c->args[1], pointers, 2)))
		return false;
	if (!copies)
		value.x = number_load(type, size + 2);
	for (int64_t e = 0; e < n; e++) {
		if (!to_index(view_look(&index, e), number(size), &at))
			return false;
		element_store(&to, view_offset(&to, e) + at * number(size + 1) * number_size(type),
			      copies ? view_look(&from, e) : value);
	}
	return true;
}

/* ---- gather and scatter ---- */

static struct value combine(int how, struct value old, struct value with)
{
	long double x = how == ADD	  ? old.x + with.x
			: how == MULTIPLY ? old.x * with.x
			: how == SMALLEST ? (with.x < old.x ? with.x : old.x)
			: how == LARGEST  ? (with.x > old.x ? with.x : old.x)
					  : with.x;

	return (struct value){ x, with.known && (how == ASSIGN || old.known) };
}

/* Structure: indices, their dimension's size, functor, result, the dimension's stride in elements,
 * number of elements, source or value. */
static bool do_gather(const struct call *c, int64_t n)
{
	bool gathers = c->k->form == FORM_GATHER, has_value = c->k->form == FORM_SCATTER_VALUE;
	int pointers = has_value ? 2 : 3;
	char *const *w = words_of(c->args[1], pointers);
	char type = c->k->types[0];
	int64_t stride = number(w + 4) * number_size(type), at;
	struct view to, from, index;
	struct value value = { 0, true };

	if (!view_steps(&to, w[3], type, c->args[1], pointers, 0) ||
	    !view_steps(&index, w[0], c->k->types[1], c->args[1], pointers, pointers - 1) ||
	    (!has_value && !view_steps(&from, w[6], type, c->args[1], pointers, 1)) ||
	    c->k->result < 0 || !view_worth(&index))
		return false;
	if (has_value)
		value.x = number_load(type, w + 6);
	for (int64_t e = 0; e < n; e++) {
		bool known = to_index(view_look(&index, e), number(w + 1), &at);
		size_t place = view_offset(&to, e) + (gathers || !known ? 0 : at * stride);

		if (!known && !gathers)
			return false;
		if (gathers)
			value = known ? element_load(&from, view_offset(&from, e) + at * stride)
				      : (struct value){ 0, false };
		else if (!has_value)
			value = view_look(&from, e);
		element_store(&to, place, combine(c->k->result, element_load(&to, place), value));
	}
	return true;
}

/* By form: pointers of the OffsetCalculator, and the result's place in the words after it. */
static const struct {
	bool (*launch)(const struct call *c, int64_t n);
	int pointers, result;
} actions[] = {
	[FORM_INDEX] = { do_index, 3, 0 },
	[FORM_INDEX_PUT] = { do_index, 3, 0 },
	[FORM_FLIP] = { do_flip, 2, 0 },
	[FORM_TAKE] = { do_take, 2, 0 },
	[FORM_FILL] = { do_fill, 2, 0 },
	[FORM_COPY] = { do_fill, 3, 0 },
	[FORM_GATHER] = { do_gather, 3, 3 },
	[FORM_SCATTER] = { do_gather, 3, 3 },
	[FORM_SCATTER_VALUE] = { do_gather, 2, 3 },
};

bool index_launch(const struct call *c)
{
	int64_t n = call_number(c, 0);
	const void *result;

	if (c->k->form == FORM_OTHER)
		return false;
	if (c->k->types[0] && n <= whole_most(c->k->types[0]) && actions[c->k->form].launch(c, n))
		return true;
	result = words_of(c->args[1], actions[c->k->form].pointers)[actions[c->k->form].result];
	if (!sim_is_device_ptr(result))
		return false;
	sim_forget(result);
	return true;
}

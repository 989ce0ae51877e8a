/* SPDX-License-Identifier: Apache-2.0
 *
 * PyTorch's cat and stack, because programs join sizes, flags and boxes before they send them to
 * other ranks or decide by them. A kernel's name shows the layout of its arguments. A launch that
 * does not fit the layout is not computed. Any thread.
 */
#include <stdio.h>
#include <string.h>
#include "kernels.h"

#define DIMS 4 /* most dimensions of these kernels */

/* For functions that read other functions' variables on the stack. */
#define FOREIGN __attribute__((no_sanitize("address")))

struct shape {
	uint32_t sizes[DIMS], strides[DIMS];
};

/* From the kernel's name: bytes of an element, dimensions, room for inputs and for their shapes,
 * alignment in bytes, elements that are copied at once. */
struct form {
	unsigned int bytes, dims, inputs, shapes, align, vector;
	bool vectors;
};

/* The arguments: result, table of inputs, the result's shape, the dimension, and the factor of an
 * input's offset along it. n: number of inputs. */
struct cat {
	struct form form;
	char *result;
	const char *table;
	const struct shape *shape;
	uint32_t dim, factor, n;
};

struct input {
	char *data;
	uint32_t offset, length, elements; /* along the dimension; size of it; all elements */
	bool contiguous;
	const struct shape *shape;
};

static bool read_form(struct form *f, const char *name)
{
	static const char opaque[] = "10OpaqueTypeILj";
	const char *at = strstr(name, opaque);
	int n = at ? sscanf(at + strlen(opaque), "%uEEEjLi%uELi%uELi%uELi%uELi%uE", &f->bytes,
			    &f->dims, &f->inputs, &f->shapes, &f->align, &f->vector)
		   : 0;

	f->vectors = strstr(name, "CatArrayBatchedCopy_vectorizedI");
	if (!f->vectors)
		f->vector = 1;
	return n >= (f->vectors ? 6 : 4) && f->bytes >= 1 && f->bytes <= 16 && f->dims >= 1 &&
	       f->dims <= DIMS && f->inputs <= 1024 && f->shapes >= 1 && f->shapes <= 1024 &&
	       (!f->vectors || (f->vector >= 1 && f->align == f->bytes * f->vector));
}

/* The table has one array for each property of the inputs. */
FOREIGN static struct input input_at(const struct cat *c, uint32_t i)
{
	size_t n = c->form.inputs;
	char *const *data = (char *const *)c->table;
	const uint32_t *numbers = (const uint32_t *)(data + n);
	const bool *contiguous = (const bool *)(numbers + 3 * n);
	const struct shape *shapes = (const struct shape *)(contiguous + n);

	return (struct input){ .data = data[i],
			       .offset = numbers[i],
			       .length = numbers[n + i],
			       .elements = numbers[2 * n + i],
			       .contiguous = contiguous[i],
			       .shape = &shapes[c->form.shapes > 1 ? i : 0] };
}

FOREIGN static bool inputs_fit(const struct cat *c)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		struct input in = input_at(c, i);

		if (!sim_is_device_ptr(in.data) || !in.length || in.elements % in.length ||
		    (i && in.offset != next))
			return false;
		next = in.offset + in.length;
	}
	return true;
}

/* inputs: the height of the grid. */
FOREIGN static bool read_call(struct cat *c, const char *name, unsigned int inputs, void **args)
{
	size_t bytes;

	if (!read_form(&c->form, name))
		return false;
	bytes = c->form.inputs * (sizeof(char *) + 3 * sizeof(uint32_t) + sizeof(bool)) +
		c->form.shapes * sizeof(struct shape);
	c->result = *(char **)args[0];
	c->table = args[1];
	c->shape = args[2];
	c->dim = *(const uint32_t *)args[3];
	c->factor = *(const uint32_t *)args[4];
	c->n = inputs;
	return sim_is_device_ptr(c->result) && c->dim < c->form.dims && inputs <= c->form.inputs &&
	       contents_reach(c->table) >= bytes && inputs_fit(c);
}

/* Offset of element i if dimension c->dim has the size `length`. */
FOREIGN static size_t place(const struct cat *c, const struct shape *s, uint32_t length, uint32_t i)
{
	size_t at = 0;

	for (uint32_t d = c->form.dims - 1; d >= 1; d--) {
		uint32_t size = d == c->dim ? length : s->sizes[d];

		if (!size)
			return 0;
		at += (size_t)(i % size) * s->strides[d];
		i /= size;
	}
	return at + (size_t)i * s->strides[0];
}

static void copy_input(const struct cat *c, const struct input *in)
{
	uint32_t per = c->form.vector, unit = c->form.bytes * per, length = in->length;
	size_t start = (size_t)in->offset * c->factor / per;
	char value[16];

	if (c->form.vectors)
		length = length * c->factor / per;
	for (uint32_t i = 0; i < in->elements / per; i++) {
		size_t from = in->contiguous ? i : place(c, in->shape, length, i);
		size_t to = start + place(c, c->shape, length, i);
		bool known = contents_look(value, in->data, from * unit, unit);

		contents_write(c->result + to * unit, value, unit, known);
	}
}

/* Large inputs are computed only if they may be whole numbers or flags and their first is known. */
static bool is_worth(const struct cat *c)
{
	char value[16];

	for (uint32_t i = 0; i < c->n; i++) {
		struct input in = input_at(c, i);
		uint32_t n = in.elements / c->form.vector;

		if (n > SMALL_MOST &&
		    ((c->form.bytes != sizeof(bool) && c->form.bytes != sizeof(int64_t)) ||
		     n > WHOLE_MOST || !contents_look(value, in.data, 0, c->form.bytes)))
			return false;
	}
	return true;
}

bool cat_parse(struct kernel *k)
{
	struct form f;

	return read_form(&f, k->name);
}

bool cat_launch(const struct call *launch)
{
	struct cat c = { .n = 0 };

	if (!read_call(&c, launch->k->name, launch->grid[1], launch->args))
		return false;
	if (!is_worth(&c)) {
		sim_forget(c.result);
		return true;
	}
	for (uint32_t i = 0; i < c.n; i++) {
		struct input in = input_at(&c, i);

		copy_input(&c, &in);
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a tensor's numbers lie, and what is known of them. Any thread.
 */
#include "view.h"
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"

#define RUN 16 /* bytes of the widest number, and more */

/* ---- what kernels are given ---- */

static bool finish(struct view *v, const void *base, char type)
{
	v->base = (char *)(uintptr_t)base;
	v->type = type;
	v->n = 1;
	for (int d = 0; d < v->dims; d++)
		v->n = v->sizes[d] < 0 || v->sizes[d] > INT32_MAX || v->n > INT32_MAX
			       ? -1
			       : v->n * v->sizes[d];
	return type && v->n >= 0 && (!v->n || sim_is_device_ptr(base));
}

bool view_row(struct view *v, const void *base, char type, int64_t n)
{
	v->dims = 1;
	v->sizes[0] = n;
	v->strides[0] = type ? number_size(type) : 0;
	return finish(v, base, type);
}

/* The number of dimensions comes first, then 25 sizes of three words each, then 25 rows of strides
 * in bytes. */
#define SIZE_AT(d) (1 + 3 * (d))
#define STRIDES_AT SIZE_AT(VIEW_DIMS)

size_t steps_words(int pointers)
{
	return STRIDES_AT + (size_t)VIEW_DIMS * pointers;
}

bool view_steps(struct view *v, const void *base, char type, const uint32_t *steps, int pointers,
		int which)
{
	if (steps[0] > VIEW_DIMS)
		return false;
	v->dims = (int)steps[0];
	for (int d = 0; d < v->dims; d++) {
		v->sizes[d] = steps[SIZE_AT(d)];
		v->strides[d] = steps[STRIDES_AT + d * pointers + which];
	}
	return finish(v, base, type);
}

size_t view_info_bytes(int word)
{
	size_t bytes = sizeof(void *) + 2 * VIEW_DIMS * (size_t)word + sizeof(int);

	return (bytes + 7) / 8 * 8;
}

/* The address, 25 sizes, 25 strides in elements, the number of dimensions, the last changing
 * fastest. */
bool view_info(struct view *v, const void *info, char type, int word)
{
	const char *sizes = (const char *)info + sizeof(void *);
	const char *strides = sizes + (size_t)VIEW_DIMS * word;
	const void *base;

	memcpy(&base, info, sizeof(base));
	memcpy(&v->dims, strides + (size_t)VIEW_DIMS * word, sizeof(v->dims));
	if (v->dims < 0 || v->dims > VIEW_DIMS || !type)
		return false;
	for (int d = 0; d < v->dims; d++) {
		size_t at = (size_t)(v->dims - 1 - d) * word;
		char kind = word == 8 ? 'l' : 'i';

		v->sizes[d] = (int64_t)number_load(kind, sizes + at);
		v->strides[d] = (int64_t)number_load(kind, strides + at) * number_size(type);
	}
	return finish(v, base, type);
}

/* ---- numbers ---- */

size_t view_offset(const struct view *v, int64_t i)
{
	size_t offset = 0;

	if (v->dims == 1)
		return (size_t)(i * v->strides[0]);
	for (int d = 0; d < v->dims; d++) {
		offset += (size_t)(i % v->sizes[d] * v->strides[d]);
		i /= v->sizes[d];
	}
	return offset;
}

struct value view_look(const struct view *v, int64_t i)
{
	char bytes[RUN];
	struct value value;

	value.known = contents_look(bytes, v->base, view_offset(v, i), number_size(v->type));
	value.x = number_load(v->type, bytes);
	return value;
}

void view_put(const struct view *v, int64_t i, struct value value)
{
	char bytes[RUN];

	number_store(v->type, bytes, value.x);
	contents_write(v->base + view_offset(v, i), bytes, number_size(v->type), value.known);
}

static bool in_a_row(const struct view *v)
{
	return v->dims == 1 && (v->n == 1 || v->strides[0] == number_size(v->type));
}

/* All at once, where they lie one behind the other. */
static bool load_row(const struct view *v, struct value *out)
{
	size_t size = number_size(v->type), bytes = size * v->n;
	unsigned char *states = malloc(2 * bytes), *data = states + bytes;
	bool all = states != NULL;

	if (!states)
		return false;
	contents_read(v->base, data, states, bytes);
	for (int64_t i = 0; i < v->n; i++) {
		out[i].x = number_load(v->type, data + i * size);
		out[i].known = true;
		for (size_t j = 0; j < size; j++)
			if (states[i * size + j] != CONTENTS_KNOWN)
				out[i].known = all = false;
	}
	free(states);
	return all;
}

bool view_load(const struct view *v, struct value *out)
{
	bool all = true;

	if (in_a_row(v) && v->n > 4)
		return load_row(v, out);
	for (int64_t i = 0; i < v->n; i++) {
		out[i] = view_look(v, i);
		all = all && out[i].known;
	}
	return all;
}

void view_store(const struct view *v, const struct value *in)
{
	size_t size = number_size(v->type);
	char *bytes = malloc(v->n * size + 1);

	for (int64_t i = 0, n; bytes && i < v->n; i += n) {
		for (n = 1; in_a_row(v) && i + n < v->n && in[i + n].known == in[i].known; n++)
			;
		for (int64_t j = 0; j < n; j++)
			number_store(v->type, bytes + j * size, in[i + j].x);
		contents_write(v->base + view_offset(v, i), bytes, n * size, in[i].known);
	}
	free(bytes);
}

bool view_small(const struct view *v)
{
	return v->n <= SMALL_MOST;
}

struct value *values_new(int64_t n)
{
	return calloc(n ? (size_t)n : 1, sizeof(struct value));
}

void forget_row(const void *base, char type, int64_t n)
{
	if (!sim_is_device_ptr(base) || !contents_any())
		return;
	if (type && n > 0 && n <= SMALL_MOST)
		contents_forget((uintptr_t)base, n * number_size(type));
	else
		sim_forget(base);
}

/* Of a large one only the beginning, where it is read from. */
void view_forget(const struct view *v)
{
	if (!v->n || !contents_any())
		return;
	if (in_a_row(v) || !view_small(v))
		forget_row(v->base, v->type, v->n);
	else
		for (int64_t i = 0; i < v->n; i++)
			contents_forget((uintptr_t)v->base + view_offset(v, i),
					number_size(v->type));
}

void view_sign(struct view *v)
{
	for (int d = 0; d < v->dims; d++)
		v->strides[d] = (int32_t)v->strides[d];
}

struct value *view_known(const struct view *v)
{
	struct value *values = view_small(v) ? values_new(v->n) : NULL;

	if (values && !view_load(v, values)) {
		free(values);
		return NULL;
	}
	return values;
}

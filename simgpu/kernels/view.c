/* SPDX-License-Identifier: Apache-2.0
 *
 * Location of a tensor's numbers, and which of them are known. Any thread.
 */
#include "view.h"
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"

#define RUN    16 /* bytes of the widest number, and more */
#define SPREAD 16 /* longest span that is read at once, in bytes per byte of its elements */

/* ---- PyTorch's representations ---- */

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

/* An OffsetCalculator: number of dimensions, 25 sizes of 3 words each, 25 rows of strides
 * (bytes). */
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

/* A TensorInfo: address, 25 sizes, 25 strides in elements, number of dimensions, the last changing
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
	int64_t step = number_size(v->type);

	for (int d = 0; d < v->dims; d++) {
		if (v->sizes[d] != 1 && v->strides[d] != step)
			return false;
		step *= v->sizes[d];
	}
	return true;
}

/* Bytes from the first element to the end of the last; 0 if they lie too far apart. */
static size_t span_of(const struct view *v)
{
	size_t span = number_size(v->type), most = SPREAD * span * v->n;

	for (int d = 0; d < v->dims; d++) {
		if (v->strides[d] < 0)
			return 0;
		span += (size_t)((v->sizes[d] - 1) * v->strides[d]);
	}
	return span <= most ? span : 0;
}

/* The least known state of an element's bytes. */
static int least_of(const unsigned char *states, size_t size)
{
	int least = CONTENTS_KNOWN;

	for (size_t i = 0; i < size; i++)
		least = states[i] < least ? states[i] : least;
	return least;
}

/* Loads the whole span with one read, if the elements lie close together. */
static bool load_span(const struct view *v, size_t span, struct value *out)
{
	size_t size = number_size(v->type);
	unsigned char *states = malloc(2 * span), *data = states + span;
	int least = CONTENTS_KNOWN, state;
	bool all = states != NULL;

	if (!states)
		return false;
	contents_read(v->base, data, states, span);
	for (int64_t i = 0; i < v->n; i++) {
		size_t at = view_offset(v, i);

		state = least_of(states + at, size);
		out[i].x = number_load(v->type, data + at);
		out[i].known = state > CONTENTS_GUESS;
		all = all && out[i].known;
		if (out[i].known && state < least)
			least = state;
	}
	contents_assume(least);
	free(states);
	return all;
}

bool view_load(const struct view *v, struct value *out)
{
	size_t span = v->n > 4 ? span_of(v) : 0;
	bool all = true;

	if (span)
		return load_span(v, span, out);
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
	bool row = in_a_row(v);

	for (int64_t i = 0, n; bytes && i < v->n; i += n) {
		for (n = 1; row && i + n < v->n && in[i + n].known == in[i].known; n++)
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

int64_t whole_most(char type)
{
	return number_is_real(type) ? SMALL_MOST : WHOLE_MOST;
}

/* A large tensor is skipped unless its first or last element is known. */
bool view_worth(const struct view *v)
{
	return v->n <= SMALL_MOST || (v->n <= whole_most(v->type) &&
				      (view_look(v, 0).known || view_look(v, v->n - 1).known));
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

/* Of a large tensor it forgets only the contents that came with the same transfer as the first. */
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
	struct value *values = view_worth(v) ? values_new(v->n) : NULL;

	if (values && !view_load(v, values)) {
		free(values);
		return NULL;
	}
	return values;
}

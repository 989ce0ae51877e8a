/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements as CUB's kernels read them. Any thread.
 */
#include "iterator.h"
#include <stdlib.h>

static const char *const asks_for_zero[] = { "NonZeroOp<", "MapNumberOfTrueValues", "LoadBoolOp",
					     "CountMaskOp", "countMask" };

/* Iterators that apply a function to each element: which template argument is the source's type,
 * and the offset of its address. The function has no fields; in CUB's own form it comes first. */
static const struct {
	const char *mark;
	int type;
	size_t address;
} makers[] = {
	{ "transform_iterator<", 1, 0 },
	{ "TransformInputIterator<", 2, sizeof(void *) },
};

static struct text source_of(struct text t, size_t *address)
{
	*address = 0;
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
		if (text_has(t, makers[i].mark)) {
			*address = makers[i].address;
			return text_argument_of(t, makers[i].mark, makers[i].type);
		}
	return t;
}

bool iterator_read(struct iterator *it, const struct call *c, int i)
{
	size_t address;
	struct text t = text_parameter(c->k, i), source = source_of(t, &address);

	*it = (struct iterator){ .start = 0 };
	if (text_has(t, "counting_iterator<") || text_has(t, "CountingInputIterator<")) {
		it->start = *(const int64_t *)c->args[i];
		it->type = 'l';
		return true;
	}
	if (source.at != t.at) {
		for (size_t j = 0; j < sizeof(asks_for_zero) / sizeof(asks_for_zero[0]); j++)
			it->flags = it->flags || text_has(t, asks_for_zero[j]);
		if (!it->flags && !text_has(t, "identity"))
			return false;
	}
	it->type = text_type(source);
	it->base = *(void **)((char *)c->args[i] + address);
	return it->type && source.n && source.at[source.n - 1] == '*' &&
	       sim_is_device_ptr(it->base);
}

/* Unknown elements of a mask are assumed to be true. Unknown whole numbers are not, because they
 * may be positions (one_hot). */
static struct value *masks(const struct view *v)
{
	bool mask = v->type == 'b' || number_is_real(v->type);
	struct value *values;

	if (!mask || !view_worth(v))
		return view_known(v);
	values = values_new(v->n);
	if (values && !view_load(v, values) && !assumes(CONTENTS_ALL_TRUE)) {
		free(values);
		return NULL;
	}
	for (int64_t i = 0; values && i < v->n; i++)
		if (!values[i].known)
			values[i] = (struct value){ 1, true };
	return values;
}

bool iterator_all_true(const struct iterator *it, int64_t n)
{
	struct view v;

	return it->base && it->flags && (it->type == 'b' || number_is_real(it->type)) &&
	       view_row(&v, it->base, it->type, n) && !view_worth(&v) && assumes(CONTENTS_ALL_TRUE);
}

struct value *iterator_known(const struct iterator *it, int64_t n)
{
	struct value *values;
	struct view v;

	if (n < 0 || n > WHOLE_MOST)
		return NULL;
	if (it->base) {
		values = NULL;
		if (view_row(&v, it->base, it->type, n))
			values = it->flags ? masks(&v) : view_known(&v);
		for (int64_t i = 0; values && it->flags && i < n; i++)
			values[i].x = values[i].x != 0;
		return values;
	}
	values = values_new(n);
	for (int64_t i = 0; values && i < n; i++)
		values[i] = (struct value){ it->start + i, true };
	return values;
}

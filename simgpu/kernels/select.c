/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that decide the shape of a result: how many elements are nonzero and where they are,
 * which differ from their predecessor, how often each value occurs. PyTorch copies these counts to
 * the host in the middle of nonzero, unique and masked operations. Any thread.
 */
#include <stdlib.h>
#include "iterator.h"

/* Writes one number to the address in argument i, in its own type. */
static void put_one(const struct call *c, int i, int64_t number, bool known)
{
	struct view v;

	if (view_row(&v, call_address(c, i), text_type(text_parameter(c->k, i)), 1))
		view_put(&v, 0, (struct value){ number, known });
}

static void forget(const struct call *c, int i)
{
	if (call_address(c, i))
		sim_forget(call_address(c, i));
}

/* The sum of the elements of argument 0, whose count is argument 2; false if it is not known. */
static bool total_of(const struct call *c, int operation, int64_t *total)
{
	bool sums = text_has(text_parameter(c->k, operation), "plus<") ||
		    text_has(text_parameter(c->k, operation), "::Sum");
	int64_t n = call_number(c, 2);
	struct value *values = NULL;
	struct iterator in;

	*total = 0;
	if (!sums || !iterator_read(&in, c, 0) || !(in.flags || !number_is_real(in.type)))
		return false;
	if (iterator_all_true(&in, n)) {
		*total = n;
		return true;
	}
	values = iterator_known(&in, n);
	if (!values)
		return false;
	for (int64_t i = 0; i < n; i++)
		*total += (int64_t)values[i].x;
	free(values);
	return true;
}

/* Arguments: source, result, count, operation. */
bool total_launch(const struct call *c)
{
	int64_t total;
	bool known = total_of(c, 3, &total);

	if (!call_address(c, 1))
		return false;
	put_one(c, 1, total, known);
	return true;
}

/* The first of two passes. Arguments: source, partial results, count, its distribution, operation.
 * The first partial result gets the whole sum. */
bool parts_launch(const struct call *c)
{
	char type = text_type(text_parameter(c->k, 1));
	int64_t total;
	bool known = total_of(c, 4, &total);
	struct view parts;

	if (!call_address(c, 1) || !view_row(&parts, call_address(c, 1), type, c->grid[0]))
		return false;
	for (int64_t i = 0; i < parts.n; i++)
		view_put(&parts, i, (struct value){ i ? 0 : total, known });
	return true;
}

/* Arguments: source, flags, result, number taken, three of CUB's own, count. If the last of these
 * three is equal_to, equal neighbours count once. */
bool select_launch(const struct call *c)
{
	bool unlike = text_has(text_parameter(c->k, 6), "equal_to<");
	char type = text_type(text_parameter(c->k, 2));
	int64_t n = call_number(c, 7), taken = 0;
	struct iterator in, flags;
	struct value *from = NULL, *flag = NULL;
	struct view out;

	if (!call_address(c, 3))
		return false;
	if (type && iterator_read(&in, c, 0) && (unlike || iterator_read(&flags, c, 1))) {
		from = iterator_known(&in, n);
		flag = unlike ? NULL : iterator_known(&flags, n);
	}
	if (!from || (!flag && !unlike)) {
		bool all = type && !unlike && iterator_read(&flags, c, 1) &&
			   iterator_all_true(&flags, n);

		forget(c, 2);
		put_one(c, 3, all ? n : 0, all);
	}
	for (int64_t i = 0; from && (flag || unlike) && i < n; i++) {
		bool takes = unlike ? !i || from[i].x != from[i - 1].x : flag[i].x != 0;

		if (takes &&
		    !view_row(&out, (char *)*(void **)c->args[2] + taken * number_size(type), type,
			      1))
			break;
		if (takes)
			view_put(&out, 0, from[i]);
		taken += takes;
	}
	if (from && (flag || unlike))
		put_one(c, 3, taken, true);
	free(from);
	free(flag);
	return true;
}

/* Arguments: source, result for the first of each run, ones, result for the runs' lengths, result
 * for the number of runs, three of CUB's own, operation, count. */
bool runs_launch(const struct call *c)
{
	char type = text_type(text_parameter(c->k, 1)), count = text_type(text_parameter(c->k, 3));
	int64_t n = call_number(c, 9), runs = 0;
	struct value *values = NULL;
	struct iterator in;
	struct view out, lengths;
	bool ones = text_has(text_parameter(c->k, 2), "constant_iterator<") ||
		    text_has(text_parameter(c->k, 2), "ConstantInputIterator<");

	if (!call_address(c, 4) || !type || !count)
		return false;
	if (ones && iterator_read(&in, c, 0) && view_row(&out, *(void **)c->args[1], type, n) &&
	    view_row(&lengths, *(void **)c->args[3], count, n))
		values = iterator_known(&in, n);
	for (int64_t i = 0, start = 0; values && i < n; i++) {
		if (i && values[i].x != values[i - 1].x)
			start = i;
		if (i + 1 < n && values[i].x == values[i + 1].x)
			continue;
		view_put(&out, runs, values[i]);
		view_put(&lengths, runs++, (struct value){ i + 1 - start, true });
	}
	if (!values) {
		forget(c, 1);
		forget(c, 3);
	}
	put_one(c, 4, runs, values != NULL);
	free(values);
	return true;
}

/* The first n elements at argument i, an address or a device_ptr. */
static bool row_of(struct view *v, const struct call *c, int i, int64_t n)
{
	struct text t = text_parameter(c->k, i);

	if (text_has(t, "device_ptr<"))
		t = text_argument_of(t, "device_ptr<", 0);
	return view_row(v, *(void **)c->args[i], text_type(t), n);
}

/* Keeps keys that differ from the one before. Arguments: keys, their values, results for both,
 * result for the number kept, one of CUB's own, comparison, count. Unknown keys are assumed to
 * differ, because a sparse tensor seldom has two elements at one place. */
bool unlike_keys_launch(const struct call *c)
{
	int64_t n = call_number(c, 7), taken = 0;
	struct view keys, values, keys_out, values_out;
	struct value *key;

	if (!row_of(&keys, c, 0, n) || !row_of(&values, c, 1, n) || !row_of(&keys_out, c, 2, n) ||
	    !row_of(&values_out, c, 3, n) || !call_address(c, 4))
		return false;
	key = text_has(text_parameter(c->k, 6), "equal_to<") ? view_known(&keys) : NULL;
	for (int64_t i = 0; key && i < n; i++) {
		if (i && key[i].x == key[i - 1].x)
			continue;
		view_put(&keys_out, taken, key[i]);
		view_put(&values_out, taken++, view_look(&values, i));
	}
	if (!key) {
		view_forget(&keys_out);
		view_forget(&values_out);
	}
	if (!key && assumes(CONTENTS_ALL_TRUE))
		taken = n;
	put_one(c, 4, taken, key || taken);
	free(key);
	return true;
}

/* Arguments: count, source, result (whether an element differs from the one before). */
bool unlike_launch(const struct call *c)
{
	int64_t n = call_number(c, 0);
	struct iterator in;
	struct value *values = iterator_read(&in, c, 1) ? iterator_known(&in, n) : NULL;
	long double last = values && n ? values[0].x : 0;
	struct view out;

	if (!view_row(&out, call_address(c, 2), 'i', n))
		return false;
	for (int64_t i = 0; values && i < n; i++) {
		long double x = values[i].x;

		values[i].x = x != last;
		last = x;
	}
	if (values)
		view_store(&out, values);
	else
		view_forget(&out);
	free(values);
	return true;
}

/* Arguments: count, source, destination of each element, result. */
bool scatter_each_launch(const struct call *c)
{
	int64_t n = call_number(c, 0);
	struct view from, to, where;
	struct value *at;

	if (!view_row(&from, call_address(c, 1), 'l', n) ||
	    !view_row(&where, call_address(c, 2), 'l', n) ||
	    !view_row(&to, call_address(c, 3), 'l', n))
		return false;
	at = view_known(&where);
	for (int64_t i = 0; at && i < n; i++)
		if (at[i].x >= 0 && at[i].x < n)
			view_put(&to, (int64_t)at[i].x, view_look(&from, i));
	if (!at)
		view_forget(&to);
	free(at);
	return true;
}

/* unique() of flags. Arguments: count, number of true flags, values and counts (results). */
bool two_values_launch(const struct call *c)
{
	int64_t n = call_number(c, 0);
	struct view count, values, counts;
	struct value number;
	int64_t parts[2];
	int at = 0;

	if (!view_row(&count, call_address(c, 1), 'i', 1) ||
	    !view_row(&values, call_address(c, 2), 'b', 2) ||
	    !view_row(&counts, call_address(c, 3), 'l', 2))
		return false;
	number = view_look(&count, 0);
	parts[0] = n - (int64_t)number.x;
	parts[1] = (int64_t)number.x;
	for (int i = 0; i < 2; i++)
		if (parts[i] > 0) {
			view_put(&values, at, (struct value){ i, number.known });
			view_put(&counts, at++, (struct value){ parts[i], number.known });
		}
	return true;
}

/* Arguments: count, number of true flags, flags, result for the index of each among the values. */
bool two_places_launch(const struct call *c)
{
	int64_t n = call_number(c, 0);
	struct view count, flags, out;
	struct value number, *values;

	if (!view_row(&count, call_address(c, 1), 'i', 1) ||
	    !view_row(&flags, call_address(c, 2), 'b', n) ||
	    !view_row(&out, call_address(c, 3), 'l', n))
		return false;
	number = view_look(&count, 0);
	values = number.known ? view_known(&flags) : NULL;
	for (int64_t i = 0; values && i < n; i++)
		values[i].x = values[i].x != 0 && number.x < n;
	if (values)
		view_store(&out, values);
	else
		view_forget(&out);
	free(values);
	return true;
}

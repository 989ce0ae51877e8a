/* SPDX-License-Identifier: Apache-2.0
 *
 * Small sorts: PyTorch's sorts in place of rows of keys with their indices, topk, kthvalue and
 * median, CUB's radix sorts of one row. Any thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"
#include "view.h"

/* One element to be sorted. */
struct item {
	long double key;
	uint64_t bits; /* of a radix sort */
	int64_t place;
	struct value companion;
};

/* ---- orders, all stable ---- */

/* NaN sorts after all numbers. */
static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (isnan(x->key) != isnan(y->key))
		return isnan(x->key) ? 1 : -1;
	if (x->key < y->key || x->key > y->key)
		return x->key < y->key ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

static int by_key_down(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if ((isnan(x->key) && isnan(y->key)) || x->key == y->key)
		return x->place < y->place ? -1 : 1;
	return -by_key(a, b);
}

static int by_bits(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->bits != y->bits ? (x->bits < y->bits ? -1 : 1) : x->place < y->place ? -1 : 1;
}

static int by_bits_down(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->bits != y->bits ? (x->bits > y->bits ? -1 : 1) : x->place < y->place ? -1 : 1;
}

/* ---- rows of a TensorInfo ---- */

/* Types: of the keys, of an index. */
bool sort_parse(struct kernel *k)
{
	struct text keys = text_parameter(k, 0);

	k->types[0] = text_type(text_argument_of(keys, "TensorInfo<", 0));
	k->types[1] = text_type(text_argument_of(keys, "TensorInfo<", 1));
	k->form = strstr(k->text, "GTOp<") != NULL;
	return keys.at && k->types[1];
}

/* Row r of a tensor whose size along the rows' dimension is 1. */
static struct view row_of(const struct view *v, int64_t r, int64_t n, int64_t stride)
{
	struct view row = { .base = v->base + view_offset(v, r),
			    .type = v->type,
			    .dims = 1,
			    .sizes = { n },
			    .strides = { stride * number_size(v->type) },
			    .n = n };

	return row;
}

static bool info(struct view *v, const struct call *c, int arg, char type)
{
	return view_info(v, c->args[arg], type, number_size(c->k->types[1]));
}

/* Sorted keys and their companions, freed by the caller; NULL if not all are known. */
static struct item *load(const struct view *keys, const struct view *with,
			 int (*order)(const void *, const void *))
{
	struct value *key = view_known(keys), *companion = with ? view_known(with) : NULL;
	struct item *items =
		key && (companion || !with) ? calloc(keys->n + 1, sizeof(*items)) : NULL;

	for (int64_t i = 0; items && i < keys->n; i++) {
		items[i].key = key[i].x;
		items[i].place = i;
		if (with)
			items[i].companion = companion[i];
	}
	free(key);
	free(companion);
	if (items)
		qsort(items, keys->n, sizeof(*items), order);
	return items;
}

/* Keeps the places in order, because unknown keys are assumed to be sorted. */
static void keep_order(const struct view *v)
{
	struct value *values = view_known(v);

	if (values)
		view_store(v, values);
	free(values);
}

static void sort_row(const struct view *keys, const struct view *places, bool down)
{
	struct item *items = load(keys, places, down ? by_key_down : by_key);

	if (!items) {
		view_forget(keys);
		if (view_look(places, 0).known && assumes(CONTENTS_EVEN))
			keep_order(places);
		else
			view_forget(places);
		return;
	}
	for (int64_t i = 0; i < keys->n; i++) {
		view_put(keys, i, (struct value){ items[i].key, true });
		view_put(places, i, items[i].companion);
	}
	free(items);
}

/* Arguments: keys, rows, their length, the keys' stride, values, their stride, and a flag for the
 * order if the name does not show it. */
bool sort_launch(const struct call *c)
{
	int64_t rows = call_number(c, 1), length = call_number(c, 2), stride = call_number(c, 3);
	char flag = text_type(text_parameter(c->k, 6));
	bool down = flag == 'b' ? *(const bool *)c->args[6] : c->k->form;
	struct view keys, values;

	if (!c->k->types[0] || !info(&keys, c, 0, c->k->types[0]) || !info(&values, c, 4, 'l'))
		return false;
	if (rows * length > WHOLE_MOST || keys.n < rows || values.n < rows ||
	    (rows * length > SMALL_MOST && !view_look(&values, 0).known)) {
		sim_forget(keys.base);
		sim_forget(values.base);
		return true;
	}
	for (int64_t r = 0; r < rows; r++) {
		struct view key = row_of(&keys, r, length, stride);
		struct view value = row_of(&values, r, length, call_number(c, 5));

		sort_row(&key, &value, down);
	}
	return true;
}

/* ---- topk, kthvalue, median ---- */

struct few {
	struct view in, values, places;
	int64_t length, stride, rows, n, values_stride, places_stride;
	bool down;
};

/* A choice from unknown values: each row's choice begins where the choice of the row before
 * ends. */
static void choose(const struct few *f, int64_t r, const struct view *places)
{
	if (!assumes(CONTENTS_EVEN)) {
		view_forget(places);
		return;
	}
	for (int64_t i = 0; i < f->n; i++)
		view_put(places, i, (struct value){ (r * f->n + i) % f->length, true });
}

static void choose_all(const struct few *f)
{
	struct view v = f->places;
	struct value *values = v.dims < VIEW_DIMS ? values_new(f->rows * f->n) : NULL;

	memmove(v.sizes + 1, v.sizes, v.dims * sizeof(*v.sizes));
	memmove(v.strides + 1, v.strides, v.dims++ * sizeof(*v.strides));
	v.sizes[0] = f->n;
	v.strides[0] = f->places_stride * number_size(v.type);
	v.n = f->rows * f->n;
	for (int64_t i = 0; values && i < v.n; i++)
		values[i] = (struct value){ i % f->length, true };
	if (values)
		view_store(&v, values);
	else
		view_forget(&v);
	free(values);
}

static void few_of_row(const struct few *f, int64_t r)
{
	struct view in = row_of(&f->in, r, f->length, f->stride);
	struct view values = row_of(&f->values, r, f->n, f->values_stride);
	struct view places = row_of(&f->places, r, f->n, f->places_stride);
	struct item *items =
		view_small(&in) ? load(&in, NULL, f->down ? by_key_down : by_key) : NULL;

	if (!items) {
		view_forget(&values);
		choose(f, r, &places);
		return;
	}
	for (int64_t i = 0; i < f->n; i++) {
		view_put(&values, i, (struct value){ items[i].key, true });
		view_put(&places, i, (struct value){ items[i].place, true });
	}
	free(items);
}

static bool do_few(const struct few *f)
{
	bool fits = f->n <= f->length && f->n >= 0 && f->in.n >= f->rows;

	if (!fits || f->rows * f->length > SMALL_MOST) {
		sim_forget(f->values.base);
		sim_forget(f->places.base);
		if (fits && f->rows * f->n <= WHOLE_MOST && f->places.n == f->rows &&
		    assumes(CONTENTS_EVEN))
			choose_all(f);
		return true;
	}
	for (int64_t r = 0; r < f->rows; r++)
		few_of_row(f, r);
	return true;
}

/* Arguments: source, a row's length, number taken, whether the largest, rows, stride, values, their
 * stride, indices, their stride. */
bool topk_launch(const struct call *c)
{
	struct few f = { .length = call_number(c, 1), .n = call_number(c, 2) };

	if (!c->k->types[0] || !info(&f.in, c, 0, c->k->types[0]) ||
	    !info(&f.values, c, 6, c->k->types[0]) || !info(&f.places, c, 8, 'l'))
		return false;
	f.down = *(const bool *)c->args[3];
	f.rows = call_number(c, 4);
	f.stride = call_number(c, 5);
	f.values_stride = call_number(c, 7);
	f.places_stride = call_number(c, 9);
	return do_few(&f);
}

/* Takes the element at one place of each row's order. */
static bool one_of_rows(const struct call *c, struct few *f,
			int64_t (*place)(const struct few *, struct item *))
{
	if (f->rows * f->length > SMALL_MOST || f->in.n < f->rows) {
		sim_forget(f->values.base);
		sim_forget(f->places.base);
		return true;
	}
	(void)c;
	for (int64_t r = 0; r < f->rows; r++) {
		struct view in = row_of(&f->in, r, f->length, f->stride);
		struct item *items = load(&in, NULL, by_key);
		int64_t at = items ? place(f, items) : 0;
		bool known = items != NULL;

		view_put(&f->values, r, (struct value){ known ? items[at].key : 0, known });
		view_put(&f->places, r, (struct value){ known ? items[at].place : 0, known });
		free(items);
	}
	return true;
}

static int64_t kth(const struct few *f, struct item *items)
{
	(void)items;
	return f->n - 1;
}

/* The lower of two middle elements; the first NaN, if there is one. */
static int64_t middle(const struct few *f, struct item *items)
{
	int64_t last = f->length - 1;

	if (!isnan(items[last].key))
		return last / 2;
	while (last && isnan(items[last - 1].key))
		last--;
	return last;
}

/* Arguments: source, a row's length, k, rows, stride, values, indices. */
bool kth_launch(const struct call *c)
{
	struct few f = { .length = call_number(c, 1), .n = call_number(c, 2) };

	if (!c->k->types[0] || !info(&f.in, c, 0, c->k->types[0]) ||
	    !info(&f.values, c, 5, c->k->types[0]) || !info(&f.places, c, 6, 'l') || f.n < 1 ||
	    f.n > f.length)
		return false;
	f.rows = call_number(c, 3);
	f.stride = call_number(c, 4);
	return one_of_rows(c, &f, kth);
}

/* Arguments: values, indices, source, a row's length, rows, stride. */
bool median_launch(const struct call *c)
{
	struct few f = { .length = call_number(c, 3) };

	if (!c->k->types[0] || !info(&f.values, c, 0, c->k->types[0]) ||
	    !info(&f.places, c, 1, 'l') || !info(&f.in, c, 2, c->k->types[0]) || f.length < 1)
		return false;
	f.rows = call_number(c, 4);
	f.stride = call_number(c, 5);
	return one_of_rows(c, &f, middle);
}

/* ---- CUB's radix sorts ---- */

/* Bits that sort like the number. */
static uint64_t ordered_bits(char type, long double x)
{
	int width = 8 * number_size(type);
	uint64_t bits = 0, sign = 1ull << (width - 1);

	number_store(type, &bits, x == 0 ? 0 : x);
	if (number_is_real(type))
		return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
	return strchr("asil", type) ? bits ^ sign : bits;
}

/* Types: of the keys, of their companions (0: none). */
bool radix_parse(struct kernel *k)
{
	struct text t = { k->text, strlen(k->text) };
	bool passes = strstr(k->family->mark, "Onesweep") != NULL;

	k->types[0] = text_type(text_parameter(k, passes ? 4 : 0));
	k->types[1] = text_type(text_parameter(k, passes ? 6 : 2));
	k->form = text_has(t, "SortOrder)1");
	k->result = text_has(text_parameter(k, passes ? 6 : 2), "NullType");
	return k->types[0] && (k->types[1] || k->result);
}

/* With unknown keys each companion stays at its place. */
static void stay(const struct view *from, const struct view *to)
{
	struct value *values = assumes(CONTENTS_EVEN) ? view_known(from) : NULL;

	if (values)
		view_store(to, values);
	else
		view_forget(to);
	free(values);
}

static bool do_radix(const struct kernel *k, void *const *at, int64_t n, int begin, int bits)
{
	struct view in, out, with, with_out;
	uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
	bool pairs = !k->result;
	struct item *items;

	if (!view_row(&in, at[0], k->types[0], n) || !view_row(&out, at[1], k->types[0], n) ||
	    (pairs && (!view_row(&with, at[2], k->types[1], n) ||
		       !view_row(&with_out, at[3], k->types[1], n))))
		return false;
	items = n <= SMALL_MOST ? load(&in, pairs ? &with : NULL, by_key) : NULL;
	for (int64_t i = 0; items && i < n; i++)
		items[i].bits = ordered_bits(in.type, items[i].key) >> begin & mask;
	if (items)
		qsort(items, n, sizeof(*items), k->form ? by_bits_down : by_bits);
	else
		view_forget(&out);
	if (!items && pairs)
		stay(&with, &with_out);
	for (int64_t i = 0; items && i < n; i++) {
		view_put(&out, i, (struct value){ items[i].key, true });
		if (pairs)
			view_put(&with_out, i, items[i].companion);
	}
	free(items);
	return true;
}

/* Arguments: source and result of the keys, of the companions, count, first bit, last bit + 1. */
bool radix_launch(const struct call *c)
{
	int begin = (int)call_number(c, 5), end = (int)call_number(c, 6);
	void *at[4];

	for (int i = 0; i < 4; i++)
		at[i] = *(void **)c->args[i];
	return do_radix(c->k, at, call_number(c, 4), begin, end - begin);
}

/* One pass: arguments 0-3 are its own buffers, then destination and source pointers; then the
 * count, the first bit, the number of bits. */
bool radix_pass_launch(const struct call *c)
{
	static const int args[] = { 5, 4, 7, 6 };
	void *at[4];

	for (int i = 0; i < 4; i++)
		at[i] = *(void **)c->args[args[i]];
	return do_radix(c->k, at, call_number(c, 8), (int)call_number(c, 9),
			(int)call_number(c, 10));
}

/* Kernels that only check values, or prepare work that the simulated kernels do at once. */
bool prepare_launch(const struct call *c)
{
	(void)c;
	return true;
}

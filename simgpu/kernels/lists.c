/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels over lists of tensors, as PyTorch's optimizers launch them (multi_tensor_apply). Their
 * first argument is a table of addresses, whose room for tensors depends on the version. The table
 * itself shows its form, because its blocks must cover its tensors chunk by chunk. If a form fits,
 * only memory that the kernel writes is forgotten, not addresses that an earlier table left behind.
 * Additions of a number to tensors of one element are computed, because an optimizer that keeps its
 * step counters on the device divides by values made from them. A table that fits no form is
 * treated like any other argument. Any thread.
 */
#include <stdio.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"

enum { FORM_OTHER, FORM_ADD }; /* adds a number to each element */

#define DEPTH 5	    /* lists in one table */
#define CHUNK 65536 /* elements that a block works on */

/* For functions that read other functions' variables on the stack. */
#define FOREIGN __attribute__((no_sanitize("address")))

static const struct form {
	int room[DEPTH]; /* tensors, by the number of lists */
	int with_column; /* the same for one list with an extra column */
	int blocks, index_size;
} forms[] = {
	{ { 110, 64, 48, 36, 30 }, 96, 320, 1 },
	{ { 770, 448, 336, 252, 210 }, 672, 2240, 2 },
};

/* The table: lists of addresses, the tensors' numbers of elements, for some kernels a column of
 * numbers or of further addresses, each block's tensor, each block's chunk. */
struct table {
	const struct form *form;
	void *const *addresses;
	const int64_t *elements;
	const char *tensor_of;
	const int *chunk_of;
	int room, n;
};

/* ---- the table ---- */

FOREIGN static int tensor_of(const struct table *t, unsigned int block)
{
	if (t->form->index_size == 1)
		return ((const uint8_t *)t->tensor_of)[block];
	return ((const uint16_t *)t->tensor_of)[block];
}

FOREIGN static bool tensor_fits(const struct table *t, int depth, int i)
{
	for (int d = 0; d < depth; d++)
		if (!sim_is_device_ptr(t->addresses[d * t->room + i]))
			return false;
	return t->elements[i] > 0;
}

/* A launch may begin and end within a tensor; those in between are covered from end to end. */
FOREIGN static bool blocks_fit(struct table *t, int depth, unsigned int blocks)
{
	int last = -1;
	int64_t done = 0;

	for (unsigned int b = 0; b < blocks; b++) {
		int i = tensor_of(t, b);
		int64_t start = (int64_t)t->chunk_of[b] * CHUNK;

		if (i != last && b && (done < t->elements[last] || start))
			return false;
		if (i == last ? start != done : i != last + 1)
			return false;
		if (i >= t->room || !tensor_fits(t, depth, i) || start < 0 ||
		    start >= t->elements[i])
			return false;
		last = i;
		done = start + CHUNK;
	}
	t->n = last + 1;
	return true;
}

static bool read_table(struct table *t, const struct kernel *k, const char *at, unsigned int blocks)
{
	const struct form *f = t->form;
	size_t reach = contents_reach(at), room, used;

	t->room = k->operands == 1 && k->column ? f->with_column : f->room[k->operands - 1];
	room = t->room;
	used = room * (k->operands * sizeof(void *) + sizeof(int64_t) + k->column);
	t->addresses = (void *const *)at;
	t->elements = (const int64_t *)(t->addresses + room * k->operands);
	t->tensor_of = at + used;
	used += (size_t)f->blocks * f->index_size;
	t->chunk_of = (const int *)(at + used);
	used += (size_t)f->blocks * sizeof(int);
	return used <= reach && blocks <= (unsigned int)f->blocks &&
	       blocks_fit(t, k->operands, blocks);
}

/* ---- computing ---- */

/* Adds to a tensor of one element. Only such tensors are computed, because a larger one is not a
 * step counter. */
static void add_to_counter(const struct kernel *k, const struct table *t, int i, const void *number)
{
	char value[16];
	long double sum;

	sim_copy(value, t->addresses[i], number_size(k->types[0]));
	sum = number_load(k->types[0], value) + number_load(k->types[0], number);
	number_store(k->types[0], value, sum);
	sim_copy(t->addresses[k->result * t->room + i], value, number_size(k->types[0]));
}

FOREIGN static void do_tensor(const struct kernel *k, const struct table *t, int i, void **args)
{
	if (k->form == FORM_ADD && t->elements[i] == 1) {
		add_to_counter(k, t, i, args[3]); /* arguments: table, functor, operator, number */
		return;
	}
	for (int d = 0; d < k->operands; d++)
		if (k->result < 0 || k->result == d)
			sim_forget(t->addresses[d * t->room + i]);
}

bool lists_launch(const struct call *c)
{
	const struct kernel *k = c->k;

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		struct table t = { .form = &forms[f] };

		if (!read_table(&t, k, c->args[0], c->grid[0]))
			continue;
		for (int i = 0; i < t.n; i++)
			do_tensor(k, &t, i, c->args);
		return true;
	}
	return false;
}

/* ---- names ---- */

/* The letter of a type after the mark in a name, else 0. */
static char type_after(const char *name, const char *mark)
{
	const char *at = strstr(name, mark);

	at = at ? at + strlen(mark) : "";
	return *at && strchr("bahstijlmfd", *at) ? *at : 0;
}

/* The extra column that the table keeps per tensor, beside addresses and sizes. */
static const struct {
	const char *mark;
	bool numbers; /* of the type after the mark; else addresses or nothing */
	int column;
} tables[] = {
	{ "18TensorListMetadataI", false, 0 },
	{ "32FusedOptimizerTensorListMetadataI", false, sizeof(void *) },
	{ "28TensorListScalarListMetadataI", true, 0 },
};

static bool parse_table(struct kernel *k)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const char *at = strstr(k->name, tables[i].mark);
		char type = type_after(k->name, tables[i].mark);

		if (!at || (tables[i].numbers && !type))
			continue;
		at += strlen(tables[i].mark) + tables[i].numbers;
		k->column = tables[i].numbers ? number_size(type) : tables[i].column;
		return sscanf(at, "Li%1dE", &k->operands) == 1 && k->operands >= 1 &&
		       k->operands <= DEPTH;
	}
	return false;
}

/* The list that is written, or -1. Functors' names end with it, after the numbers of all lists and
 * of lists that are read. */
static int parse_result(const struct kernel *k)
{
	int depth, read, result;

	for (const char *at = k->name; (at = strstr(at, "Li")); at++)
		if (sscanf(at, "Li%1dELi%1dELi%1dE", &depth, &read, &result) == 3 &&
		    depth == k->operands && result < depth)
			return result;
	return -1;
}

bool lists_parse(struct kernel *k)
{
	if (!parse_table(k))
		return false;
	k->result = parse_result(k);
	k->types[0] = type_after(k->name, "21BinaryOpScalarFunctorI");
	if (k->types[0] && k->result >= 0 && type_after(k->name, "EEEJSt4plusI") == k->types[0])
		k->form = FORM_ADD;
	return true;
}

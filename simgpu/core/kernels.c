/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernel is it? Names are kept as registered, and read at a kernel's first launch: only the
 * parts that have not changed from PyTorch 2.6 on. What is not recognised is "other". Any thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"
#include "numbers.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel **table; /* open addressing, a power of two */
static size_t room, used;

static size_t place(struct kernel **t, size_t n, const void *host)
{
	size_t i = ((uintptr_t)host * 0x9e3779b97f4a7c15ull) >> 20;

	for (i &= n - 1; t[i] && t[i]->host != host; i = (i + 1) & (n - 1))
		;
	return i;
}

static bool grow(void)
{
	size_t n = room ? 2 * room : 4096;
	struct kernel **t = calloc(n, sizeof(*t));

	if (!t)
		return false;
	for (size_t i = 0; i < room; i++)
		if (table[i])
			t[place(t, n, table[i]->host)] = table[i];
	free(table);
	table = t;
	room = n;
	return true;
}

void kernel_register(const void *host, const char *name)
{
	struct kernel *k;
	size_t at;

	if (!host || !name)
		return;
	pthread_mutex_lock(&lock);
	if (2 * used < room || grow()) {
		at = place(table, room, host);
		k = table[at] ? table[at] : calloc(1, sizeof(*k));
		if (k) {
			used += !table[at];
			table[at] = k;
			k->host = host;
			k->name = name;
			k->family = KERNEL_UNSEEN;
		}
	}
	pthread_mutex_unlock(&lock);
}

struct kernel *kernel_find(const void *host)
{
	struct kernel *k = NULL;

	pthread_mutex_lock(&lock);
	if (room)
		k = table[place(table, room, host)];
	if (k && k->family == KERNEL_UNSEEN)
		kernel_parse(k);
	pthread_mutex_unlock(&lock);
	return k;
}

/* ---- names ---- */

static bool is_type(char c)
{
	return c && strchr("bahstijlmfd", c);
}

char kernel_type_after(const char *name, const char *mark)
{
	const char *at = strstr(name, mark);

	return at && is_type(at[strlen(mark)]) ? at[strlen(mark)] : 0;
}

/* Functors that work on one type alone; those with an operand of their own say where they keep it.
 */
static const struct {
	const char *mark;
	enum kernel_what what;
	int operands;
} functors[] = {
	{ "FillFunctorI", WHAT_FILL, 0 },
	{ "AbsFunctorI", WHAT_ABSOLUTE, 1 },
	{ "compare_scalar_kernelI", WHAT_COMPARE, 1 },
	{ "CompareFunctorI", WHAT_COMPARE, 2 },
	{ "CUDAFunctor_addI", WHAT_ADD, 2 },
	{ "CUDAFunctorOnSelf_addI", WHAT_ADD, 1 },
	{ "CUDAFunctorOnOther_addI", WHAT_ADD, 1 },
};

/* Functors inside of one that says the types of both operands and of the result. */
static const struct {
	const char *mark;
	enum kernel_what what;
	bool has_mode; /* an int before the operand */
} wrapped[] = {
	{ "BitwiseOrFunctorI", WHAT_OR, false },   { "BitwiseAndFunctorI", WHAT_AND, false },
	{ "BitwiseXorFunctorI", WHAT_XOR, false }, { "CompareEqFunctorI", WHAT_EQUAL, true },
	{ "10MulFunctorI", WHAT_MULTIPLY, false }, { "10DivFunctorI", WHAT_DIVIDE, false },
};

static const struct {
	const char *mark;
	enum kernel_what what;
} reductions[] = {
	{ "MaxNanFunctorI", WHAT_MAXIMUM }, { "MinNanFunctorI", WHAT_MINIMUM },
	{ "or_kernel_cuda", WHAT_ANY },	    { "and_kernel_cuda", WHAT_ALL },
	{ "sum_functorI", WHAT_SUM },	    { "MeanOpsI", WHAT_MEAN },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* The functor's own operand follows its mode, if it has one, at its natural alignment. */
static int scalar_at(char type, bool has_mode)
{
	int size = number_size(type);

	return has_mode && size < (int)sizeof(int) ? (int)sizeof(int) : size;
}

static bool parse_wrapped(struct kernel *k)
{
	const char *binary = strstr(k->name, "13BinaryFunctorI");
	const char *types = binary ? binary : strstr(k->name, "UnaryFunctorI");
	size_t f = 0;

	while (f < COUNT(wrapped) && !strstr(k->name, wrapped[f].mark))
		f++;
	if (!types || f == COUNT(wrapped))
		return false;
	types = strstr(types, "FunctorI") + strlen("FunctorI");
	if (!is_type(types[0]) || types[0] != types[1] || !is_type(types[2]))
		return false;
	k->what = wrapped[f].what;
	k->in = types[0];
	k->out = types[2];
	k->operands = binary ? 2 : 1;
	k->scalar = binary ? -1 : scalar_at(k->in, wrapped[f].has_mode);
	k->scalar_first = strstr(k->name, "13AUnaryFunctorI") != NULL;
	return true;
}

/* One function for all types, whose argument's type comes last; or one for each pair of types. */
static void parse_copy(struct kernel *k)
{
	static const char converting[] = "converting_copy_kernel_cudaI";
	const char *pair = strstr(k->name, converting), *at = strstr(k->name, "clEvEUl");

	if (pair && is_type(pair[strlen(converting)])) {
		pair += strlen(converting);
		k->in = pair[0];
		k->out = is_type(pair[1]) && pair[2] == 'E' ? pair[1] : 0;
	} else if (strstr(k->name, "direct_copy_kernel_cuda")) {
		k->in = k->out = at && is_type(at[7]) && at[8] == 'E' ? at[7] : 0;
	}
	k->what = k->in && k->out ? WHAT_COPY : WHAT_UNKNOWN;
}

static void parse_functor(struct kernel *k)
{
	if (parse_wrapped(k))
		return;
	for (size_t i = 0; i < COUNT(functors); i++) {
		k->in = kernel_type_after(k->name, functors[i].mark);
		if (!k->in)
			continue;
		k->what = functors[i].what;
		k->operands = functors[i].operands;
		k->out = k->what == WHAT_COMPARE ? 'b' : k->in;
		k->scalar = -1;
		k->scalar_first = strstr(k->name, "OnOther_add") != NULL;
		if (k->operands < 2 && k->what != WHAT_ABSOLUTE)
			k->scalar = k->what == WHAT_COMPARE ? scalar_at(k->in, true) : 0;
		return;
	}
	k->operands = 1;
	k->scalar = -1;
	if (strstr(k->name, "bitwise_not_kernel_cuda") && strstr(k->name, "EUlbE_")) {
		k->what = WHAT_NOT;
		k->in = k->out = 'b';
	} else {
		parse_copy(k);
	}
}

/* reduce_kernel<threads, vector, ReduceOp<in, functor, unsigned int, out, ...>> */
static void parse_reduction(struct kernel *k)
{
	const char *out = strstr(k->name, "Ej");

	k->in = kernel_type_after(k->name, "ReduceOpI");
	while (out && !(is_type(out[2]) && out[3] == 'L'))
		out = strstr(out + 2, "Ej");
	k->out = out ? out[2] : 0;
	for (size_t i = 0; k->in && k->out && i < COUNT(reductions); i++)
		if (strstr(k->name, reductions[i].mark))
			k->what = reductions[i].what;
}

void kernel_parse(struct kernel *k)
{
	const char *name = k->name;

	k->family = KERNEL_OTHER;
	k->what = WHAT_UNKNOWN;
	if (strstr(name, "vectorized_elementwise_kernelI") && strstr(name, "5arrayIPcLm"))
		k->family = KERNEL_ELEMENTS;
	else if (strstr(name, "unrolled_elementwise_kernelI") && strstr(name, "5arrayIPcLm"))
		k->family = strstr(name, "LoadWithCast") ? KERNEL_CASTING : KERNEL_ELEMENTS;
	else if (strstr(name, "native18elementwise_kernelI"))
		k->family =
			strstr(name, "gpu_kernel_impl_nocastI") ? KERNEL_STRIDED : KERNEL_STEPPING;
	else if (strstr(name, "native13reduce_kernelI"))
		k->family = KERNEL_REDUCE;
	else if (strstr(name, "25multi_tensor_apply_kernelI"))
		lists_parse(k);
	else if (strstr(name, "CatArrayBatchedCopy"))
		k->family = KERNEL_CAT;
	else if (strstr(name, "28amp_update_scale_cuda_kernelEPfPiPKfddi"))
		k->family = KERNEL_SCALER;
	if (k->family == KERNEL_REDUCE)
		parse_reduction(k);
	else if (k->family < KERNEL_REDUCE && k->family > KERNEL_OTHER)
		parse_functor(k);
}

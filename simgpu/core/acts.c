/* SPDX-License-Identifier: Apache-2.0
 *
 * Actions of a graph's nodes. Work on a recorded stream is not done at once. It is kept as an
 * action and done at each launch of the graph. A graph and its executable forms share the actions.
 * Any thread.
 */
#include <stdlib.h>
#include "contents.h"
#include "work.h"

#define ADDRESSES_MOST 1024

struct act *act_new(size_t bytes, void (*run)(struct act *act, void *stream))
{
	struct act *a = calloc(1, bytes);

	if (a)
		*a = (struct act){ 1, run };
	return a;
}

struct act *act_keep(struct act *a)
{
	if (a)
		__atomic_add_fetch(&a->refs, 1, __ATOMIC_RELAXED);
	return a;
}

void act_drop(struct act *a)
{
	if (a && !__atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL))
		free(a);
}

/* ---- results that are not computed ---- */

struct forgetting {
	struct act act;
	size_t n;
	uintptr_t at[];
};

static void forget(struct act *act, void *stream)
{
	struct forgetting *f = (struct forgetting *)act;

	(void)stream;
	for (size_t i = 0; i < f->n; i++)
		sim_forget((const void *)f->at[i]);
}

struct act *act_forget(const uintptr_t *words, size_t n)
{
	struct forgetting *f =
		(struct forgetting *)act_new(sizeof(*f) + n * sizeof(f->at[0]), forget);

	for (size_t i = 0; f && i < n; i++)
		if (sim_is_device_ptr((const void *)words[i]))
			f->at[f->n++] = words[i];
	return f ? &f->act : NULL;
}

struct act *act_launch(void **args)
{
	uintptr_t addresses[ADDRESSES_MOST];

	return act_forget(addresses, arguments_addresses(args, addresses, ADDRESSES_MOST));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of unwinding, learned once for each address that a thread's walks reach. Application
 * threads, any lock held; never blocks or allocates.
 */
#include "stepping.h"

#include "../base/forkgate.h"
#include "modules.h"

#include <string.h>

const uintptr_t steps_not_saved;

/* A place in the set; a full set loses its oldest rule. */
static struct learned *keep_place(struct learned *set)
{
	for (unsigned i = 0; i < STEPS_WAYS; i++)
		if (!set[i].ip)
			return &set[i];
	memmove(&set[0], &set[1], (STEPS_WAYS - 1) * sizeof(set[0]));
	return &set[STEPS_WAYS - 1];
}

/* Rules for code outside of all objects are not kept: an object might be loaded there. */
__attribute__((noinline)) struct cfi_rule steps_learn(struct learned *set, uintptr_t ip)
{
	const struct cfi_rule unknown = { .how = CFI_UNKNOWN };
	const struct cfi_table *t;
	struct cfi_rule rule;
	sigset_t mask;

	forkgate_enter(&mask);
	t = modules_table(ip);
	rule = t ? cfi_rule(t, ip - 1) : unknown;
	forkgate_leave(&mask);
	if (t)
		*keep_place(set) = (struct learned){ ip, rule };
	return rule;
}

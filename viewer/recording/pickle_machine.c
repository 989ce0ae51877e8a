/* SPDX-License-Identifier: Apache-2.0 */
/* What every opcode of a pickle does: takes bytes of the input, pushes a value, or fails. */
#include "pickle_machine.h"

#include <stdio.h>

#include "../base/need.h"

bool machine_fail(struct machine *m, const char *what)
{
	snprintf(m->p->error, sizeof(m->p->error), "%s at byte %td of the pickle", what,
		 m->at - m->start - 1);
	return false;
}

void machine_push_ref(struct refs *r, uint32_t ref)
{
	*need_item(r->v, r->count, r->room) = ref;
}

bool machine_take(struct machine *m, unsigned n, uint64_t *out)
{
	*out = 0;
	if ((size_t)(m->end - m->at) < n)
		return machine_fail(m, "it ends too early");
	for (unsigned i = 0; i < n; i++)
		*out |= (uint64_t)m->at[i] << 8 * i;
	m->at += n;
	return true;
}

bool machine_push(struct machine *m, struct pickle_value v)
{
	struct pickle *p = m->p;

	if (p->count >= PICKLE_VALUES)
		return machine_fail(m, "too many values");
	machine_push_ref(&m->stack, (uint32_t)p->count);
	if (p->count == p->room) {
		p->room += p->room / 4 + 64;
		p->values = need_resize(p->values, p->room * sizeof(v));
	}
	p->values[p->count++] = v;
	return true;
}

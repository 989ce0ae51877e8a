/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a launch, read with the types in the kernel's readable name. Any thread. */
#include "kernels.h"
#include "numbers.h"

int64_t call_number(const struct call *c, int i)
{
	char type = text_type(text_parameter(c->k, i));

	return type ? (int64_t)number_load(type, c->args[i]) : -1;
}

void *call_address(const struct call *c, int i)
{
	void *address = *(void **)c->args[i];

	return sim_is_device_ptr(address) ? address : NULL;
}

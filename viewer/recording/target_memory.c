/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the process to attach to. */
#include <unistd.h>

#include "attach_parts.h"

bool target_read(const struct target *t, uint64_t at, void *into, size_t len)
{
	return pread(t->memory, into, len, (off_t)at) == (ssize_t)len;
}

bool target_write(const struct target *t, uint64_t at, const void *from, size_t len)
{
	return pwrite(t->memory, from, len, (off_t)at) == (ssize_t)len;
}

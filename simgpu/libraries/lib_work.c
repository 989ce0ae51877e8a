/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that a library would put on a stream: a kernel that does nothing. Small contents at its
 * arguments are forgotten, as it would have written there, and a stream that records a graph gets a
 * node. Any thread.
 */
#include "../core/core.h"
#include "lib.h"

/* Every library's handle begins with its stream. */
static void *stream_of(uintptr_t handle)
{
	static const uint32_t kinds[] = { LIB_BLAS, LIB_DNN, LIB_SOLVER, LIB_SPARSE };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (sim_handle_check((void *)handle, kinds[i]))
			return *(void **)handle;
	return NULL;
}

void lib_launch(void *stream)
{
	if (sim_capturing(stream))
		stream_captures(stream, NODE_KERNEL, 0, NULL, NULL);
}

void lib_work(const uintptr_t *words, int n)
{
	for (int i = 0; i < n; i++)
		if (sim_is_device_ptr((const void *)words[i]))
			sim_forget((const void *)words[i]);
	lib_launch(stream_of(words[0]));
}

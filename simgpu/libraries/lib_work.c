/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that a library would put on a stream: a kernel that does nothing. Small contents at its
 * arguments are forgotten, as it would have written there, and a stream that records a graph gets a
 * node. Any thread.
 */
#include <string.h>
#include "../core/clock.h"
#include "lib_cudnn_graph.h"
#include "lib_products.h"

/* Every library's handle begins with its stream. */
static void *stream_of(uintptr_t handle)
{
	static const uint32_t kinds[] = { LIB_BLAS, LIB_DNN, LIB_SOLVER, LIB_SPARSE };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (sim_handle_check((void *)handle, kinds[i]))
			return *(void **)handle;
	return NULL;
}

/* Beyond the arguments of most functions: there it only matters for a count. */
#define WORDS_FORGOTTEN 20

void lib_work(const char *name, const uintptr_t *words, int n)
{
	void *stream = stream_of(words[0]);
	struct lib_product p;

	for (int i = 0; i < n && i < WORDS_FORGOTTEN; i++)
		if (sim_is_device_ptr((const void *)words[i]))
			sim_forget((const void *)words[i]);
	if (lib_product_called(&p, name, words, n))
		lib_product(stream, p.operations, p.cuda_type, p.bytes);
	else if (!strcmp(name, "cudnnBackendExecute"))
		cudnn_execute(stream, (void *)words[1]);
	else
		lib_launch(stream);
	if (sim_capturing(stream))
		capture_act(stream, act_forget(words, n < WORDS_FORGOTTEN ? n : WORDS_FORGOTTEN));
}

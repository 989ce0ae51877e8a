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
	static const uint32_t kinds[] = { LIB_BLAS, LIB_DNN, LIB_SOLVER, LIB_SPARSE, LIB_RAND };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (sim_handle_check((void *)handle, kinds[i]))
			return *(void **)handle;
	return NULL;
}

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* The generic functions of cuSPARSE take objects and small numbers, so that each argument can be
 * checked as if it were an object. */
static void use_objects(const char *name, const uintptr_t *words, int n)
{
	static const char *const generic[] = {
		"cusparseSpMV",	  "cusparseSpMM",  "cusparseSpSV",    "cusparseSpSM",
		"cusparseSpGEMM", "cusparseSDDMM", "cusparseAxpby",   "cusparseDenseToSparse",
		"cusparseGather", "cusparseRot",   "cusparseScatter", "cusparseSparseToDense",
		"cusparseSpVV",
	};

	for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++)
		if (begins(name, generic[i]))
			for (int j = 0; j < n; j++)
				if (!sim_is_device_ptr((void *)words[j]))
					lib_use_sparse((void *)words[j]);
}

/* Uses the memory of handles and objects among the arguments. */
static void use_behind(const char *name, const uintptr_t *words, int n, void **stream)
{
	if (begins(name, "cublas")) {
		lib_use_blas((void *)words[0]);
		lib_product_arrays(name, words, n);
	} else if (begins(name, "cusparse")) {
		use_objects(name, words, n);
	} else if (begins(name, "curand")) {
		lib_use_generator((void *)words[0]);
	} else if (begins(name, "cufft")) {
		*stream = lib_use_plan((int)words[0]);
	} else if (!strcmp(name, "cudnnBackendExecute")) {
		cudnn_use_pack((void *)words[2]);
	}
}

void lib_work(const char *name, const uintptr_t *words, int n)
{
	void *stream = n ? stream_of(words[0]) : NULL;
	struct lib_product p;

	lib_uses(name);
	for (int i = 0; i < n; i++) {
		lib_use((const void *)words[i]);
		if (sim_is_device_ptr((const void *)words[i]))
			sim_forget((const void *)words[i]);
	}
	if (n)
		use_behind(name, words, n, &stream);
	if (lib_product_called(&p, name, words, n))
		lib_product(stream, p.operations, p.cuda_type, p.bytes);
	else if (!strcmp(name, "cudnnBackendExecute"))
		cudnn_execute(stream, (void *)words[1]);
	else
		lib_launch(stream);
	if (sim_capturing(stream))
		capture_act(stream, act_forget(words, n));
	lib_used();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases of saved tensors by Functions written in Python. These keep saved tensors in a vector of
 * their own and empty it without a call that could be hooked, so the vector is read before and
 * after the node's evaluation, and before the node is deleted. Application threads, no locks;
 * nothing is kept, only loads from objects that the framework holds meanwhile.
 */
#include "torch.h"
#include "../../format/record.h"

#include <string.h>

#define MOST 512u /* of one node; further ones count as saved until they are freed */

struct saved {
	const void *impl;
	struct torch_memory memory;
};

/* std::vector<SavedVariable>: a SavedVariable begins with the tensor it holds. */
struct variables {
	const char *begin, *end;
};

static bool is_function(const void *node)
{
	const char *const *info = (*(const char *const *const *const *)node)[-1];

	return info && !strcmp(info[1], "N5torch8autograd6PyNodeE");
}

/* After Python has ended, its objects can be gone though nodes still point to them. */
static bool python_runs(void)
{
	static void *cache;
	int (*initialized)(void) = (int (*)(void))torch_real(&cache, "Py_IsInitialized");

	return initialized && initialized();
}

static const struct variables *variables_of(const void *node, const struct torch_function *f)
{
	const char *object = *(const char *const *)((const char *)node + f->object);

	return object ? (const struct variables *)(object + f->saved) : NULL;
}

static unsigned look(const struct variables *v, const struct torch_function *f, struct saved *found)
{
	unsigned n = 0;

	for (const char *at = v->begin; n < MOST && at < v->end; at += f->stride) {
		found[n].impl = *(const void *const *)at;
		n += torch_memory_of(found[n].impl, &found[n].memory);
	}
	return n;
}

static void record_released(const struct saved *gone, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		torch_tag(GMT_TAG_RELEASED, &gone[i].memory, gone[i].impl);
}

/* A function of its own, so that other nodes do not pay for its stack frame. If the graph is
 * retained, the vector stays full. */
static __attribute__((noinline)) void run_function(torch_evaluate *real, void *engine, void *task,
						   void *node, void *inputs, void *queue)
{
	const struct torch_function *f = torch_function();
	const struct variables *v = variables_of(node, f);
	struct saved saved[MOST];
	unsigned n = v ? look(v, f, saved) : 0;

	real(engine, task, node, inputs, queue);
	if (n && v->begin == v->end)
		record_released(saved, n);
}

void torch_run_node(torch_evaluate *real, void *engine, void *task, void *node, void *inputs,
		    void *queue)
{
	if (torch_function() && is_function(node))
		run_function(real, engine, task, node, inputs, queue);
	else
		real(engine, task, node, inputs, queue);
}

#define DELETE _ZN5torch8autograd10deleteNodeEPNS0_4NodeE

typedef void delete_fn(void *);

__attribute__((visibility("default"))) void DELETE(void *node);

static __attribute__((noinline)) void tell_all(const void *node)
{
	const struct torch_function *f = torch_function();
	const struct variables *v = variables_of(node, f);
	struct saved saved[MOST];

	record_released(saved, v ? look(v, f, saved) : 0);
}

/* A node of a graph that is freed, after its backward pass or without one. Versions whose nodes
 * count their own references have no such function. There the object has already emptied its
 * vector, and the tensors' release is not seen. */
void DELETE(void *node)
{
	static void *cache;
	delete_fn *real = (delete_fn *)torch_real(&cache, NAME(DELETE));

	if (torch_tags() && torch_function() && is_function(node) && python_runs())
		tell_all(node);
	real(node);
}

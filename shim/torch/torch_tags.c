/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags from autograd: a leaf that requires grad, a leaf with other memory, a tensor saved for
 * backward, its release, a gradient. Application threads; the framework's functions run as ever.
 */
#include "result.h"
#include "../../format/record.h"
#include "torch.h"

#define LEAF	_ZN5torch8autograd14AccumulateGradC1EN2at6TensorE
#define ARRIVE	_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE
#define SAVE	_ZN5torch8autograd13SavedVariableC1ERKN2at6TensorEbb
#define RELEASE _ZN5torch8autograd13SavedVariable10reset_dataEv

#define REAL(type, symbol)  \
	static void *cache; \
	type *real = (type *)torch_real(&cache, NAME(symbol))

struct tensor {
	const void *impl;
};

/* std::vector<at::Tensor> */
struct tensors {
	const struct tensor *begin, *end;
};

#pragma GCC visibility push(default)
void LEAF(void *node, struct tensor *variable);
void SAVE(struct tensor *saved, const struct tensor *variable, bool is_output, bool is_inplace);
void RELEASE(struct tensor *saved);
#pragma GCC visibility pop

typedef void leaf_fn(void *, struct tensor *);
typedef void save_fn(struct tensor *, const struct tensor *, bool, bool);
typedef void release_fn(struct tensor *);

static void tell_saved(const struct torch_memory *m, const void *impl, unsigned how,
		       const void *hook)
{
	struct gmt_event e = torch_event(GMT_TAG_SAVED, m, impl, how);

	torch_node_now(&e);
	gmt_capture_from(&e, hook);
}

/*
 * The address of each node's leaf at its last event, as a mark in a table of fixed size. Two nodes
 * can share a place: then one gets a second event, which changes nothing.
 */
static uint64_t placed[4096];

/* Whether the leaf is at another address than at the node's last event. */
static bool moved(const void *node, uint64_t addr)
{
	uint64_t h = ((uint64_t)(uintptr_t)node >> 4) * 0x9e3779b97f4a7c15;
	uint64_t *at = &placed[h >> 52], mark = h ^ addr;

	if (__atomic_load_n(at, __ATOMIC_RELAXED) == mark)
		return false;
	__atomic_store_n(at, mark, __ATOMIC_RELAXED);
	return true;
}

/* The tag comes before the constructor, which moves the tensor away. */
void LEAF(void *node, struct tensor *variable)
{
	REAL(leaf_fn, LEAF);
	struct torch_memory m;

	if (torch_tags() && torch_memory_of(variable->impl, &m)) {
		moved(node, m.addr);
		torch_tag(GMT_TAG_LEAF, &m, node);
	}
	real(node, variable);
}

/* p.data = ... gives a leaf other memory; a retained graph keeps its node and calls no
 * constructor. */
static void tell_moved(const void *node, const void *parameter)
{
	struct torch_memory m;

	if (torch_memory_of(parameter, &m) && moved(node, m.addr))
		torch_tag(GMT_TAG_MOVED, &m, node);
}

/*
 * p.grad after the call is tagged: the arriving tensor becomes it, is copied to it, or is added to
 * it. If there is none (a hook took it away), the arriving tensor is tagged.
 */
static __attribute__((used)) void *arrive(void *result, const void *node,
					  const struct tensors *grads)
{
	REAL(result_fn, ARRIVE);
	struct torch_memory came, now;
	const void *parameter, *grad;
	bool tags = torch_tags();

	came.addr = 0;
	if (tags && grads->begin != grads->end && !torch_memory_of(grads->begin->impl, &came))
		came.addr = 0;
	result = result_call(real, result, (uintptr_t)node, (uintptr_t)grads, 0, 0, 0, 0, 0);
	if (!tags)
		return result;
	parameter = *(const void *const *)((const char *)node + torch_layout()->variable);
	tell_moved(node, parameter);
	grad = parameter ? torch_grad_of(parameter) : NULL;
	if (torch_memory_of(grad, &now))
		torch_tag(GMT_TAG_GRAD, &now, node);
	else if (came.addr)
		torch_tag(GMT_TAG_GRAD, &came, node);
	return result;
}
RESULT_FUNCTION(ARRIVE, arrive);

/*
 * A SavedVariable begins with the tensor it holds and can be moved, so a save and its release are
 * matched by the tensor (its TensorImpl). With pack hooks it holds none, and its release is not
 * seen.
 */
void SAVE(struct tensor *saved, const struct tensor *variable, bool is_output, bool is_inplace)
{
	REAL(save_fn, SAVE);
	struct torch_memory m;
	unsigned how = is_output ? GMT_SAVED_OUTPUT : 0;

	real(saved, variable, is_output, is_inplace);
	if (!torch_tags())
		return;
	if (!is_output && !torch_has_grad_fn(variable->impl))
		how |= GMT_SAVED_PLAIN;
	if (torch_memory_of(saved->impl, &m))
		tell_saved(&m, saved->impl, how, __builtin_frame_address(0));
	else if (torch_memory_of(variable->impl, &m))
		tell_saved(&m, NULL, how | GMT_SAVED_PACKED, __builtin_frame_address(0));
}

void RELEASE(struct tensor *saved)
{
	REAL(release_fn, RELEASE);
	struct torch_memory m;

	if (torch_tags() && torch_memory_of(saved->impl, &m))
		torch_tag(GMT_TAG_RELEASED, &m, saved->impl);
	real(saved);
}

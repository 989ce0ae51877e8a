/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes the backward node that runs on this thread, around the engine's evaluation of each. The
 * type information behind the node's vtable gives its class. Application threads, no locks.
 */
#include "torch.h"

#include "../base/os.h"
#include "../rings/thread.h"

#include <string.h>

#define NAMES 1024u /* by vtable; PyTorch has about 700 classes, a program uses some dozens */
#define TRIES 8u

struct node_name {
	const void *vtable;
	uint64_t id; /* generation << 32 | string */
};

static struct node_name names[NAMES];
static uint32_t evaluations;

static const char *digits(const char *s, size_t *value)
{
	for (*value = 0; *s >= '0' && *s <= '9'; s++)
		*value = *value * 10 + (size_t)(*s - '0');
	return s;
}

/* "N5torch8autograd9generated14AddmmBackward0E" -> "AddmmBackward0"; anything else stays whole. */
static uint32_t class_name(const char *type)
{
	const char *last = type + (*type == '*'), *s = last;
	size_t n = strnlen(last, 4096), part;

	if (*s++ != 'N')
		return gmt_string(last, n);
	for (const char *start = s; *s != 'E'; start = s + part, s = start) {
		s = digits(start, &part);
		if (s == start || part > strnlen(s, part))
			return gmt_string(type, strnlen(type, 4096));
		last = s;
		n = part;
	}
	return gmt_string(last, n);
}

/* The word before a vtable's first function is its type_info, whose second word is the name. */
static uint32_t look_up(const void *vtable)
{
	const char *const *info = ((const char *const *const *)vtable)[-1];

	return info ? class_name(info[1]) : 0;
}

static uint32_t name_of(const void *node)
{
	const void *vtable = *(const void *const *)node, *seen;
	uint64_t generation = gmt_generation(), id;

	for (uint32_t i = 0; i < TRIES; i++) {
		struct node_name *n = &names[(((uintptr_t)vtable >> 4) + i) % NAMES];

		seen = __atomic_load_n(&n->vtable, __ATOMIC_RELAXED);
		if (!seen && __atomic_compare_exchange_n(&n->vtable, &seen, vtable, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			seen = vtable;
		if (seen != vtable)
			continue;
		id = __atomic_load_n(&n->id, __ATOMIC_ACQUIRE);
		if (OS_LIKELY(id && id >> 32 == generation))
			return (uint32_t)id;
		id = generation << 32 | look_up(vtable);
		__atomic_store_n(&n->id, id, __ATOMIC_RELEASE);
		return (uint32_t)id;
	}
	return look_up(vtable);
}

void torch_node_now(struct gmt_event *e)
{
	thread_node_now(thread_self(), (uintptr_t)__builtin_frame_address(0), e);
}

#define EVALUATE \
	_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE

__attribute__((visibility("default"))) void EVALUATE(void *engine, void *task, void *node,
						     void *inputs, void *queue);

void EVALUATE(void *engine, void *task, void *node, void *inputs, void *queue)
{
	static void *cache;
	torch_evaluate *real = (torch_evaluate *)torch_real(&cache, NAME(EVALUATE));
	struct running_node *running = &thread_self()->node, outer = *running;

	if (!torch_tags()) {
		real(engine, task, node, inputs, queue);
		return;
	}
	*running = (struct running_node){
		name_of(node),
		__atomic_add_fetch(&evaluations, 1, __ATOMIC_RELAXED),
		(uintptr_t)__builtin_frame_address(0),
	};
	torch_run_node(real, engine, task, node, inputs, queue);
	*running = outer;
}

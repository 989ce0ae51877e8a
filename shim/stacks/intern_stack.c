/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of stack nodes: 22 MiB, at least 200,000 of them. When it is full, stacks end before
 * the first frame without a node. Any thread; never blocks.
 */
#include "intern_stack.h"

#include "../../format/record.h"
#include "../base/intern.h"

static struct intern_table nodes;
static uint64_t cut;

static bool define_node(struct thread *t, uint32_t id, uint32_t parent, enum gmt_frame frame,
			uint64_t value)
{
	struct gmt_def_stack payload = { .value = value, .parent = parent, .frame = frame };
	struct gmt_def d = {
		.kind = GMT_DEF_STACK,
		.id = id,
		.len = sizeof(payload),
		.payload = &payload,
	};

	return thread_push_def(t, &d);
}

uint32_t stack_node(struct thread *t, uint32_t parent, enum gmt_frame frame, uint64_t value)
{
	uint64_t b = (uint64_t)parent << 8 | frame;
	struct intern_entry *claimed;
	uint32_t id = intern_find(&nodes, intern_mix(value + intern_mix(b)), value, b,
				  intern_same_words, &claimed);

	if (OS_LIKELY(id != 0))
		return id;
	if (OS_UNLIKELY(!claimed)) {
		__atomic_add_fetch(&cut, 1, __ATOMIC_RELAXED);
		return 0;
	}
	id = intern_new_id(&nodes);
	if (!define_node(t, id, parent, frame, value))
		id = INTERN_DEAD;
	intern_publish(claimed, value, b, id);
	return id == INTERN_DEAD ? 0 : id;
}

uint64_t stack_nodes(void)
{
	return __atomic_load_n(&nodes.last_id, __ATOMIC_RELAXED);
}

uint64_t stack_nodes_cut(void)
{
	return __atomic_load_n(&cut, __ATOMIC_RELAXED);
}

struct native_each {
	void (*fn)(void *ctx, uint64_t address);
	void *ctx;
};

static void if_native(void *ctx, const struct intern_entry *e)
{
	const struct native_each *each = ctx;

	if ((e->b & 0xff) == GMT_FRAME_NATIVE)
		each->fn(each->ctx, e->a);
}

void stack_native_each(void (*fn)(void *ctx, uint64_t address), void *ctx)
{
	intern_each(&nodes, if_native, &(struct native_each){ fn, ctx });
}

void stack_nodes_forget(void)
{
	intern_forget(&nodes);
	cut = 0;
}

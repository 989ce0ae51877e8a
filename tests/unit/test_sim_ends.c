/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device: when memory begins and ends that is not one call's. Graphs with allocation
 * nodes at each of their launches, imported handles, and what contexts take with them.
 *
 * links: simgpu/core/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../simgpu/core/devices.h"
#include "../../simgpu/core/memory.h"
#include "../../simgpu/core/work.h"

#define MIB ((size_t)1 << 20)

enum { GRAPH_USED, GRAPH_USED_HIGH, GRAPH_RESERVED, GRAPH_RESERVED_HIGH };

static size_t in_use(void)
{
	size_t f, t;

	sim_mem_info(0, &f, &t);
	return t - f;
}

static int start(void **state)
{
	(void)state;
	setenv("SIMGPU_CARD", "small=256MiB", 1);
	return sim_enter();
}

/* ---- graphs ---- */

static uintptr_t add_alloc(struct sim_graph *g, size_t bytes)
{
	struct node_spec spec;

	assert_int_equal(graph_allocates(g, 0, bytes, &spec), SIM_OK);
	assert_int_equal(graph_add(g, &spec, NULL, 0, NULL), SIM_OK);
	return spec.addr;
}

static void add_free(struct sim_graph *g, uintptr_t addr)
{
	struct node_spec spec;

	assert_int_equal(graph_frees(g, addr, &spec), SIM_OK);
	assert_int_equal(graph_add(g, &spec, NULL, 0, NULL), SIM_OK);
}

static uint64_t attribute(int which)
{
	uint64_t value = 0;

	assert_int_equal(graph_memory_get(0, which, &value), SIM_OK);
	return value;
}

static void each_launch_allocates(void **state)
{
	struct sim_graph *g;
	size_t before = in_use();
	uintptr_t a;
	void *e, *second;

	(void)state;
	graph_create(&g);
	a = add_alloc(g, 8 * MIB);
	assert_int_equal(in_use(), before);
	assert_int_equal(sim_ptr_device((void *)a), -1);
	assert_int_equal(memory_free(a), SIM_INVALID); /* nothing is there yet */
	assert_int_equal(graph_instantiate(&e, g, 0), SIM_OK);
	assert_int_equal(graph_instantiate(&second, g, 0), SIM_INVALID);
	before = in_use(); /* with the node */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(graph_launch(e, NULL), SIM_OK);
		assert_int_equal(in_use() - before, 8 * MIB);
		assert_int_equal(sim_ptr_device((void *)a), 0);
		assert_int_equal(attribute(GRAPH_USED), 8 * MIB);
		assert_int_equal(graph_launch(e, NULL), SIM_INVALID); /* not freed yet */
		assert_int_equal(memory_free(a + 512), SIM_INVALID);
		assert_int_equal(memory_free(a), SIM_OK);
		assert_int_equal(memory_free(a), SIM_INVALID);
		assert_int_equal(attribute(GRAPH_USED), 0);
		assert_int_equal(attribute(GRAPH_RESERVED), 8 * MIB);
		assert_int_equal(in_use() - before, 8 * MIB); /* the graphs' pool keeps it */
		if (i)
			assert_int_equal(graph_memory_trim(0), SIM_OK);
		assert_int_equal(in_use() - before, i ? 0 : 8 * MIB);
	}
	graph_exec_destroy(e);
	assert_int_equal(graph_instantiate(&e, g, 0), SIM_OK);
	assert_int_equal(graph_launch(e, NULL), SIM_OK);
	graph_exec_destroy(e);
	graph_destroy(g); /* what it allocated stays until it is freed */
	assert_int_equal(attribute(GRAPH_USED), 8 * MIB);
	assert_int_equal(memory_free(a), SIM_OK);
	assert_int_equal(attribute(GRAPH_USED), 0);
	graph_memory_trim(0);
}

static void a_graph_frees_its_own(void **state)
{
	struct sim_graph *g, *other;
	struct node_spec spec;
	uint64_t zero = 0, one = 1;
	uintptr_t a, b, c;
	void *e, *e2;

	(void)state;
	graph_create(&g);
	graph_create(&other);
	a = add_alloc(g, 10 * MIB);
	add_free(g, a);
	b = add_alloc(g, 6 * MIB);
	add_free(g, b);
	c = add_alloc(g, 2 * MIB);
	assert_int_equal(graph_frees(g, a, &spec), SIM_INVALID);
	assert_int_equal(graph_frees(other, a, &spec), SIM_INVALID);
	assert_int_equal(graph_frees(other, c + 1, &spec), SIM_INVALID);
	add_free(other, c);
	graph_instantiate(&e, g, 0);
	graph_instantiate(&e2, other, 0);
	assert_int_equal(graph_launch(e2, NULL), SIM_INVALID); /* nothing to free */
	assert_int_equal(graph_memory_set(0, GRAPH_USED_HIGH, &one), SIM_INVALID);
	assert_int_equal(graph_memory_set(0, GRAPH_USED_HIGH, &zero), SIM_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(graph_launch(e, NULL), SIM_OK);
		assert_int_equal(attribute(GRAPH_USED), 2 * MIB);
		assert_int_equal(attribute(GRAPH_RESERVED), 10 * MIB); /* one after the other */
		assert_int_equal(memory_free(a), SIM_INVALID);
		assert_int_equal(graph_launch(e2, NULL), SIM_OK);
		assert_int_equal(attribute(GRAPH_USED), 0);
	}
	assert_int_equal(attribute(GRAPH_USED_HIGH), 10 * MIB);
	graph_exec_destroy(e);
	graph_exec_destroy(e2);
	graph_destroy(g);
	graph_destroy(other);
	graph_memory_trim(0);
	assert_int_equal(attribute(GRAPH_RESERVED), 0);
}

static void a_launch_frees_what_the_last_one_left(void **state)
{
	struct sim_graph *g;
	uintptr_t a;
	void *e;

	(void)state;
	graph_create(&g);
	a = add_alloc(g, 4 * MIB);
	graph_instantiate(&e, g, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(graph_launch(e, NULL), SIM_OK);
		assert_int_equal(attribute(GRAPH_USED), 4 * MIB);
		assert_int_equal(attribute(GRAPH_RESERVED), 4 * MIB);
	}
	assert_int_equal(memory_free(a), SIM_OK);
	graph_exec_destroy(e);
	graph_destroy(g);
	graph_memory_trim(0);
}

static void a_launch_without_room_changes_nothing(void **state)
{
	struct sim_graph *g;
	size_t before, f, t;
	uintptr_t a, all;
	void *e;

	(void)state;
	graph_create(&g);
	a = add_alloc(g, 4 * MIB);
	add_alloc(g, 4 * MIB);
	graph_instantiate(&e, g, 0);
	sim_mem_info(0, &f, &t);
	assert_int_equal(memory_alloc(0, &all, f - 6 * MIB), SIM_OK);
	before = in_use();
	assert_int_equal(graph_launch(e, NULL), SIM_NOMEM);
	assert_int_equal(in_use(), before);
	assert_int_equal(memory_free(a), SIM_INVALID);
	memory_free(all);
	assert_int_equal(graph_launch(e, NULL), SIM_OK);
	memory_reset(0); /* the graphs' memory goes with the rest */
	assert_int_equal(attribute(GRAPH_USED) + attribute(GRAPH_RESERVED), 0);
	assert_int_equal(memory_free(a), SIM_INVALID);
	assert_int_equal(in_use(), 0);
	assert_int_equal(sim_enter(), SIM_OK);
	before = in_use();
	graph_exec_destroy(e);
	graph_destroy(g);
	assert_int_equal(in_use(), before);
}

/* ---- imported handles ---- */

static const unsigned char prop[32];

static void imported_memory_is_the_same_memory(void **state)
{
	size_t before = in_use();
	void *h, *other, *third;
	uintptr_t va;
	int fd;

	(void)state;
	vmm_reserve(&va, 16 * MIB, 0, 0);
	vmm_create(&h, 8 * MIB, 0, false, prop);
	assert_int_equal(vmm_share(&fd, h), SIM_OK);
	assert_int_equal(vmm_import(&other, fd), SIM_OK);
	close(fd);
	assert_int_equal(vmm_share(&fd, other), SIM_OK); /* of an imported one */
	assert_int_equal(vmm_import(&third, fd), SIM_OK);
	assert_int_equal(in_use() - before, 8 * MIB);
	assert_int_equal(vmm_map(va, 8 * MIB, 0, other), SIM_OK);
	assert_int_equal(vmm_release(h), SIM_OK);
	assert_int_equal(vmm_release(other), SIM_OK);
	assert_int_equal(vmm_release(other), SIM_INVALID);
	assert_int_equal(in_use() - before, 8 * MIB); /* mapped, and a third handle */
	assert_int_equal(vmm_unmap(va, 8 * MIB), SIM_OK);
	assert_int_equal(in_use() - before, 8 * MIB);
	assert_int_equal(vmm_release(third), SIM_OK);
	assert_int_equal(in_use(), before);
	assert_int_equal(vmm_import(&other, fd), SIM_OK); /* the descriptor kept it */
	assert_int_equal(in_use() - before, 8 * MIB);
	assert_int_equal(vmm_release(other), SIM_OK);
	assert_int_equal(in_use(), before);
	vmm_unreserve(va, 16 * MIB);
	close(fd);
}

/* ---- contexts ---- */

static void a_context_takes_its_own_memory_along(void **state)
{
	size_t before = in_use();
	uintptr_t of_primary, of_primary_small, x, y;
	struct sim_ctx *a, *b;
	void *managed, *pinned;

	(void)state;
	memory_alloc(0, &of_primary, 4 * MIB);
	memory_alloc(0, &of_primary_small, 512);
	a = ctx_create(0, 0);
	ctx_push(a);
	memory_alloc(0, &x, 8 * MIB);
	memory_alloc(0, &y, 512);
	assert_true(memory_owner(x) == a->id && memory_owner(y) == a->id);
	assert_int_equal(host_alloc(&managed, 2 * MIB, 1, HOST_MANAGED), SIM_OK);
	assert_int_equal(host_alloc(&pinned, 4096, 0, HOST_PINNED), SIM_OK);
	ctx_pop(NULL);
	b = ctx_create(0, 0);
	ctx_push(b);
	memory_alloc(0, &x, 16 * MIB);
	ctx_destroy(b); /* of two contexts one ends, and the other's memory stays */
	assert_int_equal(memory_free(x), SIM_INVALID);
	assert_int_equal(in_use() - before,
			 4 * MIB + 2 * MIB + sim_card()->context + 8 * MIB + 2 * MIB + 2 * MIB);
	assert_true(host_find(managed, &(struct host_range){ 0 }));
	ctx_destroy(a);
	assert_false(host_find(managed, &(struct host_range){ 0 }));
	assert_false(host_find(pinned, &(struct host_range){ 0 }));
	assert_null(ctx_check(a));
	assert_int_equal(in_use() - before, 4 * MIB + 2 * MIB);
	assert_int_equal(memory_free(of_primary) + memory_free(of_primary_small), SIM_OK);
	assert_int_equal(in_use(), before);
}

static void a_reset_leaves_other_contexts_alone(void **state)
{
	struct sim_ctx *a;
	uintptr_t x, y;

	(void)state;
	memory_alloc(0, &x, 4 * MIB);
	a = ctx_create(0, 0);
	ctx_push(a);
	memory_alloc(0, &y, 8 * MIB);
	memory_reset(0);
	assert_int_equal(in_use(), sim_card()->context + 8 * MIB);
	assert_int_equal(memory_free(x), SIM_INVALID);
	assert_int_equal(memory_free(y), SIM_OK);
	ctx_destroy(a);
	assert_int_equal(in_use(), 0);
	assert_int_equal(sim_enter_driver(), 709);
	assert_int_equal(sim_enter(), SIM_OK); /* the runtime makes it anew */
	assert_int_equal(sim_enter_driver(), SIM_OK);
	assert_int_equal(in_use(), sim_card()->context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_launch_allocates),
		cmocka_unit_test(a_graph_frees_its_own),
		cmocka_unit_test(a_launch_frees_what_the_last_one_left),
		cmocka_unit_test(a_launch_without_room_changes_nothing),
		cmocka_unit_test(imported_memory_is_the_same_memory),
		cmocka_unit_test(a_context_takes_its_own_memory_along),
		cmocka_unit_test(a_reset_leaves_other_contexts_alone),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}

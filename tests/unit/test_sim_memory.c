/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device's memory: slots against a plain array, allocations against a list of ranges,
 * capacity, pages of 2 MiB, and what a wrong free says.
 *
 * links: simgpu/core/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../simgpu/core/devices.h"
#include "../../simgpu/core/memory.h"

#define MIB ((size_t)1 << 20)

static size_t free_bytes(void)
{
	size_t f, t;

	sim_mem_info(0, &f, &t);
	return f;
}

static int start(void **state)
{
	(void)state;
	setenv("SIMGPU_CARD", "small=256MiB", 1);
	return sim_enter();
}

/* Slots: a plain array of bytes does the same by looking at every slot. */
static void slots_agree_with_an_array(void **state)
{
	enum { N = 700 };
	static int owner[N];
	struct slots s;
	unsigned int seed = 1;

	(void)state;
	assert_true(slots_init(&s, N));
	for (int round = 1; round < 20000; round++) {
		size_t count = 1 + rand_r(&seed) % 90, at = rand_r(&seed) % N, want = SLOTS_NONE;

		if (rand_r(&seed) % 2) {
			for (size_t i = 0, run = 0; i < N && want == SLOTS_NONE; i++) {
				run = owner[i] ? 0 : run + 1;
				if (run == count)
					want = i + 1 - count;
			}
			assert_int_equal(slots_take(&s, count, 1, round), want);
			for (size_t i = 0; want != SLOTS_NONE && i < count; i++)
				owner[want + i] = round;
			continue;
		}
		for (want = at; owner[at] && want && owner[want - 1] == owner[at];)
			want--;
		assert_int_equal(slots_find(&s, at), owner[at] ? want : SLOTS_NONE);
		if (!owner[at] || want != at) {
			assert_int_equal(slots_give(&s, at), 0);
			continue;
		}
		assert_int_equal(s.bytes[at], owner[at]);
		count = slots_give(&s, at);
		for (int mine = owner[at]; at < N && owner[at] == mine; at++, count--)
			owner[at] = 0;
		assert_int_equal(count, 0);
	}
	slots_done(&s);
}

static void small_ones_share_pages(void **state)
{
	size_t before = free_bytes();
	uintptr_t a, b, c;

	(void)state;
	assert_int_equal(memory_alloc(0, &a, 1), SIM_OK);
	assert_int_equal(before - free_bytes(), 2 * MIB);
	assert_int_equal(memory_alloc(0, &b, 513), SIM_OK);
	assert_int_equal(memory_alloc(0, &c, 1 * MIB), SIM_OK);
	assert_int_equal(before - free_bytes(), 2 * MIB);
	assert_int_equal(a % 512 + b % 512 + c % 512, 0);
	assert_int_equal(b - a, 512);
	assert_int_equal(c - b, 1024);
	assert_int_equal(memory_free(a) + memory_free(b), 0);
	assert_int_equal(before - free_bytes(), 2 * MIB);
	assert_int_equal(memory_free(c), SIM_OK);
	assert_int_equal(free_bytes(), before);
}

static void large_ones_take_whole_pages(void **state)
{
	size_t before = free_bytes();
	uintptr_t a;

	(void)state;
	assert_int_equal(memory_alloc(0, &a, 4 * MIB + 1), SIM_OK);
	assert_int_equal(before - free_bytes(), 6 * MIB);
	assert_int_equal(a % SIM_PAGE, 0);
	assert_int_equal(memory_free(a), SIM_OK);
	assert_int_equal(free_bytes(), before);
}

static void wrong_frees_are_refused(void **state)
{
	uintptr_t a, small;

	(void)state;
	memory_alloc(0, &a, 8 * MIB);
	memory_alloc(0, &small, 4096);
	assert_int_equal(memory_free(a + 512), SIM_INVALID);
	assert_int_equal(memory_free(small + 512), SIM_INVALID);
	assert_int_equal(memory_free((uintptr_t)&a), SIM_INVALID);
	assert_int_equal(memory_free(a), SIM_OK);
	assert_int_equal(memory_free(a), SIM_INVALID);
	assert_int_equal(memory_free(small), SIM_OK);
	assert_int_equal(memory_free(small), SIM_INVALID);
}

static void capacity_is_kept(void **state)
{
	size_t n = 0, before = free_bytes();
	uintptr_t p[512], extra;

	(void)state;
	assert_int_equal(memory_alloc(0, &extra, before + 1), SIM_NOMEM);
	while (memory_alloc(0, &p[n], 3 * MIB) == SIM_OK)
		n++;
	assert_int_equal(n, before / (4 * MIB));
	/* Every second one goes: pages need not lie together, so one of half the memory fits. */
	for (size_t i = 0; i < n; i += 2)
		assert_int_equal(memory_free(p[i]), SIM_OK);
	assert_int_equal(memory_alloc(0, &extra, free_bytes()), SIM_OK);
	assert_int_equal(free_bytes(), 0);
	assert_int_equal(memory_alloc(0, &p[0], 1), SIM_NOMEM);
	memory_free(extra);
	for (size_t i = 1; i < n; i += 2)
		assert_int_equal(memory_free(p[i]), SIM_OK);
	assert_int_equal(free_bytes(), before);
}

/* Live ranges never overlap, and every address inside one is found to belong to it. */
static void random_blocks_never_overlap(void **state)
{
	enum { N = 300 };
	static struct {
		uintptr_t base;
		size_t bytes;
	} live[N];
	size_t before = free_bytes();
	unsigned int seed = 3;
	struct block b;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		int i = rand_r(&seed) % N;

		if (live[i].base) {
			assert_true(block_find(live[i].base + live[i].bytes - 1, &b));
			assert_int_equal(b.base, live[i].base);
			assert_int_equal(b.bytes, live[i].bytes);
			assert_int_equal(memory_free(live[i].base), SIM_OK);
			live[i].base = 0;
			continue;
		}
		live[i].bytes = 1 + rand_r(&seed) % (rand_r(&seed) % 20 ? 5000 : 3 * MIB);
		if (memory_alloc(0, &live[i].base, live[i].bytes)) {
			live[i].base = 0;
			continue;
		}
		for (int j = 0; j < N; j++)
			assert_true(j == i || !live[j].base ||
				    live[j].base + live[j].bytes <= live[i].base ||
				    live[i].base + live[i].bytes <= live[j].base);
	}
	for (int i = 0; i < N; i++)
		if (live[i].base)
			memory_free(live[i].base);
	assert_int_equal(free_bytes(), before);
}

/* ---- virtual memory ---- */

static const unsigned char prop[32];

static void physical_memory_outlives_its_handle(void **state)
{
	size_t before = free_bytes();
	uintptr_t va;
	void *h;

	(void)state;
	assert_int_equal(vmm_create(&h, 4 * MIB, 0, false, prop), SIM_OK);
	assert_int_equal(before - free_bytes(), 4 * MIB);
	assert_int_equal(vmm_reserve(&va, 64 * MIB, 0, 0), SIM_OK);
	assert_int_equal(before - free_bytes(), 4 * MIB);
	assert_int_equal(vmm_map(va + 2 * MIB, 4 * MIB, 0, h), SIM_OK);
	assert_int_equal(vmm_release(h), SIM_OK);
	assert_int_equal(before - free_bytes(), 4 * MIB);
	assert_int_equal(vmm_unreserve(va, 64 * MIB), SIM_INVALID); /* still mapped */
	assert_int_equal(vmm_unmap(va + 2 * MIB, 4 * MIB), SIM_OK);
	assert_int_equal(free_bytes(), before);
	assert_int_equal(vmm_unreserve(va, 64 * MIB), SIM_OK);
	assert_int_equal(vmm_unreserve(va, 64 * MIB), SIM_INVALID);
}

static void handles_are_counted(void **state)
{
	size_t before = free_bytes();
	void *h, *again;
	uintptr_t va;

	(void)state;
	vmm_create(&h, 2 * MIB, 0, false, prop);
	vmm_reserve(&va, 4 * MIB, 0, 0);
	assert_int_equal(vmm_map(va, 2 * MIB, 0, h), SIM_OK);
	assert_int_equal(vmm_map(va + 2 * MIB, 2 * MIB, 0, h), SIM_OK); /* twice: taken once */
	assert_int_equal(before - free_bytes(), 2 * MIB);
	assert_int_equal(vmm_retain(&again, va + 3 * MIB), SIM_OK);
	assert_ptr_equal(again, h);
	assert_int_equal(vmm_unmap(va, 4 * MIB), SIM_OK);
	assert_int_equal(vmm_release(h), SIM_OK);
	assert_int_equal(before - free_bytes(), 2 * MIB);
	assert_int_equal(vmm_release(again), SIM_OK);
	assert_int_equal(free_bytes(), before);
	vmm_unreserve(va, 4 * MIB);
}

static void wrong_mappings_are_refused(void **state)
{
	size_t before = free_bytes();
	int access;
	uintptr_t va;
	void *h;

	(void)state;
	assert_int_equal(vmm_create(&h, MIB, 0, false, prop), SIM_INVALID);
	assert_int_equal(vmm_create(&h, 2 * MIB, 7, false, prop), SIM_BAD_DEVICE);
	assert_int_equal(vmm_create(&h, before + 2 * MIB, 0, false, prop), SIM_NOMEM);
	vmm_create(&h, 4 * MIB, 0, false, prop);
	vmm_reserve(&va, 8 * MIB, 0, 0);
	assert_int_equal(vmm_map(va, 8 * MIB, 0, h), SIM_INVALID); /* more than there is */
	assert_int_equal(vmm_map(va + 6 * MIB, 4 * MIB, 0, h), SIM_INVALID); /* over the end */
	assert_int_equal(vmm_map(va, 4 * MIB, 0, h), SIM_OK);
	assert_int_equal(vmm_map(va, 4 * MIB, 0, h), SIM_INVALID); /* taken */
	assert_int_equal(vmm_unmap(va, 2 * MIB), SIM_INVALID);	   /* half of it */
	assert_int_equal(vmm_set_access(va, 8 * MIB, 0, 3), SIM_INVALID);
	assert_int_equal(vmm_set_access(va, 4 * MIB, 0, 3), SIM_OK);
	assert_int_equal(vmm_get_access(va + 1, 0, &access), SIM_OK);
	assert_int_equal(access, 3);
	assert_int_equal(vmm_unmap(va, 4 * MIB), SIM_OK);
	assert_int_equal(vmm_unmap(va, 4 * MIB), SIM_INVALID);
	vmm_release(h);
	vmm_unreserve(va, 8 * MIB);
	assert_int_equal(free_bytes(), before);
}

/* ---- pools ---- */

static uint64_t attribute(struct sim_pool *p, int which)
{
	uint64_t value = 0;

	assert_int_equal(pool_get(p, which, &value), SIM_OK);
	return value;
}

enum { THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

static void pools_give_back_at_a_synchronization(void **state)
{
	struct sim_pool *p = pool_default(0);
	size_t before = free_bytes();
	uint64_t keep = 32 * MIB, zero = 0;
	uintptr_t a, b;

	(void)state;
	assert_int_equal(pool_alloc(p, &a, 1000), SIM_OK);
	assert_int_equal(pool_alloc(p, &b, 40 * MIB), SIM_OK);
	assert_int_equal(attribute(p, USED), 1024 + 40 * MIB);
	assert_int_equal(attribute(p, RESERVED), 32 * MIB + 64 * MIB);
	assert_int_equal(before - free_bytes(), 96 * MIB);
	assert_int_equal(memory_free(a) + memory_free(b), SIM_OK);
	assert_int_equal(attribute(p, USED), 0);
	assert_int_equal(before - free_bytes(), 96 * MIB);
	pool_set(p, THRESHOLD, &keep);
	pools_sync(0);
	assert_int_equal(attribute(p, RESERVED), 32 * MIB);
	pool_set(p, THRESHOLD, &zero);
	pools_sync(0);
	assert_int_equal(free_bytes(), before);
	assert_int_equal(attribute(p, RESERVED_HIGH), 96 * MIB);
	assert_int_equal(attribute(p, USED_HIGH), 1024 + 40 * MIB);
	pool_set(p, USED_HIGH, &zero);
	assert_int_equal(attribute(p, USED_HIGH), 0);
}

static void a_full_device_takes_what_pools_hold(void **state)
{
	struct sim_pool *p;
	size_t before = free_bytes();
	uint64_t all = ~0ull;
	uintptr_t a;

	(void)state;
	assert_int_equal(pool_create(&p, 0, 0), SIM_OK);
	pool_set(p, THRESHOLD, &all);
	assert_int_equal(pool_alloc(p, &a, 100 * MIB), SIM_OK);
	memory_free(a);
	pools_sync(0);
	assert_true(free_bytes() < before);
	assert_int_equal(memory_alloc(0, &a, before), SIM_OK);
	memory_free(a);
	assert_int_equal(pool_alloc(p, &a, 100), SIM_OK);
	assert_int_equal(pool_destroy(p), SIM_OK); /* lives on until its last block goes */
	assert_int_equal(memory_free(a), SIM_OK);
	assert_int_equal(free_bytes(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_agree_with_an_array),
		cmocka_unit_test(small_ones_share_pages),
		cmocka_unit_test(large_ones_take_whole_pages),
		cmocka_unit_test(wrong_frees_are_refused),
		cmocka_unit_test(capacity_is_kept),
		cmocka_unit_test(random_blocks_never_overlap),
		cmocka_unit_test(physical_memory_outlives_its_handle),
		cmocka_unit_test(handles_are_counted),
		cmocka_unit_test(wrong_mappings_are_refused),
		cmocka_unit_test(pools_give_back_at_a_synchronization),
		cmocka_unit_test(a_full_device_takes_what_pools_hold),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of native stacks while objects are loaded and unloaded, and in many threads at once.
 *
 * links: shim/base/ shim/rings/ shim/stacks/ shim/recording/
 *
 * links: shim/process.c shim/bus.c shim/confine.c shim/leave.c shim/cuda/nvtx.c
 * links: shim/cuda/resolve.c
 * links: tests/unit/walks.c
 */
#include "../../shim/stacks/modules.h"
#include "walks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/gmt-frames-XXXXXX";

/* An object with one function, `through`, that calls back from the same place in it whatever the
 * size of its frame. */
static void build(int size)
{
	char command[600];

	snprintf(command, sizeof(command),
		 "cd %s && printf '%%s\\n' .text '.globl through' '.type through,@function'"
		 " through: .cfi_startproc 'subq $%d,%%rsp' '.cfi_adjust_cfa_offset %d'"
		 " 'call *%%rdi' 'addq $%d,%%rsp' '.cfi_adjust_cfa_offset -%d' ret .cfi_endproc"
		 " '.size through,.-through' '.section .note.GNU-stack' > %d.s &&"
		 " cc -shared -nostdlib -o %d.so %d.s",
		 folder, size, size, size, size, size, size, size);
	assert_int_equal(system(command), 0);
}

/* The frame of `through` and no other is between this one and the callback's. libunwind's rules
 * outlive the object, so it cannot judge. */
static void expect_one_more(const struct walk *direct, uintptr_t ip)
{
	int n = direct->count;

	assert_int_equal(my.last.count, n + 1);
	assert_int_equal(my.last.frames[n - 1].ip, ip);
	for (int i = 0; i < n - 2; i++)
		assert_int_equal(my.last.frames[i].ip, direct->frames[i].ip);
}

#define AFTER_ITS_CALL 6

static NOINLINE uintptr_t call_through(int size)
{
	static struct walk direct;
	char path[64];
	void (*through)(void (*)(void));
	void *object;

	snprintf(path, sizeof(path), "%s/%d.so", folder, size);
	object = dlopen(path, RTLD_NOW);
	assert_non_null(object);
	through = (void (*)(void (*)(void)))dlsym(object, "through");
	walk_both_ways();
	direct = my.last;
	through(walk_both_ways);
	expect_one_more(&direct, (uintptr_t)through + AFTER_ITS_CALL);
	modules_unload_begins(); /* as our dlclose does */
	dlclose(object);
	modules_unload_ends();
	return (uintptr_t)through;
}

static void test_another_object_in_the_same_place(void **state)
{
	int again = 0;

	(void)state;
	begin();
	assert_non_null(mkdtemp(folder));
	build(24);
	build(104);
	for (int i = 0; i < 40; i++) {
		uintptr_t first = call_through(24);

		again += call_through(104) == first;
	}
	assert_int_equal(my.asked, 0);
	assert_true(again > 0);
}

static void *run_thread(void *seed)
{
	begin();
	my.random = (uintptr_t)seed;
#ifdef __SANITIZE_THREAD__
	my.alone = true; /* what libunwind does at a thread's end is too late for the sanitizer */
#endif
	for (int i = 0; i < 300; i++)
		any((int)chance(30));
	return (void *)(uintptr_t)(my.wrong + (my.walks < 1000));
}

/* Threads with stacks at the addresses of earlier ones; objects come and go meanwhile. */
static void test_threads(void **state)
{
	pthread_t threads[4];
	void *wrong;

	(void)state;
	begin();
	for (int round = 0; round < 4; round++) {
		for (uintptr_t i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, run_thread,
							(void *)(i + 10 * (uintptr_t)round)),
					 0);
		for (int i = 0; i < 10; i++)
			call_through(24);
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], &wrong);
			assert_null(wrong);
		}
	}
}

static int take_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_object_in_the_same_place),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, find_libunwind, take_down);
}

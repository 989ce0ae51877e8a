/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What transfers leave in the simulated device's memory.
 *
 * links: simgpu/core/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "../../simgpu/core/contents.h"
#include "../../simgpu/core/devices.h"
#include "../../simgpu/core/work.h"

#define MIB ((size_t)1 << 20)

static int start(void **state)
{
	(void)state;
	setenv("SIMGPU_CARD", "small=2GiB", 1);
	return sim_enter();
}

static void small_things_come_back(void **state)
{
	int in[200], out[200], other[200];
	void *p, *q;

	(void)state;
	for (int i = 0; i < 200; i++)
		in[i] = i + 1;
	sim_alloc(&p, 1 << 20);
	sim_alloc(&q, 1 << 20);
	sim_copy(p, in, sizeof(in));
	sim_copy(out, p, sizeof(out));
	assert_memory_equal(in, out, sizeof(in));
	/* A part of it, and moved on the device. */
	sim_copy(out, (char *)p + 100 * sizeof(int), 4);
	assert_int_equal(out[0], 101);
	sim_copy((char *)q + 12, p, sizeof(in));
	sim_copy(other, (char *)q + 12, sizeof(in));
	assert_memory_equal(in, other, sizeof(in));
	sim_fill(p, 0x7f, 400);
	sim_copy(out, p, 404);
	assert_int_equal(out[99], 0x7f7f7f7f);
	assert_int_equal(out[100], 101);
	sim_free(p);
	sim_free(q);
}

static void what_a_kernel_was_given_reads_as_zero(void **state)
{
	static void *p; /* not on the stack, where it would be found */
	void *struct_arg[3] = { NULL, NULL, NULL };
	int in = 1 << 20, out = -1, count = 7;
	void *args[] = { &count, struct_arg };

	(void)state;
	sim_alloc(&p, 1 << 20);
	sim_copy(p, &in, sizeof(in));
	launch_kernel(NULL, args, 1, 1, 0);
	sim_copy(&out, p, sizeof(out));
	assert_int_equal(out, 1 << 20); /* not given to that one */
	struct_arg[2] = p;
	launch_kernel(NULL, args, 1, 1, 0);
	sim_copy(&out, p, sizeof(out));
	assert_int_equal(out, 0);
	sim_free(p);
}

/* Counts that an engine reads back after a kernel corrected them in place, of 4 and of 8 bytes.
 * Some launches later it is something else's memory. */
static void counts_are_kept_for_a_while(void **state)
{
	int *p;
	int64_t *q;
	void *args[] = { &p, &q }, *none[] = { NULL };
	int ones[3] = { 1, 1, 1 }, out[3];
	int64_t wide[2] = { 5, 5 }, wide_out[2];

	(void)state;
	sim_alloc((void **)&p, 1 << 20);
	sim_alloc((void **)&q, 1 << 20);
	contents_write(p, ones, sizeof(ones), true); /* as a computed kernel does */
	contents_write(q, wide, sizeof(wide), true);
	for (int i = 0; i < 40; i++) {
		launch_kernel(NULL, i < 4 || i == 39 ? args : none, 1, 1, 0);
		sim_copy(out, p, sizeof(out));
		sim_copy(wide_out, q, sizeof(wide_out));
		assert_int_equal(out[2], i < 39);
		assert_int_equal(wide_out[1], i < 39 ? 5 : 0);
		assert_int_equal(contents_least((uintptr_t)p, sizeof(out)),
				 i < 39 ? CONTENTS_KEPT : CONTENTS_UNKNOWN);
	}
	sim_free(p);
	sim_free(q);
}

/* Lengths that the host copied: other numbers, and zeros. Large numbers are no lengths. */
static void copied_lengths_are_kept_for_a_while(void **state)
{
	int *p, lengths[4] = { 50, 0, 51, 65535 }, large[4] = { 50, 70000, 1, 1 }, out[4];
	void *args[] = { &p }, *none[] = { NULL };

	(void)state;
	sim_alloc((void **)&p, 1 << 20);
	for (int i = 0; i < 200; i++) {
		if (i % 100 == 0)
			sim_copy(p, i ? large : lengths, sizeof(lengths));
		launch_kernel(NULL, i % 20 ? none : args, 1, 1, 0);
		sim_copy(out, p, sizeof(out));
		assert_int_equal(out[2], i < 80 ? 51 : 0);
		assert_int_equal(contents_least((uintptr_t)p, sizeof(out)),
				 i < 80 ? CONTENTS_KEPT : CONTENTS_UNKNOWN);
	}
	sim_free(p);
}

static void freed_memory_forgets(void **state)
{
	int in = 42, out = -1;
	void *p, *again;

	(void)state;
	sim_alloc(&p, 4 << 20);
	sim_copy((char *)p + (3 << 20), &in, sizeof(in));
	sim_free(p);
	sim_alloc(&again, 4 << 20);
	assert_ptr_equal(again, p);
	sim_copy(&out, (char *)p + (3 << 20), sizeof(out));
	assert_int_equal(out, 0);
	sim_free(again);
}

/* ---- any size ---- */

static unsigned char *some_bytes(size_t n, unsigned int seed)
{
	unsigned char *p = malloc(n);

	for (size_t i = 0; p && i < n; i++)
		p[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
	return p;
}

static int64_t *some_indices(size_t n)
{
	int64_t *p = malloc(n * sizeof(*p));

	for (size_t i = 0; p && i < n; i++)
		p[i] = (int64_t)(i * 7919 % 100003);
	return p;
}

static void check_bytes(const void *device, const void *expected, size_t bytes)
{
	void *out = malloc(bytes);

	memset(out, 0x55, bytes);
	sim_copy(out, device, bytes);
	assert_memory_equal(out, expected, bytes);
	free(out);
}

static void check_zero(const void *device, size_t bytes)
{
	void *zeros = calloc(1, bytes);

	check_bytes(device, zeros, bytes);
	free(zeros);
}

static void a_generators_state_comes_back(void **state)
{
	unsigned char *in = some_bytes(5056, 1);
	void *p, *q;

	(void)state;
	sim_alloc(&p, 5056);
	sim_alloc(&q, 5056);
	sim_copy(p, in, 5056);
	check_bytes(p, in, 5056);
	sim_copy(q, p, 5056);
	check_bytes(q, in, 5056);
	check_bytes((char *)q + 4000, in + 4000, 1056);
	sim_free(p);
	check_bytes(q, in, 5056);
	sim_free(q);
	free(in);
}

static void indices_of_many_pages_come_back(void **state)
{
	size_t n = 3 * MIB, bytes = n * sizeof(int64_t);
	int64_t *in = some_indices(n);
	char *p, *q;

	(void)state;
	sim_alloc((void **)&p, bytes);
	sim_alloc((void **)&q, bytes + 512);
	sim_copy(p, in, bytes);
	check_bytes(p, in, bytes);
	sim_copy(q + 512, p, bytes);
	check_bytes(q + 512, in, bytes);
	/* Written to in one of them: the other has what it had. */
	in[5] = 99;
	sim_copy(q + 512 + 5 * 8, &in[5], 8);
	check_bytes(q + 512, in, bytes);
	in[5] = 5 * 7919;
	check_bytes(p, in, bytes);
	sim_free(p);
	sim_free(q);
	free(in);
}

static void a_result_is_forgotten_as_a_whole(void **state)
{
	size_t n = MIB / 2, bytes = n * sizeof(int64_t);
	int64_t *in = some_indices(n), mark = 7;
	char *p;

	(void)state;
	sim_alloc((void **)&p, bytes + MIB);
	sim_copy(p, in, bytes);
	sim_copy(p + bytes, &mark, sizeof(mark));
	sim_copy(p + 3 * MIB + 8, &mark, sizeof(mark)); /* in the midst of it */
	sim_forget(p + MIB);
	check_bytes(p, in, MIB);
	check_zero(p + MIB, bytes - MIB);
	check_bytes(p + bytes, &mark, sizeof(mark)); /* of another transfer */
	/* Of known length, no more than that. */
	sim_copy(p, in, bytes);
	contents_forget((uintptr_t)p, 1000);
	memset(in, 0, 1000);
	check_bytes(p, in, bytes);
	sim_free(p);
	free(in);
}

static void fills_cost_nothing(void **state)
{
	struct timespec a, b;
	uint32_t out[3];
	char *p;

	(void)state;
	sim_alloc((void **)&p, 1024 * MIB);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < 100; i++)
		sim_fill(p, i, 1024 * MIB);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	assert_true(b.tv_sec - a.tv_sec < 2); /* 100 GiB by memset: more than 10 s */
	sim_copy(out, p + 777 * MIB, sizeof(out));
	assert_int_equal(out[2], 0x63636363);
	sim_fill_pattern(p + 4, 0x01020304, 4, 100 * MIB);
	sim_copy(p + 500 * MIB + 1, p + 6, 50 * MIB);
	sim_copy(out, p + 510 * MIB + 1, sizeof(out));
	assert_int_equal(out[1], 0x03040102);
	sim_copy(out, p, sizeof(out));
	assert_int_equal(out[0], 0x63636363);
	assert_int_equal(out[1], 0x01020304);
	sim_free(p);
}

static void batches_of_images_are_not_kept(void **state)
{
	size_t bytes = 2 * MIB;
	unsigned char *images = some_bytes(bytes, 4);
	char *p;

	(void)state;
	sim_alloc((void **)&p, bytes);
	sim_fill(p, 1, bytes);
	sim_copy(p, images, bytes);
	check_zero(p, bytes);
	sim_free(p);
	free(images);
}

static void the_least_used_goes_first_and_indices_last(void **state)
{
	size_t bytes = MIB;
	int64_t *indices = some_indices(bytes / 8), flag = 3;
	unsigned char *images = some_bytes(bytes, 2);
	char *p;

	(void)state;
	sim_alloc((void **)&p, 100 * bytes);
	sim_copy(p, indices, bytes);
	sim_copy(p + bytes, &flag, sizeof(flag));
	for (int i = 2; i < 100; i++)
		sim_copy(p + i * bytes, images, bytes);
	check_bytes(p, indices, bytes);
	check_bytes(p + bytes, &flag, sizeof(flag));
	check_bytes(p + 99 * bytes, images, bytes);
	check_zero(p + 2 * bytes, bytes);
	sim_free(p);
	free(indices);
	free(images);
}

/* ---- against a plain model ---- */

#define SPAN (5 * MIB)

static unsigned char model[SPAN], known[SPAN];

static size_t any_size(void)
{
	static const size_t most[] = { 16, 600, 5000, 300000, 3 * MIB };

	return (size_t)rand() % most[rand() % 5] + 1;
}

static void write_both(char *p, size_t at, size_t n, const unsigned char *in)
{
	unsigned char *states = malloc(n);
	int how = n <= 16 ? rand() % 4 : n <= MIB ? rand() % 3 : rand() % 2 + 1;

	memset(states, CONTENTS_KNOWN, n);
	if (how == 0) {
		sim_copy(p + at, in, n);
	} else if (how == 1) {
		for (size_t i = 0; i < n; i++)
			states[i] = (unsigned char)(i / 700 % 3);
		contents_store(p + at, in, states, n);
	} else if (how == 2) {
		sim_fill(p + at, 9, n);
	} else {
		contents_write(p + at, in, n, true);
	}
	for (size_t i = 0; i < n; i++) {
		model[at + i] = how == 2 ? 9 : states[i] ? in[i] : 0;
		known[at + i] = states[i];
	}
	free(states);
}

static void move_both(char *p, size_t at, size_t n)
{
	size_t to = (size_t)rand() % (SPAN - n);

	if (!known[at] || (to < at + n && at < to + n))
		return;
	sim_copy(p + to, p + at, n);
	memmove(model + to, model + at, n);
	memmove(known + to, known + at, n);
}

static void check_both(const char *p, size_t at, size_t n)
{
	unsigned char *data = malloc(n), *states = malloc(n);

	contents_read(p + at, data, states, n);
	if (known[at]) {
		assert_memory_equal(data, model + at, n);
		assert_memory_equal(states, known + at, n);
	}
	for (size_t i = 0; i < n; i++)
		if (states[i])
			assert_int_equal(data[i], model[at + i]);
	free(data);
	free(states);
}

static void ranges_hold_what_a_plain_array_holds(void **state)
{
	unsigned char *in = some_bytes(SPAN, 3);
	char *p;

	(void)state;
	sim_alloc((void **)&p, SPAN);
	srand(1);
	for (int i = 0; i < 3000; i++) {
		size_t n = any_size(), at = (size_t)rand() % (SPAN - n);
		int what = rand() % 8;

		if (what < 3) {
			write_both(p, at, n, in);
		} else if (what < 5) {
			move_both(p, at, n);
		} else if (what == 5 && n < 10000) {
			contents_forget((uintptr_t)p + at, n);
			memset(model + at, 0, n);
			memset(known + at, 0, n);
		}
		n = any_size();
		check_both(p, (size_t)rand() % (SPAN - n), n);
	}
	sim_free(p);
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_things_come_back),
		cmocka_unit_test(what_a_kernel_was_given_reads_as_zero),
		cmocka_unit_test(counts_are_kept_for_a_while),
		cmocka_unit_test(copied_lengths_are_kept_for_a_while),
		cmocka_unit_test(freed_memory_forgets),
		cmocka_unit_test(a_generators_state_comes_back),
		cmocka_unit_test(indices_of_many_pages_come_back),
		cmocka_unit_test(a_result_is_forgotten_as_a_whole),
		cmocka_unit_test(fills_cost_nothing),
		cmocka_unit_test(batches_of_images_are_not_kept),
		cmocka_unit_test(the_least_used_goes_first_and_indices_last),
		cmocka_unit_test(ranges_hold_what_a_plain_array_holds),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}

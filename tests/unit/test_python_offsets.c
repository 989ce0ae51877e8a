/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of the interpreter's layout: an unknown version, an interpreter's table that is
 * damaged or of another version, an address where nothing is: no offsets, so no Python stacks, and
 * no crash.
 *
 * links: shim/stacks/python_offsets.c shim/base/os.c shim/base/file.c
 */
#include "../../shim/stacks/python_offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

/* The beginning of _PyRuntime as CPython 3.13.0 (release build, x86-64) exports it, by its word. */
static const struct {
	int word;
	uint64_t value;
} cpython_3_13[] = {
	{ 1, 0x030d00f0 }, { 2, 0 },   { 23, 72 }, { 24, 152 }, { 29, 8 },   { 30, 0 },
	{ 31, 56 },	   { 32, 72 }, { 33, 70 }, { 35, 112 }, { 36, 120 }, { 37, 128 },
	{ 38, 136 },	   { 39, 68 }, { 41, 96 }, { 43, 200 }, { 45, 8 },   { 65, 16 },
	{ 66, 32 },	   { 68, 32 }, { 69, 16 }, { 70, 40 },
};

/* All of it that is read, of CPython 3.14.10 (Debian's build): the interpreter's state is larger
 * than a page. */
static const uint64_t cpython_3_14[] = {
	0,    0x030e0af0, 0,	316616, 784,  808, 225864, 7280, 7272, 7344, 7360, 7408,
	7688, 7672,	  7680, 16,	7784, 0,   7800,   7792, 7992, 0,    832,  0,
	8,    16,	  72,	152,	160,  232, 32,	   88,	 8,    0,    56,   80,
	74,   64,	  0,	216,	112,  120, 128,	   136,	 68,   52,   96,   104,
	208,  0,	  16,	8,	416,  24,  88,	   168,	 40,   32,   16,   40,
	24,   16,	  200,	24,	40,   32,  48,	   32,	 40,   24,   16,   32,
	16,   24,	  40,	16,	32,   64,  32,	   16,	 40,
};

static uint64_t table[96];

static int fill(void **state)
{
	(void)state;
	memset(table, 0, sizeof(table));
	memcpy(table, "xdebugpy", 8);
	for (unsigned i = 0; i < sizeof(cpython_3_13) / sizeof(cpython_3_13[0]); i++)
		table[cpython_3_13[i].word] = cpython_3_13[i].value;
	return 0;
}

/* What the interpreter says of itself is what was verified by hand. */
static void own_table_equals_verified(void **state)
{
	struct python_offsets own, verified;

	(void)state;
	assert_true(python_offsets_for(&own, 13, table));
	assert_true(python_offsets_for(&verified, 13, NULL));
	assert_memory_equal(&own, &verified, sizeof(own));
}

static void of_3_14(void **state)
{
	struct python_offsets o;

	(void)state;
	memcpy(table + 1, cpython_3_14 + 1, sizeof(cpython_3_14) - 8);
	assert_true(python_offsets_for(&o, 14, table));
	assert_int_equal(o.thread_frame, 72);
	assert_int_equal(o.frame_lasti, 56);
	assert_int_equal(o.code_qualname, 128);
	assert_int_equal(o.code_start, 208);
	assert_int_equal(o.str_ascii, 40);
	assert_int_equal(o.tag_mask, 3);
	assert_int_equal(o.frame_variables, 80);
	assert_int_equal(o.code_variables, 96);
	assert_int_equal(o.frame_tlbc, -1);
}

static void versions_without_a_layout(void **state)
{
	struct python_offsets o;

	(void)state;
	assert_false(python_offsets_for(&o, 8, NULL));
	assert_false(python_offsets_for(&o, 14, NULL));
	assert_false(python_offsets_for(&o, 15, table));
	assert_false(python_offsets_for(&o, 14, table));
	for (int minor = 9; minor <= 12; minor++)
		assert_true(python_offsets_for(&o, minor, NULL));
}

static void nothing_there(void **state)
{
	struct python_offsets o;

	(void)state;
	assert_false(python_offsets_for(&o, 13, (void *)16));
}

static void damaged(void **state)
{
	struct python_offsets o;

	(void)state;
	table[0] ^= 1;
	assert_false(python_offsets_for(&o, 13, table));
	fill(NULL);
	table[45] = 100000;
	assert_false(python_offsets_for(&o, 13, table));
	fill(NULL);
	table[69] = 8;
	assert_false(python_offsets_for(&o, 13, table));
	fill(NULL);
	table[70] = 0;
	assert_false(python_offsets_for(&o, 13, table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(own_table_equals_verified, fill),
		cmocka_unit_test_setup(of_3_14, fill),
		cmocka_unit_test_setup(versions_without_a_layout, fill),
		cmocka_unit_test_setup(nothing_there, fill),
		cmocka_unit_test_setup(damaged, fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

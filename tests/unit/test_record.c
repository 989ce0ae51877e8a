/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and numbers: every record has a name of its own, what is unknown says so, and numbers that
 * were once given stay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../format/record.h"

static void names_are_unique(void **state)
{
	unsigned known = 0;

	(void)state;
	for (unsigned a = 0; a < 300; a++) {
		if (gmt_kind_layer(a) == 0) {
			assert_string_equal(gmt_kind_name(a), "?");
			assert_int_equal(gmt_kind_fields(a), 0);
			continue;
		}
		known++;
		assert_true(strlen(gmt_kind_meaning(a)) > 5);
		for (unsigned b = 0; b < a; b++)
			assert_string_not_equal(gmt_kind_name(a), b ? gmt_kind_name(b) : "?");
	}
	assert_true(known >= 31);
}

static void what_is_unknown_says_so(void **state)
{
	(void)state;
	assert_string_equal(gmt_kind_name(0), "?");
	assert_string_equal(gmt_kind_name(UINT32_MAX), "?");
	assert_string_equal(gmt_kind_meaning(59), "?");
	assert_int_equal(gmt_kind_fields(UINT32_MAX), 0);
	assert_int_equal(gmt_kind_layer(UINT32_MAX), 0);
	assert_string_equal(gmt_def_name(0), "?");
	assert_string_equal(gmt_def_name(99), "?");
	assert_string_equal(gmt_mem_name(0), "?");
	assert_string_equal(gmt_mem_name(UINT32_MAX), "?");
	assert_string_equal(gmt_strerror(7777), "unknown error");
}

/* Written down a second time here on purpose: a number that changes breaks every old recording. */
static void numbers_stay(void **state)
{
	(void)state;
	assert_string_equal(gmt_kind_name(1), "block_alloc");
	assert_string_equal(gmt_kind_name(2), "block_free");
	assert_string_equal(gmt_kind_name(10), "mem_alloc");
	assert_string_equal(gmt_kind_name(18), "map");
	assert_string_equal(gmt_kind_name(27), "meminfo");
	assert_string_equal(gmt_kind_name(43), "tag_grad");
	assert_string_equal(gmt_kind_name(50), "range_begin");
	assert_string_equal(gmt_kind_name(62), "end");
	assert_string_equal(gmt_def_name(1), "string");
	assert_string_equal(gmt_def_name(6), "stack");
	assert_string_equal(gmt_mem_name(GMT_MEM_HOST), "pinned host");
	assert_int_equal(F_ADDR, 1);
	assert_int_equal(F_STACK, 256);
}

static void errors_have_sentences_either_way(void **state)
{
	(void)state;
	assert_string_equal(gmt_strerror(GMT_ERR_EMPTY), "empty file");
	assert_string_equal(gmt_strerror(-GMT_ERR_EMPTY), "empty file");
	assert_string_equal(gmt_strerror(0), "no error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(what_is_unknown_says_so),
		cmocka_unit_test(numbers_stay),
		cmocka_unit_test(errors_have_sentences_either_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is packed in fat binaries: by zstd, in LZ4's block format with copies that overlap what
 * they make, and cut off anywhere.
 *
 * links: shim/cuda/image_unpack.c shim/base/os.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <zstd.h>
#include <cmocka.h>

#include "../../shim/cuda/image_unpack.h"

static void test_zstd(void **state)
{
	uint8_t whole[3000], packed[4000], out[3000];
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(whole); i++)
		whole[i] = (uint8_t)(i * i >> 5);
	n = ZSTD_compress(packed, sizeof(packed), whole, sizeof(whole), 3);
	assert_int_equal(image_unpack(out, sizeof(out), packed, n), sizeof(whole));
	assert_memory_equal(out, whole, sizeof(whole));
	assert_int_equal(image_unpack(out, sizeof(out) - 1, packed, n), 0);
	assert_int_equal(image_unpack(out, sizeof(out), packed, n - 1), 0);
}

/* "abc", then 30 bytes from 3 back, then 20 of their own. */
static const uint8_t lz4[] = "\x3f"
			     "abc"
			     "\x03\x00\x0b"
			     "\xf0\x05"
			     "ABCDEFGHIJKLMNOPQRST";

static void test_lz4(void **state)
{
	uint8_t out[64];

	(void)state;
	assert_int_equal(image_unpack(out, sizeof(out), lz4, sizeof(lz4) - 1), 53);
	assert_memory_equal(out, "abcabcabcabcabcabcabcabcabcabcabcABCDEFGHIJKLMNOPQRST", 53);
	assert_int_equal(image_unpack(out, 52, lz4, sizeof(lz4) - 1), 0);
	assert_int_equal(image_unpack(out, 30, lz4, sizeof(lz4) - 1), 0);
}

static void test_cut_off(void **state)
{
	uint8_t out[64];

	(void)state;
	for (size_t n = 1; n < sizeof(lz4) - 1; n++)
		assert_in_range(image_unpack(out, sizeof(out), lz4, n), 0, 33);
	assert_int_equal(image_unpack(out, sizeof(out),
				      (const uint8_t *)"\x10"
						       "a"
						       "\x00\x00",
				      4),
			 0);
	assert_int_equal(image_unpack(out, sizeof(out),
				      (const uint8_t *)"\x10"
						       "a"
						       "\x02\x00",
				      4),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zstd),
		cmocka_unit_test(test_lz4),
		cmocka_unit_test(test_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

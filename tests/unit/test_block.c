/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing: the checksum against published values, and headers that notice every flipped bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../format/block.h"

/* Values of RFC 3720, appendix B.4, and the usual check value. */
static void checksum_is_crc32c(void **state)
{
	uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (unsigned i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	assert_int_equal(gmt_crc32c(zeros, 32), 0x8a9136aau);
	assert_int_equal(gmt_crc32c(ones, 32), 0x62a8ab43u);
	assert_int_equal(gmt_crc32c(up, 32), 0x46dd794eu);
	assert_int_equal(gmt_crc32c(down, 32), 0x113fdb5cu);
	assert_int_equal(gmt_crc32c("123456789", 9), 0xe3069283u);
	assert_int_equal(gmt_crc32c_by_table("123456789", 9), 0xe3069283u);
	assert_int_equal(gmt_crc32c(NULL, 0), 0);
}

static void table_and_processor_agree(void **state)
{
	uint8_t data[300];

	(void)state;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * i * 31 >> 3);
	for (size_t at = 0; at < 16; at++)
		for (size_t n = 0; at + n <= sizeof(data); n++)
			assert_int_equal(gmt_crc32c(data + at, n),
					 gmt_crc32c_by_table(data + at, n));
}

static void every_bit_of_a_header_counts(void **state)
{
	struct gmt_block_header b = { .type = GMT_BLOCK_EVENTS, .raw_bytes = 6, .stored_bytes = 5 };
	struct gmt_file_header f = { .version = GMT_VERSION, .header_bytes = 64, .pid = 3 };
	char payload[5] = "hello";

	(void)state;
	gmt_block_seal(&b, payload);
	gmt_file_header_seal(&f);
	assert_true(gmt_block_header_valid(&b));
	assert_true(gmt_block_payload_valid(&b, payload));
	assert_true(gmt_file_header_valid(&f));
	for (unsigned bit = 0; bit < 8 * 64; bit++) {
		((uint8_t *)&b)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		((uint8_t *)&f)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(gmt_block_header_valid(&b));
		assert_false(gmt_file_header_valid(&f));
		((uint8_t *)&b)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		((uint8_t *)&f)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (unsigned bit = 0; bit < 8 * 5; bit++) {
		payload[bit / 8] ^= (char)(1 << bit % 8);
		assert_false(gmt_block_payload_valid(&b, payload));
		payload[bit / 8] ^= (char)(1 << bit % 8);
	}
}

/* A header whose checksum is right but whose lengths are beyond what a block may have. */
static void lengths_out_of_range_are_refused(void **state)
{
	struct gmt_block_header raw = { .raw_bytes = GMT_BLOCK_RAW_MAX + 1 };
	struct gmt_block_header stored = { .raw_bytes = 1, .stored_bytes = 0 };
	uint8_t *payload = calloc(1, GMT_BLOCK_STORED_MAX + 1);

	(void)state;
	gmt_block_seal(&raw, payload);
	assert_false(gmt_block_header_valid(&raw));
	stored.stored_bytes = GMT_BLOCK_STORED_MAX;
	gmt_block_seal(&stored, payload);
	assert_true(gmt_block_header_valid(&stored));
	stored.stored_bytes = GMT_BLOCK_STORED_MAX + 1;
	gmt_block_seal(&stored, payload);
	assert_false(gmt_block_header_valid(&stored));
	free(payload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_is_crc32c),
		cmocka_unit_test(table_and_processor_agree),
		cmocka_unit_test(every_bit_of_a_header_counts),
		cmocka_unit_test(lengths_out_of_range_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

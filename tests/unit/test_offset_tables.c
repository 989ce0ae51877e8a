/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of offsets: rows that a launch did not write hold no addresses. Look-alikes are no tables.
 *
 * links: shim/cuda/offset_tables.c
 */
#include "../../shim/cuda/known.h"
#include "../../shim/cuda/offset_tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

#define MEMORY 0x7f0000000000ull
#define WORDS  128u

static uint64_t bits[KNOWN_WORDS];
uint64_t *known_bits = bits;

static union {
	uint64_t words[WORDS];
	uint32_t numbers[2 * WORDS];
} parameter;

static void divider(unsigned i, uint32_t divisor)
{
	uint32_t *at = &parameter.numbers[1 + 3 * i], shift = 0;

	while (1ull << shift < divisor)
		shift++;
	at[0] = divisor;
	at[1] = (uint32_t)(((1ull << 32) * ((1ull << shift) - divisor)) / divisor + 1);
	at[2] = shift;
}

/* Fills unused rows with old addresses. Returns the first word of the tensors'. */
static unsigned fill(unsigned dims, unsigned tensors)
{
	unsigned at = (304 + 100 * tensors + 7) / 8;

	bits[(MEMORY >> KNOWN_GRANULE_BITS) / 64] |= 1ull << (MEMORY >> KNOWN_GRANULE_BITS) % 64;
	for (unsigned i = 0; i < WORDS; i++)
		parameter.words[i] = MEMORY + 4096 + 512 * i;
	parameter.numbers[0] = dims;
	for (unsigned i = 0; i < dims; i++)
		divider(i, 3 * i + 7);
	return at;
}

static void begins_behind_the_table(void **state)
{
	(void)state;
	for (unsigned dims = 1; dims <= 25; dims++)
		assert_int_equal(offset_table_words((char *)parameter.words, fill(dims, 1) + 5),
				 fill(dims, 1));
}

/* Where a table for fewer would end no address stands, as after a launch that used all its rows. */
static void says_how_many_tensors(void **state)
{
	(void)state;
	for (unsigned tensors = 1; tensors <= 5; tensors++) {
		unsigned at = fill(2, tensors);

		for (unsigned i = 38; i < at; i++)
			parameter.words[i] = i;
		assert_int_equal(offset_table_words((char *)parameter.words, at + tensors), at);
	}
}

static void others_are_no_tables(void **state)
{
	(void)state;
	fill(3, 2);
	parameter.numbers[1 + 3 * 2 + 1]++;
	assert_int_equal(offset_table_words((char *)parameter.words, WORDS), 0);
	fill(0, 2);
	assert_int_equal(offset_table_words((char *)parameter.words, WORDS), 0);
	fill(26, 2);
	assert_int_equal(offset_table_words((char *)parameter.words, WORDS), 0);
	fill(3, 1);
	assert_int_equal(offset_table_words((char *)parameter.words, 51), 0);
}

static void reductions_end_with_their_addresses(void **state)
{
	struct {
		const void *source, *results[2], *buffers[3];
		int64_t first;
		bool accumulates, is_last;
		int count;
	} end = { .count = 2, .is_last = true };
	const char *from;

	(void)state;
	assert_int_equal(sizeof(end), 8 * REDUCTION_WORDS + 16);
	assert_int_equal(reduction_words((char *)(&end + 1), &from), 0x3f);
	assert_ptr_equal(from, &end);
	end.count = 1;
	assert_int_equal(reduction_words((char *)(&end + 1), &from), 0x3b); /* not results[1] */
	end.count = 3;
	assert_int_equal(reduction_words((char *)(&end + 1), &from), 0);
	end.count = 1;
	memset(&end.is_last, 2, 1);
	assert_int_equal(reduction_words((char *)(&end + 1), &from), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_behind_the_table),
		cmocka_unit_test(says_how_many_tensors),
		cmocka_unit_test(others_are_no_tables),
		cmocka_unit_test(reductions_end_with_their_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of tables beyond the limit are compressed, and come back as they were last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../viewer/model/chunks.h"

#define BYTES  (1ul << 20)
#define WORDS  (BYTES / 4)
#define CHUNKS 200u /* beyond the limit */

/* Rows of `each` words that count up, as those of equal steps do; `more` was added later. */
static uint32_t word_of(size_t chunk, size_t i, size_t each, uint32_t more)
{
	return (uint32_t)(chunk * 7919 + i / each * (i % each) + i % each * 1000003) + more;
}

static void fill(uint8_t *at, size_t chunk, size_t each, uint32_t more)
{
	for (size_t i = 0; i < WORDS; i++)
		((uint32_t *)at)[i] = word_of(chunk, i, each, more);
}

static bool is_as_filled(const uint8_t *at, size_t chunk, size_t each, uint32_t more)
{
	for (size_t i = 0; i < WORDS; i++)
		if (((const uint32_t *)at)[i] != word_of(chunk, i, each, more))
			return false;
	return true;
}

static size_t compressed(const struct chunks *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++)
		n += !c->items[i];
	return n;
}

static struct chunks *filled(size_t words, size_t each, struct chunk_pool *pool)
{
	struct chunks *c = chunks_new(BYTES, words, pool);

	for (size_t i = 0; i < CHUNKS; i++) {
		fill(chunks_add(c), i, each, 0);
		if (pool)
			chunks_rest(pool);
	}
	return c;
}

static void check_table(size_t words, size_t each)
{
	struct chunk_pool *pool = chunks_new_pool();
	struct chunks *c = filled(words, each, pool);

	assert_true(compressed(c) > 0);
	for (size_t i = 0; i < CHUNKS; i += 3, chunks_rest(pool))
		fill(chunks_change(c, i), i, each, 5);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < CHUNKS; i++, chunks_rest(pool))
			assert_true(is_as_filled(chunks_at(c, i), i, each, i % 3 ? 0 : 5));
	assert_true(compressed(c) > 0);
	chunks_free(c);
	chunks_free_pool(pool);
}

static void rows_come_back(void **state)
{
	(void)state;
	check_table(4, 4);
	check_table(1, 4);
}

static void bytes_come_back(void **state)
{
	(void)state;
	check_table(0, 11);
}

static void new_ones_are_zeroed(void **state)
{
	static const uint8_t zeros[BYTES];
	struct chunk_pool *pool = chunks_new_pool();
	struct chunks *c = filled(4, 4, pool);

	(void)state;
	assert_memory_equal(chunks_add(c), zeros, BYTES);
	chunks_free(c);
	chunks_free_pool(pool);
}

static void without_a_pool_all_stay(void **state)
{
	struct chunks *c = filled(4, 4, NULL);

	(void)state;
	assert_int_equal(compressed(c), 0);
	chunks_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back),
		cmocka_unit_test(bytes_come_back),
		cmocka_unit_test(new_ones_are_zeroed),
		cmocka_unit_test(without_a_pool_all_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

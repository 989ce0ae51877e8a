/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock-free interning table: one id for a key as long as nobody is in the way, growth through
 * its levels, and with 16 threads at once never one id for two keys.
 *
 * links: shim/base/intern.c shim/base/os.c
 */
#include "../../shim/base/intern.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define KEYS	20000u
#define THREADS 16

static struct intern_table table;

static uint32_t get(struct intern_table *t, uint64_t a, uint64_t b, uint64_t hash)
{
	struct intern_entry *claimed;
	uint32_t id = intern_find(t, hash, a, b, intern_same_words, &claimed);

	if (id)
		return id;
	id = intern_new_id(t);
	intern_publish(claimed, a, b, id);
	return id;
}

static uint32_t get_mixed(struct intern_table *t, uint64_t a, uint64_t b)
{
	return get(t, a, b, intern_mix(a ^ intern_mix(b)));
}

static void same_key_same_id(void **state)
{
	struct intern_table t = { 0 };

	(void)state;
	assert_int_equal(get_mixed(&t, 1, 2), 1);
	assert_int_equal(get_mixed(&t, 2, 1), 2);
	assert_int_equal(get_mixed(&t, 1, 2), 1);
	assert_int_equal(get_mixed(&t, 2, 1), 2);
}

/* Keys of one hash go on into the next levels; when all are full there is no bucket. */
static void colliding_keys(void **state)
{
	struct intern_table t = { 0 };
	struct intern_table two = { .levels = 2 };
	struct intern_entry *claimed;
	const uint32_t room = INTERN_LEVELS * INTERN_WINDOW;

	(void)state;
	for (uint64_t i = 0; i < room; i++)
		assert_int_equal(get(&t, i, 0, 77), i + 1);
	for (uint64_t i = 0; i < room; i++)
		assert_int_equal(get(&t, i, 0, 77), i + 1);
	assert_int_equal(intern_find(&t, 77, room, 0, intern_same_words, &claimed), 0);
	assert_null(claimed);
	for (uint64_t i = 0; i < 2 * INTERN_WINDOW; i++)
		assert_int_equal(get(&two, i, 0, 77), i + 1);
	assert_int_equal(intern_find(&two, 77, room, 0, intern_same_words, &claimed), 0);
	assert_null(claimed);
	assert_null(two.level[2]);
}

/* A failed definition is tried again in the same bucket, however often it fails. */
static void a_key_without_a_definition_keeps_its_bucket(void **state)
{
	struct intern_table t = { 0 };
	const struct intern_key key = { 5, 1, 1, intern_same_words };
	struct intern_entry *first, *claimed;

	(void)state;
	assert_int_equal(intern_find(&t, 5, 1, 1, intern_same_words, &first), 0);
	for (int i = 0; i < 100; i++) {
		assert_non_null(first);
		intern_publish(first, 1, 1, INTERN_DEAD);
		assert_int_equal(i % 2 ? intern_find(&t, 5, 1, 1, intern_same_words, &claimed)
				       : intern_find_past(&t, &key, &claimed),
				 0);
		assert_ptr_equal(claimed, first);
	}
	intern_publish(first, 1, 1, INTERN_DEAD);
	assert_int_equal(get(&t, 1, 1, 5), 1);
	assert_int_equal(get(&t, 1, 1, 5), 1);
}

/* Someone claimed the bucket and is not done: no waiting for ever. */
static void an_unfinished_bucket_does_not_block(void **state)
{
	struct intern_table t = { 0 };
	struct intern_entry *first, *second;

	(void)state;
	assert_int_equal(intern_find(&t, 5, 1, 1, intern_same_words, &first), 0);
	assert_int_equal(intern_find(&t, 5, 1, 1, intern_same_words, &second), 0);
	assert_non_null(first);
	assert_ptr_equal(second, INTERN_BUSY);
	intern_publish(second, 1, 1, 3);
}

static void count_entry(void *ctx, const struct intern_entry *e)
{
	*(uint64_t *)ctx += e->a;
}

static void growth(void **state)
{
	struct intern_table t = { 0 };
	uint64_t sum = 0, count = 150000;

	(void)state;
	for (uint64_t i = 1; i <= count; i++)
		assert_int_equal(get_mixed(&t, i, 3), i);
	for (uint64_t i = 1; i <= count; i++)
		assert_int_equal(get_mixed(&t, i, 3), i);
	intern_each(&t, count_entry, &sum);
	assert_int_equal(sum, count * (count + 1) / 2);
}

static uint32_t *ids[THREADS];

static void *work(void *arg)
{
	uint32_t *mine = arg;

	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t key = (i * 7919 + (uint32_t)(mine - ids[0])) % KEYS;

		mine[key] = get_mixed(&table, key, key * 3);
	}
	return NULL;
}

static void many_threads(void **state)
{
	pthread_t threads[THREADS];
	uint32_t *owner, different = 0;

	(void)state;
	ids[0] = calloc(THREADS * KEYS, sizeof(uint32_t));
	for (int t = 0; t < THREADS; t++) {
		ids[t] = ids[0] + (size_t)t * KEYS;
		pthread_create(&threads[t], NULL, work, ids[t]);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	owner = calloc(table.last_id + 1, sizeof(*owner));
	for (int t = 0; t < THREADS; t++) {
		for (uint32_t key = 0; key < KEYS; key++) {
			uint32_t id = ids[t][key];

			assert_true(id >= 1 && id <= table.last_id);
			assert_true(owner[id] == 0 || owner[id] == key + 1);
			owner[id] = key + 1;
			different += id != ids[0][key];
		}
	}
	/* second ids for a key are allowed, but must be rare */
	assert_true(different < THREADS * KEYS / 100);
	free(owner);
	free(ids[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_key_same_id),
		cmocka_unit_test(colliding_keys),
		cmocka_unit_test(a_key_without_a_definition_keeps_its_bucket),
		cmocka_unit_test(an_unfinished_bucket_does_not_block),
		cmocka_unit_test(growth),
		cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

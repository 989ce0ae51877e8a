/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of the allocator against what PyTorch's does, sequence by sequence: sizes of segments,
 * splitting, joining, settings, and what is given back.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include "../../viewer/replay/allocator.h"

static struct allocator start(const char *conf)
{
	struct alloc_settings s;
	struct allocator a;
	char why[SETTINGS_WHY];

	assert_null(settings_parse(&s, conf, 0, why));
	allocator_init(&a, &s);
	return a;
}

static struct piece *take(struct allocator *a, uint64_t bytes)
{
	return allocator_take(a, bytes, 0, 0);
}

static void segments(void **state)
{
	struct allocator a = start("");

	(void)state;
	take(&a, 1);
	assert_int_equal(a.allocated, 512);
	assert_int_equal(a.reserved, 2 * MIB);
	take(&a, MIB);
	assert_int_equal(a.reserved, 2 * MIB);
	take(&a, MIB);
	assert_int_equal(a.reserved, 4 * MIB);
	take(&a, MIB + 1);
	assert_int_equal(a.reserved, 24 * MIB);
	take(&a, 10 * MIB - 512);
	assert_int_equal(a.reserved, 24 * MIB);
	take(&a, 10 * MIB);
	assert_int_equal(a.reserved, 34 * MIB);
	take(&a, 10 * MIB + 1); /* a whole segment of 12 MiB but for what is more than 1 MiB */
	assert_int_equal(a.reserved, 46 * MIB);
	allocator_take(&a, 512, 7, 0); /* another stream */
	assert_int_equal(a.reserved, 48 * MIB);
	allocator_free(&a);
}

static void fits(void **state)
{
	struct allocator a = start("");
	struct piece *x = take(&a, 30 * MIB), *y = take(&a, 12 * MIB), *z;

	(void)state;
	allocator_give(&a, x);
	allocator_give(&a, y);
	z = take(&a, 11 * MIB); /* the smaller one, whole: 1 MiB is not split off */
	assert_int_equal(z->size, 12 * MIB);
	assert_false(a.cut);
	z = take(&a, 28 * MIB);
	assert_int_equal(z->size, 28 * MIB);
	assert_true(a.cut);
	assert_int_equal(a.reserved, 42 * MIB);
	allocator_give(&a, z); /* joined again */
	assert_int_equal(take(&a, 30 * MIB)->size, 30 * MIB);
	assert_int_equal(a.reserved, 42 * MIB);
	allocator_free(&a);
}

static void given_back(void **state)
{
	struct allocator a = start("");
	struct piece *x = take(&a, 30 * MIB), *y = take(&a, 8 * MIB);

	(void)state;
	take(&a, 4 * MIB);
	a.limit = 60 * MIB;
	allocator_give(&a, x);
	allocator_give(&a, y);
	assert_non_null(take(&a, 38 * MIB)); /* after the cached 30 MiB */
	assert_int_equal(a.retries, 1);
	assert_int_equal(a.reserved, 58 * MIB);
	assert_null(take(&a, 38 * MIB));
	assert_int_equal(a.ooms, 1);
	allocator_free(&a);
}

static void not_split(void **state)
{
	struct allocator a = start("max_split_size_mb:64");

	(void)state;
	allocator_give(&a, take(&a, 100 * MIB));
	take(&a, 40 * MIB); /* not from the large one */
	assert_int_equal(a.reserved, 140 * MIB);
	assert_int_equal(take(&a, 90 * MIB)->size, 100 * MIB); /* within 20 MiB */
	assert_int_equal(a.reserved, 140 * MIB);
	allocator_free(&a);
}

static void rounded(void **state)
{
	struct alloc_settings s;
	char why[SETTINGS_WHY];

	(void)state;
	assert_null(settings_parse(&s, "roundup_power2_divisions:4", 0, why));
	assert_int_equal(settings_round(&s, 1200), 1536);
	assert_int_equal(settings_round(&s, 1200 * 1024), 1280 * 1024);
	assert_int_equal(settings_round(&s, 5 * MIB + 1), 6 * MIB);
	assert_int_equal(settings_round(&s, 8 * MIB), 8 * MIB);
	assert_null(settings_parse(&s, "roundup_power2_divisions:[2:4,8:2,>:0]", 0, why));
	assert_int_equal(settings_round(&s, MIB + 1), 1280 * 1024);
	assert_int_equal(settings_round(&s, 9 * MIB), 12 * MIB);
	assert_int_equal(settings_round(&s, 4 * MIB + 1), 4 * MIB + 512);
	assert_int_equal(settings_round(&s, 17 * MIB + 1), 17 * MIB + 512);
}

/* A segment has addresses for what the device has and an eighth more. */
static void larger_than_the_device(void **state)
{
	struct allocator a = start("expandable_segments:True");

	(void)state;
	a.device = 1024 * MIB;
	assert_non_null(take(&a, 1000 * MIB));
	assert_null(take(&a, 2000 * MIB));
	allocator_free(&a);
}

static void expandable(void **state)
{
	struct allocator a = start("expandable_segments:True");
	struct piece *x = take(&a, 30 * MIB), *y, *z;

	(void)state;
	assert_int_equal(a.reserved, 40 * MIB);
	y = take(&a, 9 * MIB); /* in the rest of the second page */
	assert_int_equal(a.reserved, 40 * MIB);
	z = take(&a, 25 * MIB); /* from its last MiB on */
	assert_int_equal(z->addr, y->addr + 9 * MIB);
	assert_int_equal(a.reserved, 80 * MIB);
	allocator_give(&a, y);
	assert_false(allocator_would_release(&a)); /* 9 MiB of a page of 20 */
	allocator_give(&a, x);
	assert_true(allocator_would_release(&a));
	allocator_empty(&a); /* the first page is whole, the second holds the block's beginning */
	assert_int_equal(a.reserved, 60 * MIB);
	allocator_give(&a, z);
	allocator_empty(&a);
	assert_int_equal(a.reserved, 0);
	take(&a, 700);
	assert_int_equal(a.reserved, 2 * MIB);
	allocator_free(&a);
}

static void collected(void **state)
{
	struct allocator a = start("garbage_collection_threshold:0.5");
	struct piece *x;

	(void)state;
	a.allowed = 100 * MIB;
	x = take(&a, 40 * MIB);
	allocator_give(&a, take(&a, 20 * MIB));
	assert_int_equal(a.reserved, 60 * MIB);
	take(&a, 22 * MIB); /* above 50 MiB: what is cached goes first */
	assert_int_equal(a.reserved, 62 * MIB);
	allocator_give(&a, x);
	allocator_free(&a);
}

static void private_pools(void **state)
{
	struct allocator a = start("");
	struct piece *x = allocator_take(&a, 30 * MIB, 5, 1);

	(void)state;
	allocator_give(&a, x);
	allocator_take(&a, 30 * MIB, 5, 0);
	assert_int_equal(a.reserved, 60 * MIB);
	assert_false(allocator_would_release(&a));
	allocator_empty(&a);
	assert_int_equal(a.reserved, 60 * MIB);
	allocator_pool_over(&a, 1);
	allocator_empty(&a);
	assert_int_equal(a.reserved, 30 * MIB);
	allocator_free(&a);
}

/* A pool of the program's own that it drops: its segments go, also what another stream used last.
 */
static void a_pool_alone(void **state)
{
	struct allocator a = start("");
	struct piece *used = allocator_take(&a, 40 * MIB, 0, 2);
	struct piece *other = allocator_take(&a, 50 * MIB, 0, 1);

	(void)state;
	allocator_give(&a, take(&a, 30 * MIB));
	allocator_give_used(&a, &used);
	allocator_give_used(&a, &other);
	allocator_empty_pool(&a, 2);
	assert_null(used);
	assert_non_null(other);
	assert_int_equal(a.reserved, 80 * MIB);
	allocator_free(&a);
}

/* What other streams still use is not handed out again, nor joined, until they are done. */
static void used_elsewhere(void **state)
{
	struct allocator a = start("");
	struct piece *x = take(&a, 30 * MIB), *y = take(&a, 40 * MIB), *held_x = x, *held_y = y;

	(void)state;
	allocator_give_used(&a, &held_x);
	allocator_give_used(&a, &held_y);
	assert_int_equal(a.allocated, 0);
	assert_ptr_not_equal(take(&a, 30 * MIB), x);
	assert_int_equal(a.reserved, 100 * MIB);
	allocator_ready(&a, &held_x);
	assert_null(held_x);
	assert_ptr_equal(take(&a, 30 * MIB), x);
	assert_int_equal(a.reserved, 100 * MIB);
	allocator_empty(&a); /* waits for the other one */
	assert_null(held_y);
	assert_int_equal(a.reserved, 60 * MIB);
	allocator_ready(&a, &held_y);
	allocator_free(&a);
}

/* Giving a segment back waits for the device: what was in use is free at the next request. */
static void blocks_in_use_when_a_segment_goes(void **state)
{
	struct allocator a = start("garbage_collection_threshold:0.5");
	struct piece *used, *old;

	(void)state;
	a.allowed = 100 * MIB;
	old = take(&a, 60 * MIB);
	used = take(&a, 12 * MIB);
	allocator_give(&a, old);
	allocator_give_used(&a, &used);
	take(&a, 80 * MIB);
	assert_int_equal(a.reserved, 92 * MIB);
	assert_non_null(used);
	take(&a, 11 * MIB);
	assert_null(used);
	assert_int_equal(a.reserved, 92 * MIB);
	allocator_free(&a);
}

static void wrong_settings(void **state)
{
	static const char *const texts[] = {
		"max_split_size_mb:3",
		"max_split_size_mb",
		"no_such_thing:1",
		"expandable_segments:yes",
		"roundup_power2_divisions:3",
		"roundup_power2_divisions:[256:1",
		"backend:cudaMallocAsync",
		"garbage_collection_threshold:1.5",
		"roundup_power2_divisions:[x",
		"expandable_segments:True max_split_size_mb:40",
	};
	struct alloc_settings s;
	char why[SETTINGS_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_non_null(settings_parse(&s, texts[i], 0, why));
}

/* What changed from release to release: keys, and where ">" of a list begins. */
static void releases(void **state)
{
	static const char list[] = "roundup_power2_divisions:[1:8,4:2,16:4,>:1]";
	struct alloc_settings s;
	char why[SETTINGS_WHY];

	(void)state;
	assert_null(settings_parse(&s, list, 206, why));
	assert_int_equal(settings_round(&s, 18 * MIB), 18 * MIB);
	assert_null(settings_parse(&s, list, 211, why));
	assert_int_equal(settings_round(&s, 18 * MIB), 20 * MIB);
	assert_null(settings_parse(&s, list, 0, why));
	assert_int_equal(settings_round(&s, 18 * MIB), 20 * MIB);
	assert_non_null(settings_parse(&s, "per_process_memory_fraction:0.5", 206, why));
	assert_non_null(strstr(why, "PyTorch 2.6"));
	assert_null(settings_parse(&s, "per_process_memory_fraction:0.5", 211, why));
	assert_null(settings_parse(&s, "per_process_memory_fraction:0.5", 0, why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments),
		cmocka_unit_test(fits),
		cmocka_unit_test(given_back),
		cmocka_unit_test(not_split),
		cmocka_unit_test(rounded),
		cmocka_unit_test(expandable),
		cmocka_unit_test(larger_than_the_device),
		cmocka_unit_test(collected),
		cmocka_unit_test(private_pools),
		cmocka_unit_test(a_pool_alone),
		cmocka_unit_test(releases),
		cmocka_unit_test(blocks_in_use_when_a_segment_goes),
		cmocka_unit_test(wrong_settings),
		cmocka_unit_test(used_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

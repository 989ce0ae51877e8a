/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of live blocks and the hash table, against a plain array that is searched from end to
 * end.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include "../../viewer/base/map.h"
#include "../../viewer/base/tree.h"

#define PLACES 600

/* Place i of the plain array stands for address i * 16; size 0 = no block there. */
static uint64_t sizes[PLACES];

static int plain_enclosing(uint64_t addr)
{
	for (int i = (int)(addr / 16); i >= 0; i--)
		if (sizes[i])
			return addr - i * 16u < sizes[i] ? i : -1;
	return -1;
}

static int plain_from(uint64_t addr)
{
	for (uint64_t i = (addr + 15) / 16; i < PLACES; i++)
		if (sizes[i])
			return (int)i;
	return -1;
}

static void same(const struct block *b, int place)
{
	assert_int_equal(b != NULL, place >= 0);
	if (!b)
		return;
	assert_int_equal(b->addr, place * 16);
	assert_int_equal(b->size, sizes[place]);
}

static void change(struct tree *t, struct chance *c)
{
	uint64_t place = chance_below(c, PLACES);

	if (sizes[place]) {
		tree_remove(t, place * 16);
		sizes[place] = 0;
	} else {
		sizes[place] = 1 + chance_below(c, 40);
		tree_insert(t, place * 16)->size = sizes[place];
	}
}

static void tree_is_an_array(void **state)
{
	struct tree t = { 0 };
	struct chance c = { 7 };

	(void)state;
	memset(sizes, 0, sizeof(sizes));
	for (int i = 0; i < 60000; i++) {
		uint64_t addr = chance_below(&c, PLACES * 16);

		change(&t, &c);
		same(tree_find(&t, addr), addr % 16 || !sizes[addr / 16] ? -1 : (int)(addr / 16));
		same(tree_enclosing(&t, addr), plain_enclosing(addr));
		same(tree_from(&t, addr), plain_from(addr));
	}
	tree_free(&t);
}

static void tree_walks_in_order(void **state)
{
	struct tree t = { 0 };
	uint64_t before = 0;
	size_t n = 0;

	(void)state;
	for (uint64_t i = 0; i < 5000; i++)
		tree_insert(&t, (i * 2654435761u) % 1000003)->size = 1;
	tree_insert(&t, UINT64_MAX)->size = 1;
	TREE_EACH (&t, b) {
		assert_true(n == 0 || b->addr > before);
		before = b->addr;
		n++;
	}
	assert_int_equal(n, 5001);
	assert_int_equal(t.count, 5001);
	tree_free(&t);
}

/* Pointers stay good while other blocks come and go. */
static void blocks_do_not_move(void **state)
{
	struct tree t = { 0 };
	struct block *first = tree_insert(&t, 77);

	(void)state;
	for (uint64_t i = 1000; i < 20000; i++)
		tree_insert(&t, i);
	for (uint64_t i = 1000; i < 20000; i += 2)
		tree_remove(&t, i);
	assert_ptr_equal(tree_find(&t, 77), first);
	tree_free(&t);
}

/* A program whose addresses never come again does not fill the tree with places of old blocks. */
static void places_of_old_blocks_are_few(void **state)
{
	struct tree t = { 0 };
	struct block *kept = tree_insert(&t, 1);

	(void)state;
	kept->size = 1;
	for (uint64_t addr = 1000; addr < 50000; addr++) {
		tree_insert(&t, addr)->size = 1;
		assert_int_equal(tree_find(&t, addr)->addr, addr);
		tree_remove(&t, addr);
		assert_null(tree_find(&t, addr));
		assert_int_equal(t.count, 1);
	}
	assert_in_range(t.used, 1, 2000);
	tree_tidy(&t);
	assert_int_equal(t.gone_count, 0);
	assert_ptr_equal(tree_from(&t, 0), kept);
	assert_null(tree_from(&t, 2));
	tree_free(&t);
}

/* The next block at an address is a new one, although it has the place of the one before. */
static void a_place_begins_empty(void **state)
{
	struct tree t = { 0 };
	struct block *b = tree_insert(&t, 512);

	(void)state;
	b->size = 512;
	b->stack = 7;
	tree_remove(&t, 512);
	assert_null(tree_enclosing(&t, 600));
	b = tree_insert(&t, 512);
	assert_int_equal(b->size, 0);
	assert_int_equal(b->stack, 0);
	assert_int_equal(t.count, 1);
	tree_free(&t);
}

static void map_is_an_array(void **state)
{
	static uint32_t values[4096];
	static bool there[4096];
	struct map m = { 0 };
	struct chance c = { 11 };

	(void)state;
	for (uint32_t i = 1; i < 200000; i++) {
		uint64_t key = chance_below(&c, 4096), spread = key * 0x100000001u;
		bool fresh;

		if (chance_below(&c, 3)) {
			*map_put(&m, spread, &fresh) = i;
			assert_int_equal(fresh, !there[key]);
			there[key] = true;
			values[key] = i;
		} else {
			assert_int_equal(map_remove(&m, spread), there[key]);
			there[key] = false;
		}
		key = chance_below(&c, 4096);
		assert_int_equal(map_get(&m, key * 0x100000001u) != NULL, there[key]);
		if (there[key])
			assert_int_equal(*map_get(&m, key * 0x100000001u), values[key]);
	}
	map_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tree_is_an_array),
		cmocka_unit_test(tree_walks_in_order),
		cmocka_unit_test(blocks_do_not_move),
		cmocka_unit_test(places_of_old_blocks_are_few),
		cmocka_unit_test(a_place_begins_empty),
		cmocka_unit_test(map_is_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about the uses of many lives, on long runs by chance, judged by plain arrays: the bytes
 * in use at once where a block waits long for its last use, and lives that nothing uses any more.
 * links: tests/unit/recordings.c
 */
#include "fed_model.h"

#include "../../format/record.h"
#include "../../format/uses.h"

static void launch(size_t n, const uint64_t *places)
{
	struct gmt_event e = { .kind = GMT_USE, .thread = 1, .arg1 = 1, .addr = places[0] };

	for (unsigned i = 1; i < n; i++)
		gmt_use_put(&e, i, places[i]);
	feed(e);
}

/* Blocks that are there at once and wait long for their last use. */
static void bound_of_long_uses(void **state)
{
	enum { MANY_WORKS = 300000, BLOCKS = 5 };
	uint32_t first[BLOCKS], last[BLOCKS];
	struct chance c = { 7 };

	(void)state;
	for (int round = 0; round < 3; round++) {
		uint64_t most = 0;

		fresh();
		for (uint64_t i = 0; i < BLOCKS; i++) {
			block(GMT_BLOCK_ALLOC, (i + 1) << 20, 0x1000ull << i);
			first[i] = i ? (uint32_t)chance_below(&c, MANY_WORKS) : 0;
			last[i] = i ? (uint32_t)chance_below(&c, MANY_WORKS) : MANY_WORKS - 1;
		}
		for (uint32_t w = 0; w < MANY_WORKS; w++) {
			uint64_t places[BLOCKS] = { 1 << 20 }, bytes = 0;
			size_t n = 1;

			for (uint64_t i = 1; i < BLOCKS; i++) {
				uint32_t from = first[i] < last[i] ? first[i] : last[i];
				uint32_t to = first[i] < last[i] ? last[i] : first[i];

				if (w == from || w == to)
					places[n++] = (i + 1) << 20;
				bytes += w >= from && w <= to ? 0x1000ull << i : 0;
			}
			launch(n, places);
			most = bytes + 0x1000 > most ? bytes + 0x1000 : most;
		}
		model_settle(&m);
		assert_int_equal(uses_bound(&m, 0), most);
		model_free(&m);
	}
}

/* Lives are asked for in any order, and refusals before and behind them. */
static void ends_by_chance(void **state)
{
	enum { LIVES = 400 };
	static uint64_t used[LIVES], died[LIVES], refused[LIVES];
	struct use_refusals kept = { 0 };
	struct chance c = { 5 };
	size_t refusals = 0;

	(void)state;
	fresh();
	memset(died, 0, sizeof(died));
	for (uint64_t i = 0; i < LIVES; i++) {
		uint64_t other = chance_below(&c, i + 1);

		block(GMT_BLOCK_ALLOC, (i + 1) << 20, 0x1000);
		launch(1, (uint64_t[]){ (i + 1) << 20 });
		used[i] = seq;
		if (!chance_below(&c, 9)) {
			feed((struct gmt_event){ .kind = GMT_BLOCK_OOM, .size = 1 << 30 });
			refused[refusals++] = seq;
		}
		if (died[other] || !chance_below(&c, 3))
			continue;
		block(GMT_BLOCK_FREE, (other + 1) << 20, 0x1000);
		died[other] = seq;
	}
	model_settle(&m);
	for (int i = 0; i < 20 * LIVES; i++) {
		uint32_t life = (uint32_t)chance_below(&c, LIVES);
		uint64_t next = UINT64_MAX;

		for (size_t k = refusals; k-- > 0;)
			next = refused[k] >= used[life] ? refused[k] : next;
		assert_int_equal(uses_end(&m, 0, life, &kept), died[life] && died[life] < next);
	}
	model_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bound_of_long_uses),
		cmocka_unit_test(ends_by_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

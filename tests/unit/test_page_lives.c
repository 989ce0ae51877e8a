/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that a page has room for, on runs by chance, against a sort of all of them: those at key
 * moments first if all of these fit, then those with the largest area.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include "../../viewer/base/sorted.h"
#include "../../viewer/page/page_lives.h"

enum { EVENTS = 6000, PLACES = 40, LIVES = EVENTS };

struct plain {
	uint32_t life;
	uint64_t size, born, died; /* died: 0 = it did not */
	double area;
	bool at_key;
};

static struct defs defs;
static struct model m;
static struct plain plain[LIVES];
static uint32_t lives;

static void feed(uint64_t seq, unsigned kind, uint64_t place, uint64_t size)
{
	const struct gmt_event e = { .kind = (uint16_t)kind,
				     .seq = seq,
				     .time_ns = seq * 10,
				     .addr = (place + 1) << 30,
				     .size = size };

	model_event(&m, &e);
}

static void run_by_chance(struct chance *c)
{
	uint32_t there[PLACES] = { 0 };

	model_init(&m, &defs);
	lives = 0;
	for (uint64_t seq = 1; seq <= EVENTS; seq++) {
		uint64_t place = chance_below(c, PLACES), size = 512 * (1 + chance_below(c, 4));

		if (there[place]) {
			feed(seq, GMT_BLOCK_FREE, place, plain[there[place] - 1].size);
			plain[there[place] - 1].died = seq;
			there[place] = 0;
			continue;
		}
		feed(seq, GMT_BLOCK_ALLOC, place, size);
		plain[lives] = (struct plain){ .life = lives, .size = size, .born = seq };
		there[place] = ++lives;
	}
	model_settle(&m);
}

COMPARE(in_order, struct plain,
	ORDER(y->at_key, x->at_key) ?: ORDER(y->area, x->area) ?: ORDER(x->life, y->life))
COMPARE(by_number, struct plain, ORDER(x->life, y->life))

static void sort_all(const struct page_lives *l)
{
	size_t there = 0;

	for (uint32_t i = 0; i < lives; i++) {
		struct plain *p = &plain[i];
		uint64_t died = p->died ? p->died : EVENTS + 1;

		p->area = (double)p->size * (double)(died - p->born);
		p->at_key = ANY_OF(k, l->keys, l->key_count, p->born <= k->seq && k->seq < died);
		there += p->at_key;
	}
	for (uint32_t i = 0; i < lives && there > l->limit; i++)
		plain[i].at_key = false;
	SORT(plain, lives, in_order);
}

static void choose(struct chance *c, size_t limit)
{
	struct page_lives l = { .model = &m, .limit = limit };
	size_t count;

	l.key_count = chance_below(c, 6);
	for (size_t i = 0; i < l.key_count; i++)
		l.keys[i].seq = 1 + chance_below(c, EVENTS);
	SORT(plain, lives, by_number);
	page_lives_choose(&l, true);
	sort_all(&l);
	count = limit < lives ? limit : lives;
	SORT(plain, count, by_number);
	assert_int_equal(l.count, count);
	assert_int_equal(l.left_out, lives - count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(l.items[i].life, plain[i].life);
	for (size_t i = count; i < lives; i++)
		assert_false(l.chosen[plain[i].life / 64] >> plain[i].life % 64 & 1);
	page_lives_free(&l);
}

static void by_chance(void **state)
{
	const size_t limits[] = { 1, 7, 30, 100, 1000, LIVES };
	struct chance c = { 3 };

	(void)state;
	for (int round = 0; round < 20; round++) {
		run_by_chance(&c);
		for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
			choose(&c, limits[i]);
		model_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

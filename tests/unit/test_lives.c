/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of lives against plain arrays: what was put in comes out, far apart in time too, and
 * changes come back in order.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include "../../viewer/model/lives.h"

#define COUNT 70000

static struct plain {
	struct position born, died;
	enum life_change change;
	uint32_t life;
	uint64_t seq, ns;
} plain[COUNT];

/* Most steps are short, some longer than an offset can say. */
static uint64_t step(struct chance *c)
{
	return chance_below(c, 500) ? 1 + chance_below(c, 60) : (uint64_t)1 << 33;
}

static struct position position(struct chance *c, uint64_t seq, uint64_t ns)
{
	return (struct position){ .seq = seq,
				  .ns = ns,
				  .thread = (uint32_t)chance_below(c, 3),
				  .forwards = (uint32_t)(seq / 1000),
				  .device = (int)chance_below(c, 3) - 1,
				  .stage = (uint8_t)chance_below(c, 6) };
}

static void same(const struct lives *l, const struct life_moment *m, const struct position *as)
{
	const struct position *p = lives_position(l, m->position);

	assert_int_equal(lives_seq(l, m), as->seq);
	assert_int_equal(lives_ns(l, m), as->ns);
	assert_int_equal(p->thread, as->thread);
	assert_int_equal(p->forwards, as->forwards);
	assert_int_equal(p->device, as->device);
	assert_int_equal(p->stage, as->stage);
}

static void fill(struct lives *l, struct chance *c)
{
	uint64_t seq = 0, ns = 1000;

	for (uint32_t i = 0; i < COUNT; i++) {
		struct plain *p = &plain[i];
		struct life *life =
			rows_change(&l->rows, lives_add(l, &(struct life_request){ .size = 0 }));

		seq += step(c);
		ns = chance_below(c, 50) ? ns + step(c) : ns - 3; /* clocks of threads disagree */
		p->born = position(c, seq, ns);
		p->died = position(c, seq + step(c), ns + step(c));
		life->addr = i * 512ull;
		life->born = lives_moment(l, &p->born);
		if (i % 3)
			life->died = lives_moment(l, &p->died);
		p->change = 1 + chance_below(c, CHANGE_EMPTIED);
		p->life = (uint32_t)chance_below(c, i + 1);
		p->seq = seq;
		p->ns = ns;
		lives_note(l, p->change, p->life, seq, ns);
	}
}

static void rows_come_back(void **state)
{
	struct lives l;
	struct chance c = { 3 };
	struct lives_cursor at;

	(void)state;
	lives_init(&l);
	fill(&l, &c);
	lives_first(&at, &l);
	for (uint32_t i = 0; i < COUNT; i++, lives_next(&at)) {
		const struct life *life = lives_at(&l, i);

		assert_int_equal(life->addr, i * 512ull);
		same(&l, &life->born, &plain[i].born);
		if (i % 3)
			same(&l, &life->died, &plain[i].died);
		else
			assert_int_equal(lives_seq(&l, &life->died), 0);
		assert_int_equal(at.change, plain[i].change);
		assert_int_equal(at.now.life, plain[i].life);
		assert_int_equal(at.now.seq, plain[i].seq);
		if (at.change != CHANGE_DIED)
			assert_int_equal(at.now.ns, plain[i].ns);
	}
	assert_int_equal(at.change, CHANGE_NONE);
	lives_free(&l);
}

/* Many lives share a position, or the table would not be small. */
/* A life is read with what it points to; the latest one of a stack is found before an event. */
static void lives_are_read(void **state)
{
	const struct position at[] = { { .seq = 10, .forwards = 1 },
				       { .seq = 20, .forwards = 2 },
				       { .seq = 30, .forwards = 3 } };
	struct lives l;

	(void)state;
	lives_init(&l);
	for (uint32_t i = 0; i < 3; i++) {
		struct life_request made = { .size = 512 * (i + 1), .stack = 7 + i % 2, .name = i };
		struct life *life = rows_change(&l.rows, lives_add(&l, &made));

		life->born = lives_moment(&l, &at[i]);
		if (!i)
			life->died = lives_moment(&l, &at[2]);
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct lived x = lives_read(&l, i);

		assert_int_equal(x.size, 512 * (i + 1));
		assert_int_equal(x.stack, 7 + i % 2);
		assert_int_equal(x.name, i);
		assert_int_equal(x.from, at[i].seq);
		assert_int_equal(x.born->forwards, i + 1);
		assert_int_equal(x.until, i ? LIVES_OPEN : 30);
		assert_int_equal(x.died->forwards, i ? 0 : 3);
	}
	assert_int_equal(lives_before(&l, 40, 7), 2);
	assert_int_equal(lives_before(&l, 30, 7), 0);
	assert_int_equal(lives_before(&l, 40, 8), 1);
	assert_int_equal(lives_before(&l, 10, 7), UINT32_MAX);
	lives_free(&l);
}

static void positions_are_shared(void **state)
{
	struct lives l;
	struct position p[2] = { { .thread = 1 }, { .thread = 2, .stage = 3 } };

	(void)state;
	lives_init(&l);
	for (uint64_t i = 0; i < 100000; i++) {
		p[i % 2].seq = p[i % 2].ns = i;
		lives_moment(&l, &p[i % 2]);
	}
	assert_int_equal(l.positions.count, 3);
	lives_free(&l);
}

/* What differs from life to life are the times, so facts are shared too; they can be said anew. */
static void facts_are_shared(void **state)
{
	struct lives l;
	struct life_facts f = { .save_backwards = 1, .tags = BLOCK_GRAPH };

	(void)state;
	lives_init(&l);
	for (uint64_t i = 0; i < 1000; i++) {
		struct life *life = rows_change(
			&l.rows, lives_add(&l, &(struct life_request){ .size = i % 2 }));

		f.save_ns = 5000 + i;
		lives_put_facts(&l, life, &f);
		f.grad_ns = 77;
		lives_put_facts(&l, life, &f);
		f.grad_ns = 0;
		lives_put_facts(&l, life, i % 2 ? &f : &(struct life_facts){ .leaf_ns = i + 1 });
	}
	assert_int_equal(l.requests.count, 3);
	assert_int_equal(l.facts.count, 3);
	assert_int_equal(l.notes.count, 1001);
	for (uint32_t i = 0; i < 1000; i++) {
		const struct life_facts now = lives_facts(&l, lives_at(&l, i));

		assert_int_equal(lives_request(&l, lives_at(&l, i))->size, i % 2);
		assert_int_equal(now.save_ns, i % 2 ? 5000 + i : 0);
		assert_int_equal(now.leaf_ns, i % 2 ? 0 : i + 1);
		assert_int_equal(now.grad_ns, 0);
		assert_int_equal(now.tags, i % 2 ? BLOCK_GRAPH : 0);
	}
	lives_free(&l);
}

/* Times are the life's own. */
static void times_come_back(void **state)
{
	static const uint64_t times[] = { 0, 1, 1ull << 31, 1ull << 33, 1ull << 62 };
	struct life_facts f[COUNT / 10];
	struct chance c = { 5 };
	struct lives l;

	(void)state;
	lives_init(&l);
	for (uint32_t i = 0; i < COUNT / 10; i++) {
		uint64_t ns = 1000ull * i, soon = i % 2;
		struct life *life =
			rows_change(&l.rows, lives_add(&l, &(struct life_request){ .size = 0 }));

		life->born = lives_moment(&l, &(struct position){ .seq = i, .ns = ns });
		f[i] = (struct life_facts){
			.save_ns = soon ? ns + i + 1 : times[chance_below(&c, 5)],
			.grad_ns = soon ? ns + 2 * i + 1 : times[chance_below(&c, 5)],
			.leaf_ns = soon ? 0 : times[chance_below(&c, 5)],
			.tags = BLOCK_GRAPH,
		};
		lives_put_facts(&l, life, &f[i]);
	}
	for (uint32_t i = 0; i < COUNT / 10; i++) {
		const struct life_facts now = lives_facts(&l, lives_at(&l, i));

		assert_memory_equal(&now, &f[i], sizeof(now));
	}
	assert_true(l.facts.count < COUNT / 100);
	lives_free(&l);
}

static void levels_come_back(void **state)
{
	static struct device_level said[COUNT];
	struct levels_cursor at;
	struct chance c = { 7 };
	uint64_t seq = 0, ns = 0;
	struct levels l;

	(void)state;
	levels_init(&l, NULL);
	for (uint32_t i = 0; i < COUNT; i++) {
		int device = chance_below(&c, 3) ? 0 : (int)chance_below(&c, LEVEL_DEVICES);

		seq += step(&c);
		ns = chance_below(&c, 50) ? ns + step(&c) : ns - 3;
		said[i] = l.last[device];
		said[i].seq = seq;
		said[i].ns = ns;
		said[i].device = device;
		said[i].reserved = chance_below(&c, 1u << 30) << 6;
		if (!chance_below(&c, 10)) {
			said[i].context = chance_below(&c, 1u << 30);
			said[i].free_bytes = 0 - said[i].context;
			said[i].total_bytes = 1ull << chance_below(&c, 40);
		}
		levels_add(&l, &said[i]);
		if (!i)
			levels_first(&at, &l);
		else
			levels_next(&at);
		assert_non_null(at.now);
		assert_memory_equal(at.now, &said[i], sizeof(said[i]));
	}
	levels_first(&at, &l);
	for (uint32_t i = 0; i < COUNT; i++, levels_next(&at))
		assert_memory_equal(at.now, &said[i], sizeof(said[i]));
	assert_null(at.now);
	assert_true(l.rows.chunks->count << 18 < COUNT * 20);
	levels_free(&l);
}

/* What a moment passes over has ended before it; what it stops at may be there. */
static void runs_are_skipped(void **state)
{
	enum { LIVES = 5 * LIVES_RUN + 7 };
	struct lives l;

	(void)state;
	lives_init(&l);
	for (uint32_t i = 0; i < LIVES; i++)
		lives_add(&l, &(struct life_request){ .size = 0 });
	for (uint32_t i = 0; i < LIVES; i++)
		if (i != 700)
			lives_end(&l, i, &(struct position){ .seq = 1000 + i, .stage = i % 3 }, i);
	assert_int_equal(lives_skip(&l, 0, 1), 0);
	assert_int_equal(lives_skip(&l, 0, 1000 + LIVES_RUN - 1), 0);
	assert_int_equal(lives_skip(&l, 0, 1000 + LIVES_RUN), LIVES_RUN);
	assert_int_equal(lives_skip(&l, 0, UINT64_MAX), 2 * LIVES_RUN); /* 700 lives on */
	assert_int_equal(lives_skip(&l, 3 * LIVES_RUN, UINT64_MAX), 5 * LIVES_RUN);
	assert_int_equal(lives_skip(&l, 1, UINT64_MAX), 1);
	for (uint32_t i = 0; i < LIVES; i++) {
		assert_int_equal(lives_seq(&l, &lives_at(&l, i)->died), i == 700 ? 0 : 1000 + i);
		assert_int_equal(lives_at(&l, i)->died_stack, i == 700 ? 0 : i);
	}
	lives_free(&l);
}

/* Also between the ends of what a number can be; a row of eleven lives has room. */
static void numbers_come_back(void **state)
{
	const uint32_t ends[] = { 0, 1, 2, INT32_MAX, (uint32_t)INT32_MAX + 1, UINT32_MAX };
	struct chance c = { 11 };

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint32_t life = ends[chance_below(&c, 6)] + (uint32_t)chance_below(&c, 5) - 2;
		uint32_t before = chance_below(&c, 2) ? ends[chance_below(&c, 6)]
						      : (uint32_t)chance_below(&c, UINT32_MAX);
		uint32_t got = before;
		uint8_t row[VARINT_MOST], *end = packed_put_life(row, life, before);

		assert_true(end - row <= 5);
		assert_ptr_equal(packed_get_life(row, &got), end);
		assert_int_equal(got, life);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back),   cmocka_unit_test(positions_are_shared),
		cmocka_unit_test(facts_are_shared), cmocka_unit_test(times_come_back),
		cmocka_unit_test(levels_come_back), cmocka_unit_test(runs_are_skipped),
		cmocka_unit_test(lives_are_read),   cmocka_unit_test(numbers_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

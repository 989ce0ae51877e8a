/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of blocks: the places of an event, which block a place belongs to, first and last use,
 * pauses, uses around a moment, and what is not said where a launch was not read. Events by chance
 * are judged by plain arrays.
 * links: tests/unit/recordings.c
 */
#include "fed_model.h"

#include "../../format/record.h"
#include "../../format/uses.h"

static void put_places(struct gmt_event *e, size_t n, const uint64_t *places)
{
	e->addr = places[0];
	for (unsigned i = 1; i < n; i++)
		gmt_use_put(e, i, places[i]);
}

/* An event of a kernel with this name that touches some places; more than six need another one. */
static void launch_of(unsigned kind, uint32_t thread, unsigned flags, uint32_t name, size_t n,
		      const uint64_t *places)
{
	struct gmt_event e = { .kind = kind, .thread = thread, .flags = flags, .arg1 = name };

	put_places(&e, n, places);
	feed(e);
}

#define LAUNCH(name, ...)                                                                      \
	launch_of(GMT_USE, 1, 0, name, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
		  (uint64_t[]){ __VA_ARGS__ })

/* Of the life number i, from 0. */
static struct block_uses uses(uint32_t i)
{
	struct block_uses x;

	uses_of(&m, i, &x);
	return x;
}

static void places_come_back(void **state)
{
	struct chance c = { 11 };

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint64_t places[GMT_USE_PLACES], got[GMT_USE_PLACES];
		unsigned n = 1 + (unsigned)chance_below(&c, GMT_USE_PLACES);
		struct gmt_event e = { .arg1 = 0xfffffff0u };

		places[0] = 0x700000000000 + chance_below(&c, 1ull << 40);
		for (unsigned i = 1; i < n; i++) {
			do
				places[i] = places[0] + (chance_next(&c) >> chance_below(&c, 64)) -
					    (chance_next(&c) >> chance_below(&c, 64));
			while (!gmt_use_is_near(places[0], places[i]));
		}
		put_places(&e, n, places);
		assert_int_equal(gmt_use_places(&e, got), n);
		assert_int_equal(gmt_use_by(&e), 0xfffffff0u);
		assert_int_equal(got[0], places[0]);
		for (unsigned i = 1; i < n; i++)
			assert_int_equal(got[i], places[i] / GMT_USE_UNIT * GMT_USE_UNIT);
	}
	assert_int_equal(
		gmt_use_places(&(struct gmt_event){ .size = 1 }, (uint64_t[GMT_USE_PLACES]){ 0 }),
		0);
}

static void near_is_what_fits(void **state)
{
	const uint64_t first = 0x700000000000, reach = 1ull << 39; /* 2^31 units */

	(void)state;
	assert_true(gmt_use_is_near(first, first + reach - 256));
	assert_false(gmt_use_is_near(first, first + reach));
	assert_true(gmt_use_is_near(first, first - reach));
	assert_false(gmt_use_is_near(first, first - reach - 256));
	assert_false(gmt_use_is_near(first + 255, first)); /* the same unit */
}

static void first_last_and_pause(void **state)
{
	struct block_uses x;

	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0x10000, 0x2000); /* 1 */
	block(GMT_BLOCK_ALLOC, 0x20000, 0x2000);
	LAUNCH(7, 0x10000, 0x20000);   /* 3 */
	LAUNCH(8, 0x10000);	       /* 4 */
	LAUNCH(8, 0x20000, 0x10fff00); /* 5 */
	block(GMT_BLOCK_ALLOC, 0x30000, 0x2000);
	LAUNCH(9, 0x11f00, 0x11000); /* 7: once, inside of it */
	block(GMT_BLOCK_FREE, 0x10000, 0x2000);
	model_settle(&m);
	x = uses(0);
	assert_true(x.known);
	assert_int_equal(x.count, 3);
	assert_int_equal(x.first_ns, 30);
	assert_int_equal(x.last_ns, 70);
	assert_int_equal(x.last_seq, 7);
	assert_int_equal(x.pause_ns, 30);
	assert_int_equal(x.pause_from_ns, 40);
	assert_int_equal(uses_kind(&m.uses, x.works.last)->name, 9);
	assert_int_equal(uses_kind(&m.uses, x.works.first)->name, 7);
	assert_int_equal(uses(1).count, 2);
	assert_int_equal(uses(1).last_ns, 50);
	assert_true(uses(2).known);
	assert_int_equal(uses(2).count, 0);
	assert_int_equal(uses(2).first_ns, 0);
	assert_int_equal(m.uses.tally.launches, 4);
	assert_true(uses_complete(&m));
	model_free(&m);
}

/* A place is of the block that is there at that event. */
static void an_address_comes_again(void **state)
{
	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0x10000, 0x2000);
	LAUNCH(1, 0x10000);
	block(GMT_BLOCK_FREE, 0x10000, 0x2000);
	LAUNCH(1, 0x10000); /* nothing is there */
	block(GMT_BLOCK_ALLOC, 0x10000, 0x200);
	LAUNCH(1, 0x10000, 0x10200); /* 0x10200 is behind it */
	block(GMT_BLOCK_FREE, 0x10000, 0x200);
	block(GMT_BLOCK_ALLOC, 0x0f000, 0x2000);
	LAUNCH(1, 0x10000);
	model_settle(&m);
	assert_int_equal(uses(0).count, 1);
	assert_int_equal(uses(0).last_seq, 2);
	assert_int_equal(uses(1).count, 1);
	assert_int_equal(uses(1).last_seq, 6);
	assert_int_equal(uses(2).count, 1);
	assert_int_equal(uses(2).last_seq, 9);
	model_free(&m);
}

/* More places belong to the latest launch of their thread, and are no launch. */
static void more_places(void **state)
{
	(void)state;
	fresh();
	for (uint64_t i = 1; i <= 4; i++)
		block(GMT_BLOCK_ALLOC, i << 16, 0x200);
	launch_of(GMT_USE, 1, 0, 5, 1, (uint64_t[]){ 0x10000 });
	launch_of(GMT_USE, 2, 0, 6, 1, (uint64_t[]){ 0x20000 });
	launch_of(GMT_USE, 1, GMT_FLAG_MORE, 5, 2, (uint64_t[]){ 0x30000, 0x10000 });
	launch_of(GMT_USE, 3, GMT_FLAG_MORE, 5, 1,
		  (uint64_t[]){ 0x40000 }); /* of none that is known */
	model_settle(&m);
	assert_int_equal(m.uses.tally.launches, 2);
	assert_int_equal(m.uses.tally.unread, 0);
	assert_int_equal(uses(0).count, 1);
	assert_int_equal(uses(2).last_seq, 5);
	assert_int_equal(uses_kind(&m.uses, uses(2).works.last)->name, 5);
	assert_int_equal(uses(3).count, 0);
	model_free(&m);
}

static void graph_use(uint64_t handle, unsigned flags, size_t n, const uint64_t *places)
{
	struct gmt_event e = { .kind = GMT_GRAPH_USE, .stream = handle, .flags = flags };

	put_places(&e, n, places);
	feed(e);
}

static void graphs(void **state)
{
	uint64_t many[4];

	(void)state;
	fresh();
	for (uint64_t i = 1; i <= 40; i++)
		block(GMT_BLOCK_ALLOC, i << 16, 0x200);
	for (uint64_t i = 1; i <= 40; i += 4) { /* more than a row of places takes */
		for (uint64_t k = 0; k < 4; k++)
			many[k] = (i + k) << 16;
		graph_use(77, i == 1 ? 0 : GMT_FLAG_MORE, 4, many);
	}
	graph_use(78, 0, 1, (uint64_t[]){ 0x10000 });
	feed((struct gmt_event){ .kind = GMT_GRAPH_LAUNCH, .addr = 77 });
	feed((struct gmt_event){ .kind = GMT_GRAPH_LAUNCH, .addr = 78 });
	model_settle(&m);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(uses(i).count, i ? 1 : 2);
	assert_true(uses_complete(&m));
	graph_use(77, 0, 1, (uint64_t[]){ 0x20000 }); /* an update: the others are void */
	feed((struct gmt_event){ .kind = GMT_GRAPH_LAUNCH, .addr = 77 });
	model_settle(&m);
	assert_int_equal(uses(1).count, 2);
	assert_int_equal(uses(2).count, 1);
	assert_int_equal(m.uses.tally.launches, 3);
	feed((struct gmt_event){ .kind = GMT_GRAPH_LAUNCH, .addr = 79 }); /* not known */
	model_settle(&m);
	assert_int_equal(m.uses.tally.unread, 1);
	assert_false(uses_complete(&m));
	model_free(&m);
}

/* Segments of the framework are no blocks; what a program takes itself is. */
static void cuda_memory(void **state)
{
	const struct gmt_event own = {
		.kind = GMT_MEM_ALLOC, .arg0 = GMT_MEM_DEVICE, .addr = 0x50000, .size = 0x1000
	};
	struct gmt_event segment = own;

	(void)state;
	segment.addr = 0x100000;
	segment.size = 0x100000;
	segment.flags = GMT_FLAG_FRAMEWORK;
	fresh();
	feed(own);
	feed(segment);
	LAUNCH(1, 0x50800, 0x180000);
	block(GMT_BLOCK_ALLOC, 0x180000, 0x1000);
	feed((struct gmt_event){ .kind = GMT_TRANSFER,
				 .arg0 = GMT_TRANSFER_SET,
				 .arg1 = 3,
				 .addr = 0x180800,
				 .size = 16 });
	model_settle(&m);
	assert_int_equal(uses(0).count, 1);
	assert_int_equal(uses(1).count, 0);
	assert_int_equal(uses(2).count, 1);
	assert_int_equal(uses_kind(&m.uses, uses(2).works.last)->transfer, GMT_TRANSFER_SET);
	assert_int_equal(m.uses.tally.launches, 1);
	model_free(&m);
}

static enum use_future future(uint64_t at, uint32_t life)
{
	const struct moment mo = { .seq = at, .framework = true };

	return uses_future(&m, &mo, life, uses_refused(&m, &mo));
}

static void what_is_not_said(void **state)
{
	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0x10000, 0x200);
	block(GMT_BLOCK_FREE, 0x10000, 0x200);
	model_settle(&m);
	assert_false(uses_known(&m));
	assert_false(uses(0).known);
	assert_int_equal(uses_bound(&m, 0), USES_UNKNOWN);
	model_free(&m);

	fresh();
	block(GMT_BLOCK_ALLOC, 0x10000, 0x200);
	LAUNCH(1, 0x10000);
	block(GMT_BLOCK_ALLOC, 0x20000, 0x200); /* 3: the peak */
	block(GMT_BLOCK_FREE, 0x10000, 0x200);
	model_settle(&m);
	assert_int_equal(future(3, 0), FUTURE_OVER);
	assert_int_equal(future(1, 0), FUTURE_USED);
	assert_int_equal(future(3, 1), FUTURE_USED);
	feed((struct gmt_event){ .kind = GMT_USE }); /* could not be read */
	model_settle(&m);
	assert_int_equal(m.uses.tally.launches, 2);
	assert_int_equal(m.uses.tally.unread, 1);
	assert_int_equal(uses(0).count, 1);
	assert_int_equal(future(3, 0), FUTURE_USED);
	assert_int_equal(uses_bound(&m, 0), USES_UNKNOWN);
	model_free(&m);
}

/* A captured graph whose places nobody told may use anything; so may events that were left out. */
static void what_is_missing(void **state)
{
	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0x10000, 0x200);
	LAUNCH(1, 0x10000);
	feed((struct gmt_event){ .kind = GMT_GRAPH_BEGIN, .stream = 7 });
	feed((struct gmt_event){ .kind = GMT_GRAPH_END, .stream = 7, .arg0 = 1 });
	model_settle(&m);
	assert_true(uses_known(&m));
	assert_false(uses_complete(&m));
	graph_use(77, 0, 1, (uint64_t[]){ 0x10000 });
	model_settle(&m);
	assert_true(uses_complete(&m));
	assert_true(uses(0).known);
	feed((struct gmt_event){ .kind = GMT_THINNED, .size = 9 });
	model_settle(&m);
	assert_false(uses(0).known);
	assert_int_equal(uses(0).count, 0);
	model_free(&m);
}

/* What lives on is over only where the program went on for long without it, and was not refused. */
static void futures(void **state)
{
	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		fresh();
		block(GMT_BLOCK_ALLOC, 0x10000, 0x200);
		block(GMT_BLOCK_ALLOC, 0x20000, 0x200);
		for (int i = 0; i < 3; i++) {
			LAUNCH(1, 0x10000);
			LAUNCH(1, 0x20000);
		}
		block(GMT_BLOCK_ALLOC, 0x30000, 0x200); /* 9 */
		for (int i = 0; i < 6; i++)
			LAUNCH(1, 0x30000);
		LAUNCH(1, 0x20000);
		if (refused)
			feed((struct gmt_event){ .kind = GMT_BLOCK_OOM, .size = 512 });
		model_settle(&m);
		assert_int_equal(future(9, 0), FUTURE_REFUSED); /* no end: it may go on */
		feed((struct gmt_event){ .kind = GMT_END });
		model_settle(&m);
		assert_int_equal(future(9, 0), refused ? FUTURE_REFUSED : FUTURE_OVER);
		assert_int_equal(future(9, 1), FUTURE_USED);
		assert_int_equal(future(seq, 1), FUTURE_USED);
		model_free(&m);
	}
}

/* Plain arrays of blocks that come and go, and of what touches them. */
#define PLACES 60
#define WORKS  20000

static struct plain_use {
	uint32_t life;
	uint64_t seq;
} plain[4 * WORKS];

static void judge_around(size_t used, uint64_t at)
{
	struct moment mo = { .seq = at, .framework = true };
	struct use_around *got;

	model_take(&m, &mo);
	got = uses_around(&m, &mo);
	for (size_t i = 0; i < mo.count; i++) {
		uint64_t before = 0, after = 0;

		for (size_t u = 0; u < used; u++) {
			if (plain[u].life != mo.blocks[i].life - 1)
				continue;
			if (plain[u].seq <= at)
				before = plain[u].seq;
			else
				after = after ? after : plain[u].seq;
		}
		assert_true(got[i].known);
		assert_int_equal(uses_work(&m.uses, got[i].before)->seq, before);
		assert_int_equal(uses_work(&m.uses, got[i].after)->seq, after);
	}
	free(got);
	moment_free(&mo);
}

/* A block is in use until other work begins. */
static uint64_t next_work(uint64_t at)
{
	for (uint32_t i = 1; i < m.uses.works.count; i++)
		if (uses_work(&m.uses, i)->seq > at)
			return uses_work(&m.uses, i)->seq;
	return seq + 1;
}

static void judge_bound(size_t used, uint32_t lives)
{
	static uint64_t now[8 * WORKS];
	uint64_t most = 0, bytes = 0;

	memset(now, 0, sizeof(now));
	for (uint32_t i = 0; i < lives; i++) {
		struct block b;
		uint64_t first = 0, last = 0;

		model_block(&m, i, &b);
		for (size_t u = 0; u < used; u++)
			if (plain[u].life == i) {
				first = first ? first : plain[u].seq;
				last = plain[u].seq;
			}
		now[first ? first : b.seq] += b.size;
		now[first ? next_work(last) : b.died_seq ? b.died_seq : seq + 1] -= b.size;
	}
	for (uint64_t s = 0; s <= seq; s++) {
		bytes += now[s];
		most = bytes > most ? bytes : most;
	}
	assert_int_equal(uses_bound(&m, 0), most);
}

/* Of 20 times that a block is met, it ends as often; else work uses it. */
static void run_by_chance(unsigned ends)
{
	struct chance c = { 13 };
	uint32_t at[PLACES] = { 0 }, lives = 0; /* 1 + the life there */
	size_t used = 0;

	fresh();
	for (int i = 0; i < WORKS; i++) {
		uint64_t place = chance_below(&c, PLACES), addr = (place + 1) << 20;
		uint64_t places[3] = { addr, ((place + 7) % PLACES + 1) << 20, addr + 0x4000 };

		if (!at[place] || chance_below(&c, 20) < ends) {
			if (at[place])
				block(GMT_BLOCK_FREE, addr, 0x10000);
			at[place] = at[place] ? 0 : ++lives;
			if (at[place])
				block(GMT_BLOCK_ALLOC, addr, 0x10000 + 512 * (lives % 9));
			continue;
		}
		launch_of(GMT_USE, 1, 0, 1, 3, places);
		plain[used++] = (struct plain_use){ at[place] - 1, seq };
		if (at[(place + 7) % PLACES])
			plain[used++] = (struct plain_use){ at[(place + 7) % PLACES] - 1, seq };
	}
	model_settle(&m);
	for (int i = 1; i < 20; i++)
		judge_around(used, (uint64_t)i * WORKS / 20);
	judge_bound(used, lives);
	model_free(&m);
}

static void by_chance(void **state)
{
	(void)state;
	run_by_chance(1);
	run_by_chance(18); /* most are never used */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_come_back),
		cmocka_unit_test(near_is_what_fits),
		cmocka_unit_test(first_last_and_pause),
		cmocka_unit_test(an_address_comes_again),
		cmocka_unit_test(more_places),
		cmocka_unit_test(graphs),
		cmocka_unit_test(cuda_memory),
		cmocka_unit_test(what_is_not_said),
		cmocka_unit_test(what_is_missing),
		cmocka_unit_test(futures),
		cmocka_unit_test(by_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

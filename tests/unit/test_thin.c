/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events a bounded recording leaves out, one by one.
 *
 * links: shim/base/ shim/rings/ shim/stacks/ shim/recording/
 *
 * links: shim/process.c shim/bus.c shim/confine.c shim/leave.c shim/cuda/nvtx.c shim/cuda/resolve.c
 */
#include "../../format/record.h"
#include "../../format/uses.h"
#include "../../shim/recording/thin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

#define MOST 64

struct list {
	struct gmt_event events[MOST];
	uint32_t count;
};

static int add(void *ctx, const struct gmt_event *e)
{
	struct list *l = ctx;

	assert_in_range(l->count, 0, MOST - 1);
	l->events[l->count++] = *e;
	return 0;
}

/* The events numbered from 1, of which [first, last] may go. */
static struct list thinned(struct gmt_event *events, uint32_t count, uint64_t first, uint64_t last)
{
	struct thin_plan plan = { .ranges = { { first, last } }, .count = 1 };
	struct list kept = { .count = 0 };
	struct thin_out out = { add, &kept };
	struct thin_sums sums;

	assert_true(thin_begin(&plan));
	for (uint32_t i = 0; i < count; i++) {
		events[i].seq = i + 1;
		events[i].time_ns = i + 1;
		assert_true(thin_look(&events[i]));
	}
	assert_true(thin_turn());
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(thin_pass(&events[i], &out), 0);
	assert_int_equal(thin_finish(&out, &sums), 0);
	thin_end();
	return kept;
}

static uint32_t count_of(const struct list *l, unsigned kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->count; i++)
		n += l->events[i].kind == kind;
	return n;
}

#define EXTRA	 (GMT_KIND_REQUIRED - 1)
#define REQUIRED 255

/* A kind with no role of its own: its number says whether a reader can do without. */
static void kinds_by_their_numbers(void **state)
{
	struct gmt_event events[] = {
		{ .kind = GMT_MEM_ALLOC, .addr = 4096, .size = 10, .arg0 = GMT_MEM_DEVICE },
		{ .kind = EXTRA, .addr = 4096 },
		{ .kind = REQUIRED, .addr = 4096 },
		{ .kind = GMT_SEGMENT_POOL, .addr = 4096 },
		{ .kind = EXTRA, .addr = 4096 },
		{ .kind = GMT_MARK },
	};
	struct list kept = thinned(events, 6, 2, 5);

	(void)state;
	assert_false(gmt_kind_is_known(EXTRA) || gmt_kind_is_known(REQUIRED));
	assert_int_equal(count_of(&kept, EXTRA), 0);
	assert_int_equal(count_of(&kept, REQUIRED), 1);
	assert_int_equal(count_of(&kept, GMT_SEGMENT_POOL), 1);
	assert_int_equal(count_of(&kept, GMT_MARK), 1);
	assert_int_equal(count_of(&kept, GMT_THINNED), 2);
}

#define PLACE(n) (0x7f0000000000ull + (n)*4096ull)

static struct gmt_event use(uint64_t first, uint64_t second, uint16_t flags)
{
	struct gmt_event e = { .kind = GMT_USE, .addr = first, .flags = flags, .thread = 1 };

	if (second)
		gmt_use_put(&e, 1, second);
	return e;
}

/* Of each place the first and the last use; a launch of several events stays whole. */
static void first_and_last_uses(void **state)
{
	struct gmt_event events[] = {
		{ .kind = GMT_MARK },
		use(PLACE(1), PLACE(2), 0),	 /* 2: first of both */
		use(PLACE(1), 0, 0),		 /* 3: goes */
		use(PLACE(2), 0, 0),		 /* 4: last of the second */
		use(PLACE(1), 0, 0),		 /* 5: a launch ... */
		use(PLACE(3), 0, GMT_FLAG_MORE), /* 6: ... first and last of the third */
		use(PLACE(1), 0, 0),		 /* 7: last of the first */
		{ .kind = GMT_GRAPH_USE, .addr = PLACE(1) }, /* 8: stays */
		{ .kind = GMT_MARK },
	};
	struct list kept = thinned(events, 9, 2, 8);
	static const uint64_t stay[] = { 2, 4, 5, 6, 7, 8 };
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < kept.count; i++)
		if (kept.events[i].kind == GMT_USE || kept.events[i].kind == GMT_GRAPH_USE)
			assert_int_equal(kept.events[i].seq, stay[n++]);
	assert_int_equal(n, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_by_their_numbers),
		cmocka_unit_test(first_and_last_uses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

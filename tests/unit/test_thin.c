/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events a bounded recording leaves out, one by one, and the totals that stand for them.
 *
 * links: shim/base/ shim/rings/ shim/stacks/ shim/recording/
 *
 * links: shim/process.c shim/bus.c shim/confine.c shim/leave.c shim/cuda/nvtx.c shim/cuda/resolve.c
 */
#include "../../format/record.h"
#include "../../format/uses.h"
#include "../../shim/recording/device_memory.h"
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

static struct gmt_event use_of(uint64_t place, uint64_t other, uint32_t more)
{
	struct gmt_event e = { .kind = GMT_USE, .addr = place, .flags = more };

	if (other)
		gmt_use_put(&e, 1, other);
	return e;
}

#define BLOCK(KIND, PLACE)                                \
	{                                                 \
		.kind = KIND, .addr = PLACE, .size = 1024 \
	}

enum { OLD = 4096, ENDS = 8192, NEW = 12288, PASSING = 16384 };

/* The first use and the last one of each block that stays: also in its middle, and in a record that
 * goes on with another one. */
static void uses_of_what_stays(void **state)
{
	struct gmt_event events[] = { BLOCK(GMT_BLOCK_ALLOC, OLD),
				      BLOCK(GMT_BLOCK_ALLOC, ENDS),
				      /* from here on */
				      use_of(OLD, 0, 0),
				      BLOCK(GMT_BLOCK_ALLOC, NEW),
				      use_of(NEW, 0, 0),
				      use_of(NEW, 0, 0),
				      BLOCK(GMT_BLOCK_ALLOC, PASSING),
				      use_of(PASSING, 0, 0),
				      use_of(PASSING, 0, 0),
				      use_of(NEW, 0, GMT_FLAG_MORE),
				      use_of(OLD, 0, 0),
				      use_of(ENDS, 0, 0),
				      use_of(ENDS + 512, 0, 0),
				      BLOCK(GMT_BLOCK_FREE, ENDS),
				      BLOCK(GMT_BLOCK_FREE, PASSING),
				      /* to here */
				      { .kind = GMT_MARK } };
	static const uint64_t stay[] = { 5, 9, 10, 11, 12, 13 };
	struct list kept = thinned(events, 16, 3, 15);
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < kept.count; i++)
		if (kept.events[i].kind == GMT_USE)
			assert_int_equal(kept.events[i].seq, stay[n++]);
	assert_int_equal(n, 6);
}

static void follow(struct device_memory *m, struct gmt_event e)
{
	memory_follow(m, &e);
}

#define SAYS(...) follow(&m, (struct gmt_event){ __VA_ARGS__ })

/* As they are written: a free that took long comes behind the next allocation at its address. */
static void totals_of_events_out_of_order(void **state)
{
	struct device_memory m = { 0 };

	(void)state;
	SAYS(.seq = 1, .kind = GMT_MEM_ALLOC, .addr = 512, .size = 100, .arg0 = GMT_MEM_DEVICE);
	SAYS(.seq = 4, .kind = GMT_MEM_ALLOC, .addr = 512, .size = 30, .arg0 = GMT_MEM_DEVICE);
	SAYS(.seq = 3, .kind = GMT_MEM_FREE, .addr = 512);
	assert_int_equal(memory_total(&m, 0), 30);
	SAYS(.seq = 5, .kind = GMT_MEM_FREE, .addr = 512);
	assert_int_equal(memory_total(&m, 0), 0);
	memory_free(&m);
}

/* What ends with a context is what was allocated in it; physical memory is no context's. */
static void totals_when_contexts_end(void **state)
{
	struct device_memory m = { 0 };

	(void)state;
	SAYS(.seq = 1, .kind = GMT_MEM_ALLOC, .addr = 1, .size = 1, .arg0 = GMT_MEM_DEVICE);
	SAYS(.seq = 2, .kind = GMT_CTX_CURRENT, .addr = 77, .device = -1);
	SAYS(.seq = 3, .kind = GMT_MEM_ALLOC, .addr = 2, .size = 10, .arg0 = GMT_MEM_PITCHED);
	SAYS(.seq = 4, .kind = GMT_MEM_ALLOC, .addr = 3, .size = 100, .arg0 = GMT_MEM_ASYNC);
	SAYS(.seq = 5, .kind = GMT_PHYS_CREATE, .addr = 4, .size = 1000);
	SAYS(.seq = 6, .kind = GMT_MAP, .addr = 2, .size = 1000, .arg0 = 4);
	SAYS(.seq = 7, .kind = GMT_PHYS_RELEASE, .addr = 4);
	SAYS(.seq = 8, .kind = GMT_MEM_ALLOC, .addr = 5, .size = 9000, .arg0 = GMT_MEM_MANAGED);
	assert_int_equal(memory_total(&m, 0), 1111);
	SAYS(.seq = 9, .kind = GMT_CTX_DESTROY, .addr = 78, .device = -1);
	assert_int_equal(memory_total(&m, 0), 1111);
	SAYS(.seq = 10, .kind = GMT_CTX_DESTROY, .addr = 77, .device = -1);
	assert_int_equal(memory_total(&m, 0), 1101);
	SAYS(.seq = 11, .kind = GMT_CTX_DESTROY, .device = 1);
	assert_int_equal(memory_total(&m, 0), 1101);
	SAYS(.seq = 12, .kind = GMT_CTX_DESTROY, .device = 0);
	assert_int_equal(memory_total(&m, 0), 0);
	SAYS(.seq = 13, .kind = GMT_UNMAP, .addr = 2, .size = 1000);
	SAYS(.seq = 14, .kind = GMT_MEM_FREE, .addr = 1);
	assert_int_equal(memory_total(&m, 0), 0);
	memory_free(&m);
}

/* Mappings with a hole between them, in one call. */
static void totals_of_mappings(void **state)
{
	struct device_memory m = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		SAYS(.seq = 1, .kind = GMT_PHYS_CREATE, .addr = i + 1, .size = 10);
		SAYS(.seq = 2, .kind = GMT_MAP, .addr = 1000 + i * 10 + (i == 3) * 10, .size = 10,
		     .arg0 = i + 1);
		SAYS(.seq = 3, .kind = GMT_PHYS_RELEASE, .addr = i + 1);
	}
	SAYS(.seq = 4, .kind = GMT_PHYS_RETAIN, .addr = 2);
	assert_int_equal(memory_total(&m, 0), 40);
	SAYS(.seq = 5, .kind = GMT_UNMAP, .addr = 1010, .size = 40);
	assert_int_equal(memory_total(&m, 0), 20);
	SAYS(.seq = 6, .kind = GMT_PHYS_RELEASE, .addr = 2);
	assert_int_equal(memory_total(&m, 0), 10);
	memory_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_by_their_numbers),
		cmocka_unit_test(uses_of_what_stays),
		cmocka_unit_test(totals_of_events_out_of_order),
		cmocka_unit_test(totals_when_contexts_end),
		cmocka_unit_test(totals_of_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

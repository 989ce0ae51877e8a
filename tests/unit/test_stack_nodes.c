/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's memory has a bound: more stacks than the table of nodes has room for are cut, and
 * no event is lost by it.
 *
 * links: shim/base/ shim/rings/ shim/stacks/ shim/recording/
 *
 * links: shim/process.c shim/bus.c shim/confine.c shim/leave.c shim/cuda/nvtx.c shim/cuda/resolve.c
 */
#include "../../format/reader.h"
#include "../../format/record.h"
#include "../../shim/capture.h"
#include "../../shim/base/config.h"
#include "../../shim/recording/session.h"
#include "../../shim/rings/thread.h"
#include "../../shim/stacks/intern_stack.h"
#include "await_drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[] = "/tmp/gmt-nodes-XXXXXX", path[64];

struct found {
	uint64_t nodes, events, sizes;
};

static int on_def(void *ctx, const struct gmt_def *d)
{
	((struct found *)ctx)->nodes += d->kind == GMT_DEF_STACK;
	return 0;
}

static int on_event(void *ctx, const struct gmt_event *e)
{
	struct found *f = ctx;

	f->events += e->kind == GMT_MEM_ALLOC;
	f->sizes += e->size;
	assert_int_not_equal(e->kind, GMT_DROPPED);
	return 0;
}

static void read_back(struct found *f)
{
	static const struct gmt_tool tool = { .def = on_def, .event = on_event };
	struct gmt_reader *r;
	int err;

	r = gmt_reader_open(path, &err);
	assert_non_null(r);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, f), 0);
	gmt_reader_close(r);
}

static void record(uint64_t size)
{
	struct gmt_event e = { .kind = GMT_MEM_ALLOC, .addr = 4096, .size = size, .device = 0 };

	gmt_capture(&e);
}

/* More stacks than there is room for: they are cut, events are not, and memory has a bound. */
static void no_room_for_more_stacks(void **state)
{
	struct thread *t = thread_self();
	uint64_t value = 1, most = 1u << 20;
	uint32_t known, node = 0;
	struct found f = { 0 };

	(void)state;
	record(1);
	known = stack_node(t, 0, GMT_FRAME_NATIVE, value);
	assert_int_not_equal(known, 0);
	for (; value < most && stack_nodes_cut() < 1000; value++) {
		node = stack_node(t, 0, GMT_FRAME_NATIVE, value);
		if (value % 512 == 0)
			wait_for_drain();
	}
	assert_in_range(stack_nodes(), 250000, most - 1);
	assert_true(os_mapped() < 64u << 20);
	assert_int_equal(stack_node(t, 0, GMT_FRAME_NATIVE, 1), known);
	assert_int_equal(stack_nodes_cut(), 1000);
	assert_int_equal(node, 0);
	record(2);
	session_end();
	read_back(&f);
	assert_int_equal(f.events, 2);
	assert_int_equal(f.sizes, 3);
	assert_true(f.nodes <= stack_nodes() && f.nodes > 250000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(no_room_for_more_stacks) };
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/run.gmt", dir);
	gmt_config.output = path;
	gmt_config.stacks = 0;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(dir);
	return rc;
}

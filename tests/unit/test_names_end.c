/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More different names than the recorder keeps: each event that stands without its name is counted,
 * the recording says how many, and names from before keep their numbers.
 *
 * links: shim/base/ shim/rings/ shim/stacks/ shim/recording/
 *
 * links: shim/process.c shim/bus.c shim/confine.c shim/leave.c shim/cuda/nvtx.c shim/cuda/resolve.c
 */
#include "../../format/reader.h"
#include "../../format/record.h"
#include "../../shim/base/config.h"
#include "../../shim/capture.h"
#include "../../shim/recording/session.h"
#include "await_drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES 800000u

static char dir[] = "/tmp/gmt-names-XXXXXX", path[64];

static uint32_t name_of(unsigned i)
{
	char name[80];
	int n = snprintf(name, sizeof(name), "training step number %u of the run %x", i,
			 i * 2654435761u);

	return gmt_string(name, (size_t)n);
}

static uint64_t mark_all(void)
{
	uint64_t nameless = 0;

	for (unsigned i = 0; i < NAMES; i++) {
		struct gmt_event e = { .kind = GMT_MARK, .device = -1, .name = name_of(i) };

		e.arg1 = GMT_RANGE_PROGRAM;
		nameless += !e.name;
		gmt_capture(&e);
		if (i % 256 == 0)
			wait_for_drain();
	}
	return nameless;
}

struct found {
	uint64_t events, nameless, dropped, names, cut;
};

static int on_event(void *ctx, const struct gmt_event *e)
{
	struct found *f = ctx;

	f->events += e->kind == GMT_MARK;
	f->nameless += e->kind == GMT_MARK && !e->name;
	f->dropped += e->kind == GMT_DROPPED;
	return 0;
}

static int on_def(void *ctx, const struct gmt_def *d)
{
	static const char key[] = "recorder.names_cut";
	const char *text = (const char *)d->payload + sizeof(struct gmt_def_meta);
	struct found *f = ctx;

	f->names += d->kind == GMT_DEF_STRING && d->len > 20 && !memcmp(d->payload, "training", 8);
	if (d->kind == GMT_DEF_META && d->len > sizeof(struct gmt_def_meta) + sizeof(key) - 1 &&
	    !memcmp(text, key, sizeof(key) - 1))
		f->cut = strtoull(text + sizeof(key) - 1, NULL, 10);
	return 0;
}

static void each_event_without_its_name_is_counted(void **state)
{
	static const struct gmt_tool tool = { .event = on_event, .def = on_def };
	struct gmt_event first = { .kind = GMT_MEM_ALLOC, .addr = 4096, .size = 1 };
	uint32_t one = name_of(1);
	struct found f = { 0 };
	struct gmt_reader *r;
	uint64_t nameless;
	int err;

	(void)state;
	gmt_capture(&first);
	nameless = mark_all();
	assert_true(nameless > 1000 && nameless < NAMES / 2);
	assert_true(one && name_of(1) == one);
	session_end();
	r = gmt_reader_open(path, &err);
	assert_non_null(r);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, &f), 0);
	printf("%u names, %lu events without\n", NAMES, nameless);
	assert_int_equal(f.events, NAMES);
	assert_int_equal(f.dropped, 0);
	assert_int_equal(f.nameless, nameless);
	assert_int_equal(f.cut, nameless);
	assert_int_equal(f.names, NAMES - nameless);
	gmt_reader_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_event_without_its_name_is_counted),
	};
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

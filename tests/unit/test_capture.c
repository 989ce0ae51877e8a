/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point, end to end inside one process: 16 threads record with stacks and strings while
 * the drain writes; what the reader finds is what they said, every reference is defined, drops are
 * counted.
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

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 16
#define EVENTS	5000
#define IDS	200000u

static char dir[] = "/tmp/gmt-capture-XXXXXX", path[64];

static __attribute__((noinline)) void record(uint64_t who, uint64_t i)
{
	char name[32];
	int n = snprintf(name, sizeof(name), "name %d", (int)(i % 100));
	struct gmt_event e = { .kind = GMT_MEM_ALLOC, .addr = who, .size = i, .device = 0 };

	e.name = gmt_string(name, (size_t)n);
	gmt_capture(&e);
}

static __attribute__((noinline)) void descend(uint64_t who, uint64_t i, int depth)
{
	if (depth)
		descend(who, i, depth - 1);
	else
		record(who, i);
	__asm__ volatile("");
}

static void *work(void *arg)
{
	for (uint64_t i = 1; i <= EVENTS; i++)
		descend((uintptr_t)arg, i, (int)(i % 20));
	return NULL;
}

/* A thread that comes, says one thing and goes: its ring is used again. */
static void *visit(void *arg)
{
	record((uintptr_t)arg, 1);
	return NULL;
}

#define EARLY_NAMES 20000
static uint32_t early[THREADS][EARLY_NAMES];
static pthread_barrier_t all_here;

/* All threads ask for the same names at once, so that one is interrupted while it makes an id. */
static void *name_early(void *arg)
{
	uint32_t *ids = early[(uintptr_t)arg];
	char name[32];

	for (int i = 0; i < EARLY_NAMES; i++) {
		int n = snprintf(name, sizeof(name), "early %d", i);

		if (i % 1000 == 0)
			pthread_barrier_wait(&all_here);
		ids[i] = gmt_string(name, (size_t)n);
	}
	return NULL;
}

struct found {
	bool defined[8][IDS];
	uint64_t events, ends, dropped, last[THREADS + 200], wrong_order, undefined, metas, ranges;
	uint64_t seq;
};

static int on_def(void *ctx, const struct gmt_def *d)
{
	struct found *f = ctx;

	assert_true(d->kind < 8 && d->id < IDS);
	f->defined[d->kind][d->id] = true;
	f->metas += d->kind == GMT_DEF_META;
	return 0;
}

static int on_event(void *ctx, const struct gmt_event *e)
{
	struct found *f = ctx;

	assert_true(e->seq > f->seq);
	f->seq = e->seq;
	f->ends += e->kind == GMT_END;
	f->dropped += e->kind == GMT_DROPPED ? e->arg0 : 0;
	if (e->kind == GMT_RANGE_BEGIN) {
		assert_int_equal(e->arg0, 1000 - 512 + f->ranges++);
		assert_int_equal(f->events, 0);
		f->undefined += !f->defined[GMT_DEF_STRING][e->name];
		f->undefined += !f->defined[GMT_DEF_THREAD][e->thread];
	}
	if (e->kind != GMT_MEM_ALLOC)
		return 0;
	f->events++;
	f->wrong_order += e->size != ++f->last[e->addr];
	f->undefined +=
		!f->defined[GMT_DEF_STRING][e->name] + !f->defined[GMT_DEF_THREAD][e->thread];
	f->undefined += e->stack && !f->defined[GMT_DEF_STACK][e->stack];
	return 0;
}

static struct found *read_back(const char *file)
{
	static const struct gmt_tool tool = { .def = on_def, .event = on_event };
	struct found *f = calloc(1, sizeof(*f));
	struct gmt_reader *r;
	int err;

	r = gmt_reader_open(file, &err);
	assert_non_null(r);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, f), 0);
	gmt_reader_close(r);
	return f;
}

static void run_threads(int count, uintptr_t first, void *(*fn)(void *))
{
	pthread_t threads[200];

	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, fn, (void *)(first + (uintptr_t)i));
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* More than are kept; nobody but a device begins a recording. */
static void nothing_without_a_device(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		struct gmt_event e = { .kind = GMT_RANGE_BEGIN, .arg0 = i };

		e.name = gmt_string("early", 5);
		gmt_capture(&e);
	}
	assert_int_not_equal(access(path, F_OK), 0);
	assert_true(gmt_recording());
}

static void names_before_the_recording(void **state)
{
	(void)state;
	pthread_barrier_init(&all_here, NULL, THREADS);
	run_threads(THREADS, 0, name_early);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* Each thread got one id or another for a name, and each is defined. */
static void check_early(const struct found *f)
{
	for (int t = 0; t < THREADS; t++)
		for (int i = 0; i < EARLY_NAMES; i++)
			assert_true(early[t][i] && f->defined[GMT_DEF_STRING][early[t][i]]);
}

static void sixteen_threads(void **state)
{
	struct found *f;

	(void)state;
	run_threads(THREADS, 0, work);
	for (int i = 0; i < 5; i++)
		run_threads(40, THREADS + 40u * (unsigned)i % 200, visit);
	gmt_meta("test.key", "value", 5);
	session_end();
	assert_false(gmt_recording());
	f = read_back(path);
	assert_int_equal(f->events, THREADS * EVENTS + 200);
	assert_int_equal(f->ranges, 512);
	assert_int_equal(f->dropped, 0);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->undefined, 0);
	assert_int_equal(f->wrong_order, 0);
	assert_true(f->metas > 5);
	check_early(f);
	free(f);
}

static void the_files_are_private_and_the_live_one_is_gone(void **state)
{
	char live[80];
	struct stat st;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(live, sizeof(live), "%s.live", path);
	assert_int_not_equal(access(live, F_OK), 0);
}

/* The real call of a hook threw: nobody left. The next hook further out is an outermost one again.
 */
static void hooks_that_never_left(void **state)
{
	(void)state;
	assert_int_equal(gmt_enter(), 0);
	gmt_leave();
	{
		volatile char deep[4096];

		deep[0] = 0;
		(void)deep;
		assert_int_equal(gmt_enter(), 0);
	}
	assert_int_equal(gmt_enter(), 0);
	gmt_leave();
	gmt_leave();
	assert_int_equal(gmt_enter(), 0);
	gmt_saw_nested();
	assert_true(gmt_had_nested());
	assert_false(gmt_had_nested());
	gmt_leave();
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/run.gmt", dir);
	gmt_config.output = path;
#ifdef __SANITIZE_THREAD__
	/* libunwind ends its part of a thread after the sanitizer has ended its own, and crashes in
	 * it */
	gmt_config.stacks = GMT_STACKS_PYTHON;
#endif
	return 0;
}

static int clear(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_without_a_device),
		cmocka_unit_test(names_before_the_recording),
		cmocka_unit_test(sixteen_threads),
		cmocka_unit_test(the_files_are_private_and_the_live_one_is_gone),
		cmocka_unit_test(hooks_that_never_left),
	};

	return cmocka_run_group_tests(tests, set_up, clear);
}

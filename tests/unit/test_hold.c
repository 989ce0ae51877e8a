/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that have their place before a call and are stored after it: a free stands before the next
 * allocation at its address, however long its call takes and whatever others write meanwhile; a
 * refused one is no free; none is lost.
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

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS	4000
#define PLACES	64u /* addresses that all threads share */
#define REFUSAL 17

static char dir[] = "/tmp/gmt-hold-XXXXXX", path[64];

/* The device: who has an address may free it. */
static int taken[PLACES];
static uint64_t refusals;

static void say_alloc(uint64_t addr)
{
	struct gmt_event e = {
		.kind = GMT_MEM_ALLOC, .addr = addr, .size = 1, .arg0 = GMT_MEM_DEVICE
	};

	gmt_capture(&e);
}

/* The address is another's as soon as the call has done it, long before the hook goes on. */
static void free_and_say(uint64_t place, int rc)
{
	struct gmt_event e = { .kind = GMT_MEM_FREE, .addr = place + 1 };

	gmt_hold(&e);
	assert_true(e.seq);
	if (rc)
		__atomic_add_fetch(&refusals, 1, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&taken[place], 0, __ATOMIC_SEQ_CST);
	if (place % 8 == 0)
		sched_yield();
	gmt_settle(&e, rc);
}

static void *churn(void *arg)
{
	uint64_t x = (uintptr_t)arg + 1;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t place;
		int none = 0;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		place = (x >> 33) % PLACES;
		if (!__atomic_compare_exchange_n(&taken[place], &none, 1, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		say_alloc(place + 1);
		if (i % 16 == 0)
			free_and_say(place, REFUSAL);
		free_and_say(place, 0);
	}
	return NULL;
}

struct found {
	uint64_t seq, allocs, frees, refused, dropped, ends, late;
	bool alive[PLACES + 1];
	bool long_one; /* its free was seen */
};

#define LONG_ADDR 4096u

static int on_event(void *ctx, const struct gmt_event *e)
{
	struct found *f = ctx;

	assert_true(e->seq > f->seq);
	f->seq = e->seq;
	f->dropped += e->kind == GMT_DROPPED ? e->arg0 : 0;
	f->ends += e->kind == GMT_END;
	if (e->kind == GMT_MEM_FREE && e->addr == LONG_ADDR) {
		f->late = f->allocs;
		f->long_one = true;
	} else if (e->kind == GMT_MEM_ALLOC) {
		assert_false(f->alive[e->addr]);
		f->alive[e->addr] = true;
		f->allocs++;
	} else if (e->kind == GMT_MEM_FREE) {
		assert_true(f->alive[e->addr]);
		f->alive[e->addr] = false;
		f->frees++;
	} else if (e->kind == GMT_REFUSED) {
		assert_true(f->alive[e->addr]);
		assert_int_equal(e->arg0, GMT_MEM_FREE);
		assert_int_equal(e->arg1, REFUSAL);
		f->refused++;
	}
	return 0;
}

static struct found read_back(void)
{
	static const struct gmt_tool tool = { .event = on_event };
	struct found f = { .seq = 0 };
	struct gmt_reader *r;
	int err;

	r = gmt_reader_open(path, &err);
	assert_non_null(r);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, &f), 0);
	gmt_reader_close(r);
	return f;
}

/* The long call begins before all others and ends after them: its place is the first. */
static void places_are_those_before_the_call(void **state)
{
	struct gmt_event e = { .kind = GMT_MEM_FREE, .addr = LONG_ADDR };
	pthread_t threads[THREADS];
	struct found f;

	(void)state;
	gmt_hold(&e);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, churn, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	gmt_settle(&e, 0);
	session_end();
	f = read_back();
	assert_true(f.long_one);
	assert_int_equal(f.late, 0);
	assert_true(f.allocs > ROUNDS);
	assert_int_equal(f.frees, f.allocs);
	assert_int_equal(f.refused, refusals);
	assert_true(refusals);
	assert_int_equal(f.dropped, 0);
	assert_int_equal(f.ends, 1);
	unlink(path);
}

/* Nothing is recorded any more: nothing to settle either. */
static void after_the_end(void **state)
{
	struct gmt_event e = { .kind = GMT_MEM_FREE, .addr = 1, .seq = 5 };

	(void)state;
	gmt_hold(&e);
	assert_int_equal(e.seq, 0);
	gmt_settle(&e, 0);
	assert_int_not_equal(access(path, F_OK), 0);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/run.gmt", dir);
	gmt_config.output = path;
	gmt_config.stacks = GMT_STACKS_PYTHON;
	gmt_config.flush_ms = 1; /* many blocks, whose events overlap */
	return 0;
}

static int clear(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_those_before_the_call),
		cmocka_unit_test(after_the_end),
	};

	return cmocka_run_group_tests(tests, set_up, clear);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the rings of the live file call for the drain: late while they are few, so that blocks are
 * large, and early when many fill up together. A ring that a thread takes has room, also where
 * others take it, fill it and give it back at the same moment.
 *
 * links: shim/base/ shim/rings/
 */
#include "../../format/record.h"
#include "../../shim/rings/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>

static void few_rings_wait_longer(void **state)
{
	(void)state;
	assert_true(live_begin());
	for (uint32_t n = 1; n <= 4; n++) {
		assert_non_null(live_take(n));
		assert_int_equal(live_pressed(), GMT_RING_SLOTS / 2);
	}
	assert_non_null(live_take(5));
	assert_int_equal(live_pressed(), GMT_RING_SLOTS / 4);
	live_forget();
}

#define THREADS 16
#ifdef __SANITIZE_THREAD__ /* thirty times as slow */
#define TURNS 200
#else
#define TURNS 2000
#endif

static uint32_t full, running;

/* As a thread does that fills its ring: the next one, this one goes back. */
static void *fill_rings(void *arg)
{
	const struct gmt_event e = { .kind = GMT_MEM_ALLOC };

	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		struct gmt_ring *r = live_take(1);

		if (gmt_ring_used(r) > GMT_RING_SLOTS / 4)
			__atomic_add_fetch(&full, 1, __ATOMIC_RELAXED);
		while (gmt_ring_push(r, &e))
			;
		live_give(r);
	}
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void what_is_taken_has_room(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	assert_true(live_begin());
	running = THREADS;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, fill_rings, NULL);
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
		for (uint32_t i = 0; i < live_count(); i++)
			if (live_ring(i))
				gmt_ring_release(live_ring(i),
						 gmt_load_acquire(&live_ring(i)->head));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(full, 0);
	live_forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_rings_wait_longer),
		cmocka_unit_test(what_is_taken_has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

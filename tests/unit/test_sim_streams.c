/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device's recordings of streams into graphs, and its clock: what is done when.
 *
 * links: simgpu/core/
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../simgpu/core/clock.h"
#include "../../simgpu/core/memory.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };

static int start(void **state)
{
	(void)state;
	setenv("SIMGPU_CARD", "small=256MiB", 1);
	return sim_enter();
}

static int status_of(void *stream)
{
	int status = -1;

	assert_int_equal(capture_info(stream, &status, NULL), SIM_OK);
	return status;
}

static int calls;

static void call(void *data)
{
	(void)data;
	calls++;
}

static void a_graph_repeats_its_host_functions(void **state)
{
	struct sim_graph *graph;
	void *s, *exec;
	size_t n;

	(void)state;
	assert_int_equal(stream_create(&s, 1, 0), SIM_OK);
	assert_int_equal(capture_begin(s, NULL, GLOBAL), SIM_OK);
	assert_int_equal(capture_begin(s, NULL, GLOBAL), ERR_ILLEGAL_STATE);
	assert_int_equal(status_of(s), 1);
	assert_true(sim_capturing(s));
	calls = 0;
	assert_int_equal(launch_host(s, call, NULL), SIM_OK);
	assert_int_equal(launch_kernel(s, NULL, 1, 1, 0), SIM_OK);
	assert_int_equal(calls, 0);
	assert_int_equal(capture_end(s, &graph), SIM_OK);
	assert_false(sim_capturing(s));
	assert_int_equal(graph_nodes(graph, NULL, &n), SIM_OK);
	assert_int_equal(n, 2);
	assert_int_equal(graph_instantiate(&exec, graph, 0), SIM_OK);
	assert_int_equal(graph_destroy(graph), SIM_OK);
	assert_int_equal(graph_launch(exec, s) + graph_launch(exec, s), SIM_OK);
	assert_int_equal(calls, 2);
	assert_int_equal(graph_exec_destroy(exec), SIM_OK);
	assert_int_equal(stream_destroy(s), SIM_OK);
}

static void other_streams_join_by_an_event(void **state)
{
	struct sim_graph *graph;
	void *a, *b, *e;

	(void)state;
	stream_create(&a, 1, 0);
	stream_create(&b, 1, 0);
	event_create(&e, 0);
	assert_int_equal(capture_begin(a, NULL, GLOBAL), SIM_OK);
	assert_int_equal(status_of(b), 0);
	assert_int_equal(event_record(e, a), SIM_OK);
	assert_int_equal(stream_wait(b, e), SIM_OK);
	assert_int_equal(status_of(b), 1);
	assert_int_equal(capture_end(b, &graph), ERR_CAPTURE_UNMATCHED);
	assert_int_equal(capture_end(a, &graph), SIM_OK);
	assert_int_equal(status_of(b), 0);
	/* The event is of a recording that is over. */
	assert_int_equal(stream_wait(b, e), SIM_OK);
	assert_int_equal(status_of(b), 0);
	graph_destroy(graph);
	event_destroy(e);
	stream_destroy(a);
	stream_destroy(b);
}

static void waiting_spoils_a_recording(void **state)
{
	struct sim_graph *graph = (void *)1;
	int mode = RELAXED;
	void *s;

	(void)state;
	stream_create(&s, 1, 0);
	assert_int_equal(capture_begin(s, NULL, GLOBAL), SIM_OK);
	assert_int_equal(capture_thread_mode(&mode), SIM_OK);
	assert_int_equal(mode, GLOBAL);
	assert_int_equal(capture_forbids(), SIM_OK); /* a relaxed thread may */
	mode = GLOBAL;
	capture_thread_mode(&mode);
	assert_int_equal(mode, RELAXED);
	assert_int_equal(device_sync(0), ERR_CAPTURE_UNSUPPORTED);
	assert_int_equal(status_of(s), 2);
	assert_int_equal(capture_end(s, &graph), ERR_CAPTURE_INVALIDATED);
	assert_null(graph);
	assert_int_equal(capture_end(s, &graph), ERR_ILLEGAL_STATE);
	assert_int_equal(device_sync(0), SIM_OK);
	stream_destroy(s);
}

static void *elsewhere(void *stream)
{
	return (void *)(intptr_t)(stream ? capture_end(stream, NULL) : capture_forbids());
}

static int on_another_thread(void *stream)
{
	pthread_t t;
	void *result;

	pthread_create(&t, NULL, elsewhere, stream);
	pthread_join(t, &result);
	return (int)(intptr_t)result;
}

static void threads_are_bound_by_the_mode(void **state)
{
	struct sim_graph *graph;
	void *s;

	(void)state;
	stream_create(&s, 1, 0);
	capture_begin(s, NULL, THREAD_LOCAL);
	assert_int_equal(on_another_thread(NULL), SIM_OK);
	assert_int_equal(on_another_thread(s), ERR_CAPTURE_WRONG_THREAD);
	assert_int_equal(capture_end(s, &graph), SIM_OK);
	graph_destroy(graph);
	capture_begin(s, NULL, GLOBAL);
	assert_int_equal(on_another_thread(NULL), ERR_CAPTURE_UNSUPPORTED);
	assert_int_equal(capture_end(s, &graph), ERR_CAPTURE_INVALIDATED);
	stream_destroy(s);
}

static void events_tell_times_in_order(void **state)
{
	void *a, *b, *never;
	float ms = -1;

	(void)state;
	event_create(&a, 0);
	event_create(&b, 0);
	event_create(&never, 0);
	event_record(a, NULL);
	event_record(b, NULL);
	assert_int_equal(event_elapsed(&ms, a, b), SIM_OK);
	assert_true(ms > 0 && ms < 1000);
	assert_int_equal(event_elapsed(&ms, a, never), SIM_BAD_HANDLE);
	assert_int_equal(event_query(never), SIM_OK);
	event_destroy(a);
	event_destroy(b);
	event_destroy(never);
}

/* ---- the clock ---- */

#define MS 1000000ull

static void put(void *stream, uint64_t ns)
{
	assert_int_equal(launch_kernel_for(stream, NULL, 1, 32, 0, ns), SIM_OK);
}

static void work_takes_its_time(void **state)
{
	void *s, *a, *b;
	float ms = -1;

	(void)state;
	stream_create(&s, 1, 0);
	event_create(&a, 0);
	event_create(&b, 0);
	event_record(a, s);
	put(s, 25 * MS);
	event_record(b, s);
	assert_int_equal(stream_query(s), SIM_NOT_READY);
	assert_int_equal(event_query(b), SIM_NOT_READY);
	assert_int_equal(event_elapsed(&ms, a, b), SIM_NOT_READY);
	assert_int_equal(event_sync(b), SIM_OK);
	assert_int_equal(stream_query(s) | event_query(b), SIM_OK);
	assert_int_equal(event_elapsed(&ms, a, b), SIM_OK);
	assert_true(ms >= 25 && ms < 25.1);
	event_destroy(a);
	event_destroy(b);
	stream_destroy(s);
}

static void streams_go_side_by_side_and_wait(void **state)
{
	void *s, *t, *e;

	(void)state;
	stream_create(&s, 1, 0);
	stream_create(&t, 1, 0);
	event_create(&e, 2);
	put(s, 10 * MS);
	event_record(e, s);
	put(t, 20 * MS);
	stream_sync(s);
	assert_int_equal(stream_query(s), SIM_OK);
	assert_int_equal(stream_query(t), SIM_NOT_READY); /* both began at once */
	stream_sync(t);
	put(s, 10 * MS);
	event_record(e, s);
	stream_wait(t, e);
	assert_int_equal(stream_query(t), SIM_NOT_READY); /* nothing on it but that */
	stream_sync(t);
	assert_int_equal(stream_query(s), SIM_OK);
	event_destroy(e);
	stream_destroy(s);
	stream_destroy(t);
}

static void the_default_stream_waits_and_is_waited_for(void **state)
{
	void *blocking, *other;

	(void)state;
	stream_create(&blocking, 0, 0);
	stream_create(&other, 1, 0);
	put(blocking, 10 * MS);
	put(NULL, 10 * MS);
	put(other, 1 * MS);
	put(blocking, 5 * MS);
	stream_sync(other);
	assert_int_equal(stream_query(NULL), SIM_NOT_READY);
	clock_spend(0, 17 * MS);
	assert_int_equal(stream_query(blocking), SIM_NOT_READY); /* 10 + 10 + 5 */
	clock_spend(0, 7 * MS);
	assert_int_equal(stream_query(blocking), SIM_OK);
	stream_destroy(blocking);
	stream_destroy(other);
}

static void whoever_asks_gets_on(void **state)
{
	int times = 0;
	void *e;

	(void)state;
	event_create(&e, 2);
	put(NULL, 10000 * MS);
	event_record(e, NULL);
	while (event_query(e) == SIM_NOT_READY)
		assert_true(++times < 2000);
	assert_true(times > 900);
	put(NULL, 500 * MS);
	event_record(e, NULL);
	clock_sleep(600 * MS);
	clock_slept();
	assert_int_equal(event_query(e), SIM_OK);
	event_destroy(e);
}

static void copies_of_a_direction_share_an_engine(void **state)
{
	const size_t bytes = 64 << 20;
	void *host, *device, *s, *t;

	(void)state;
	host_alloc(&host, bytes, 0, HOST_PINNED);
	sim_alloc(&device, bytes);
	stream_create(&s, 1, 0);
	stream_create(&t, 1, 0);
	device_sync(0);
	work_copy(s, device, host, bytes, false);
	work_copy(t, device, host, bytes, false);
	stream_sync(s);
	assert_int_equal(stream_query(t), SIM_NOT_READY);
	stream_sync(t);
	work_copy(s, device, host, bytes, false);
	work_copy(t, host, device, bytes, false);
	stream_sync(s);
	clock_spend(0, MS / 10); /* asked for a little later */
	assert_int_equal(stream_query(t), SIM_OK);
	work_copy(s, device, host, bytes, true); /* blocking */
	assert_int_equal(stream_query(s), SIM_OK);
	host_free(host, HOST_PINNED);
	sim_free(device);
	stream_destroy(s);
	stream_destroy(t);
}

/* As NCCL's watchdog: it never gave the device work, and sees collectives at ticks. */
static void *asks(void *event)
{
	return (void *)(intptr_t)event_query(event);
}

static int asked_elsewhere(void *event)
{
	pthread_t t;
	void *result;

	pthread_create(&t, NULL, asks, event);
	pthread_join(t, &result);
	return (int)(intptr_t)result;
}

static void who_only_asks_sees_ticks(void **state)
{
	struct work collective = { .ns = MS, .collective = true };
	void *s, *e;

	(void)state;
	stream_create(&s, 1, 0);
	event_create(&e, 2);
	clock_work(stream_find(s), &collective);
	event_record(e, s);
	assert_int_equal(asked_elsewhere(e), SIM_NOT_READY);
	stream_sync(s);
	assert_int_equal(event_query(e), SIM_OK);
	assert_int_equal(asked_elsewhere(e), SIM_NOT_READY); /* no tick yet */
	clock_sleep(2000 * MS);
	assert_int_equal(asked_elsewhere(e), SIM_OK);
	clock_slept();
	event_destroy(e);
	stream_destroy(s);
}

static void graphs_keep_what_waits_for_what(void **state)
{
	struct sim_graph *graph;
	void *a, *b, *fork, *join, *exec, *nodes[8], *from[8], *to[8];
	size_t n = 8;

	(void)state;
	stream_create(&a, 1, 0);
	stream_create(&b, 1, 0);
	event_create(&fork, 2);
	event_create(&join, 2);
	capture_begin(a, NULL, GLOBAL);
	put(a, 1 * MS);
	event_record(fork, a);
	stream_wait(b, fork);
	put(b, 10 * MS);
	put(a, 5 * MS);
	assert_int_equal(capture_end(a, &graph), ERR_CAPTURE_UNJOINED);
	capture_begin(a, NULL, GLOBAL);
	put(a, 1 * MS);
	event_record(fork, a);
	stream_wait(b, fork);
	put(b, 10 * MS);
	put(a, 5 * MS);
	event_record(join, b);
	stream_wait(a, join);
	put(a, 1 * MS);
	assert_int_equal(capture_end(a, &graph), SIM_OK);
	assert_int_equal(graph_nodes(graph, nodes, &n), SIM_OK);
	assert_int_equal(n, 4);
	n = 8;
	assert_int_equal(graph_edges(graph, from, to, &n), SIM_OK);
	assert_int_equal(n, 4);
	n = 8;
	assert_int_equal(graph_before(nodes[3], from, &n), SIM_OK);
	assert_int_equal(n, 2);
	n = 8;
	assert_int_equal(graph_roots(graph, from, &n), SIM_OK);
	assert_int_equal(n, 1);
	assert_ptr_equal(from[0], nodes[0]);
	n = 8;
	assert_int_equal(graph_after(nodes[0], to, &n), SIM_OK);
	assert_int_equal(n, 2);
	/* The longest path: 1 + 10 + 1. */
	graph_instantiate(&exec, graph, 0);
	device_sync(0);
	graph_launch(exec, a);
	clock_spend(0, 11 * MS);
	assert_int_equal(stream_query(a), SIM_NOT_READY);
	clock_spend(0, 1 * MS);
	assert_int_equal(stream_query(a), SIM_OK);
	graph_exec_destroy(exec);
	graph_destroy(graph);
	event_destroy(fork);
	event_destroy(join);
	stream_destroy(a);
	stream_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_graph_repeats_its_host_functions),
		cmocka_unit_test(other_streams_join_by_an_event),
		cmocka_unit_test(waiting_spoils_a_recording),
		cmocka_unit_test(threads_are_bound_by_the_mode),
		cmocka_unit_test(events_tell_times_in_order),
		cmocka_unit_test(work_takes_its_time),
		cmocka_unit_test(streams_go_side_by_side_and_wait),
		cmocka_unit_test(the_default_stream_waits_and_is_waited_for),
		cmocka_unit_test(whoever_asks_gets_on),
		cmocka_unit_test(copies_of_a_direction_share_an_engine),
		cmocka_unit_test(who_only_asks_sees_ticks),
		cmocka_unit_test(graphs_keep_what_waits_for_what),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}

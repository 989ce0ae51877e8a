/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device's recordings of streams into graphs.
 *
 * links: simgpu/core/slots.c simgpu/core/memory.c simgpu/core/contents.c simgpu/core/extents.c
 * links: simgpu/core/copies.c simgpu/core/cards.c
 * links: simgpu/core/device.c simgpu/core/identity.c simgpu/core/pools.c simgpu/core/vmm.c
 * links: simgpu/core/stream.c simgpu/core/stream_capture.c simgpu/core/graph.c
 * links: simgpu/core/launch.c simgpu/core/arguments.c simgpu/core/pending.c
 * links: simgpu/core/clock.c simgpu/core/pollers.c simgpu/core/roofline.c simgpu/core/host.c
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../simgpu/core/core.h"

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
	assert_int_equal(graph_instantiate(&exec, graph), SIM_OK);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_graph_repeats_its_host_functions),
		cmocka_unit_test(other_streams_join_by_an_event),
		cmocka_unit_test(waiting_spoils_a_recording),
		cmocka_unit_test(threads_are_bound_by_the_mode),
		cmocka_unit_test(events_tell_times_in_order),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: synchronization, waits between streams, destruction. Work is done at the call; the clock
 * computes when it would end (clock.h). A stream that is being recorded returns an error
 * (stream_capture.c), and one with work of other ranks waits for them (pending.c). Any thread.
 */
#include "clock.h"
#include "memory.h"

int stream_destroy(void *stream)
{
	struct sim_stream *s = stream_find(stream);

	if (!s || stream_is_default(s))
		return SIM_BAD_HANDLE;
	capture_forget(s);
	nodes_done(&s->ends);
	ctx_stream_gone(stream_ctx(s));
	sim_handle_free(s);
	return SIM_OK;
}

int stream_sync(void *stream)
{
	struct sim_stream *s = stream_find(stream);
	int result;

	if (!s)
		return SIM_BAD_HANDLE;
	if (s->capture)
		return capture_spoil(s, ERR_CAPTURE_UNSUPPORTED);
	result = pending_wait(s->pending);
	clock_wait(s->device, clock_end(s));
	pools_sync(s->device);
	return result;
}

int stream_query(void *stream)
{
	struct sim_stream *s = stream_find(stream);

	if (!s)
		return SIM_BAD_HANDLE;
	if (s->capture)
		return capture_spoil(s, ERR_CAPTURE_UNSUPPORTED);
	if (!clock_reached(s->device, clock_end(s)) || pending_overdue(s->pending))
		return SIM_NOT_READY;
	return SIM_OK;
}

int device_sync(int device)
{
	int result = capture_forbids();

	if (result)
		return result;
	result = pending_wait_all(device);
	clock_wait_all(device);
	pools_sync(device);
	return result;
}

int stream_wait(void *stream, void *event)
{
	struct sim_stream *s = stream_find(stream);
	struct sim_event *e = sim_handle_check(event, EVENT_KIND);

	if (!s || !e)
		return SIM_BAD_HANDLE;
	if (e->capture)
		return capture_join(s, e);
	if (s->pending < e->pending)
		s->pending = e->pending;
	clock_join(s, e->recorded);
	return SIM_OK;
}

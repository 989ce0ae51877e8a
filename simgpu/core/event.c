/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: each has the moment at which it is reached, the graph's recording in which it was
 * recorded, if any (stream_capture.c), and its stream's last pending work (pending.c). Any thread.
 */
#include <string.h>
#include <time.h>
#include "clock.h"
#include "memory.h"
#include "pollers.h"

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

int event_create(void **out, unsigned int flags)
{
	struct sim_event *e;

	if (!out || flags & ~7u)
		return SIM_INVALID;
	e = sim_handle(EVENT_KIND, sizeof(*e));
	if (!e)
		return SIM_NOMEM;
	e->flags = flags;
	e->device = sim_device();
	*out = e;
	return SIM_OK;
}

int event_destroy(void *event)
{
	struct sim_event *e = sim_handle_check(event, EVENT_KIND);

	if (!e)
		return SIM_BAD_HANDLE;
	pollers_forget(e);
	nodes_done(&e->ends);
	sim_handle_free(e);
	return SIM_OK;
}

int event_record(void *event, void *stream)
{
	struct sim_stream *s = stream_find(stream);
	struct sim_event *e = sim_handle_check(event, EVENT_KIND);

	if (!s || !e)
		return SIM_BAD_HANDLE;
	if (e->device != s->device)
		return SIM_BAD_HANDLE;
	pollers_forget(e);
	capture_note(s, e);
	e->collective = s->collectives;
	e->pending = s->pending;
	if (!e->capture)
		e->recorded = clock_on() ? clock_mark(s) : now();
	return SIM_OK;
}

int event_record_external(void *event, void *stream)
{
	struct node_spec spec = { .type = NODE_EVENT_RECORD, .addr = (uintptr_t)event };

	if (!sim_handle_check(event, EVENT_KIND))
		return SIM_BAD_HANDLE;
	return stream_captures(stream, &spec) ? SIM_OK : event_record(event, stream);
}

int event_query(void *event)
{
	struct sim_event *e = sim_handle_check(event, EVENT_KIND);

	if (!e)
		return SIM_BAD_HANDLE;
	if (e->capture && capture_lives(e->capture))
		return ERR_CAPTURED_EVENT;
	return clock_event(e) ? SIM_OK : SIM_NOT_READY;
}

int event_sync(void *event)
{
	struct sim_event *e = sim_handle_check(event, EVENT_KIND);
	int result;

	if (!e)
		return SIM_BAD_HANDLE;
	if (e->capture && capture_lives(e->capture))
		return ERR_CAPTURED_EVENT;
	result = pending_wait(e->pending);
	clock_wait(e->device, e->recorded);
	pools_sync(e->device);
	return result;
}

/* At least 0.001 ms, because two events are never at quite the same time. */
int event_elapsed(float *ms, void *start, void *end)
{
	struct sim_event *a = sim_handle_check(start, EVENT_KIND);
	struct sim_event *b = sim_handle_check(end, EVENT_KIND);

	if (!a || !b || !a->recorded || !b->recorded || (a->flags | b->flags) & EVENT_NO_TIMING)
		return SIM_BAD_HANDLE;
	if (a->device != b->device || a->capture || b->capture)
		return SIM_BAD_HANDLE;
	if (!ms)
		return SIM_INVALID;
	if (!clock_event(a) || !clock_event(b))
		return SIM_NOT_READY;
	*ms = (float)(((double)b->recorded - (double)a->recorded) / 1e6);
	if (*ms >= 0 && *ms < 0.001f)
		*ms = 0.001f;
	return SIM_OK;
}

/* The handle holds only the device: an event opened from another process is always reached. */
int event_share(void *event, void *handle64)
{
	struct sim_event *e = sim_handle_check(event, EVENT_KIND);

	if (!e)
		return SIM_BAD_HANDLE;
	if (!(e->flags & EVENT_INTERPROCESS))
		return SIM_INVALID;
	memset(handle64, 0, 64);
	memcpy(handle64, &e->device, sizeof(e->device));
	return SIM_OK;
}

int event_open(void **out, const void *handle64)
{
	(void)handle64;
	return event_create(out, EVENT_INTERPROCESS | EVENT_NO_TIMING);
}

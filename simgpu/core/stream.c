/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events. What work does is done when it is asked for; when it ends is worked out by
 * the clock (clock.h). So a stream is a name with flags and a moment, and an event a moment; both
 * know whether they belong to a graph that is being recorded (stream_capture.c), and what work of
 * other ranks they wait for (pending.c). Any thread.
 */
#include <string.h>
#include <time.h>
#include "clock.h"

static uint64_t next_id = 10;
/* The default stream of each device, in its two forms: legacy and per thread. */
static struct sim_stream defaults[SIM_MAX_DEVICES][2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_defaults(void)
{
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		for (int j = 0; j < 2; j++)
			defaults[i][j] = (struct sim_stream){ .device = i, .id = 1 + j };
}

struct sim_stream *stream_find(void *handle)
{
	uintptr_t h = (uintptr_t)handle;

	pthread_once(&once, make_defaults);
	if (h <= 2)
		return &defaults[sim_device()][h == 2];
	return sim_handle_check(handle, STREAM_KIND);
}

bool stream_is_default(const struct sim_stream *s)
{
	return (uintptr_t)s - (uintptr_t)defaults < sizeof(defaults);
}

struct sim_stream *stream_legacy(int device)
{
	return &defaults[device][0];
}

int stream_create(void **out, unsigned int flags, int priority)
{
	struct sim_stream *s;

	if (!out || flags & ~1u)
		return SIM_INVALID;
	s = sim_handle(STREAM_KIND, sizeof(*s));
	if (!s)
		return SIM_NOMEM;
	s->ctx = ctx_current();
	s->device = sim_device();
	s->flags = flags;
	s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	s->id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
	*out = s;
	return SIM_OK;
}

int stream_destroy(void *stream)
{
	struct sim_stream *s = stream_find(stream);

	if (!s || stream_is_default(s))
		return SIM_BAD_HANDLE;
	capture_forget(s);
	nodes_done(&s->ends);
	sim_handle_free(s);
	return SIM_OK;
}

int stream_valid(void *stream)
{
	return stream_find(stream) ? SIM_OK : SIM_BAD_HANDLE;
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

#define STREAM_GET(function, type, expr)                    \
	int function(void *stream, type *out)               \
	{                                                   \
		struct sim_stream *s = stream_find(stream); \
                                                            \
		if (!s)                                     \
			return SIM_BAD_HANDLE;              \
		if (!out)                                   \
			return SIM_INVALID;                 \
		*out = expr;                                \
		return SIM_OK;                              \
	}

STREAM_GET(stream_device, int, s->device)
STREAM_GET(stream_flags, unsigned int, s->flags)
STREAM_GET(stream_priority, int, s->priority)
STREAM_GET(stream_id, unsigned long long, s->id)

struct sim_ctx *stream_ctx(void *stream)
{
	struct sim_stream *s = stream_find(stream);

	return s && s->ctx ? s->ctx : ctx_primary(s ? s->device : sim_device());
}

void stream_pends(void *stream, uint64_t number)
{
	struct sim_stream *s = stream_find(stream);

	if (s)
		s->pending = number;
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

/* ---- events ---- */

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

/* Two events are never quite together. */
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

/* Events of other processes have always happened. */
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * All streams: created ones, and the two default streams of each device. A stream is a handle with
 * flags and the moment at which its work ends (clock.h). Any thread.
 */
#include "stream.h"

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
	s = ctx_stream(sim_device()) ? sim_handle(STREAM_KIND, sizeof(*s)) : NULL;
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

int stream_valid(void *stream)
{
	return stream_find(stream) ? SIM_OK : SIM_BAD_HANDLE;
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

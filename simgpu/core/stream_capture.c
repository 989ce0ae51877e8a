/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording the work of streams into a graph. A recording begins on one stream and takes in every
 * stream that waits for an event recorded in it. Calls that would wait for the device are refused
 * meanwhile, and spoil the recording, as on a real one. Any thread; one lock.
 */
#include <stdlib.h>
#include <unistd.h>
#include "stream.h"

enum { MODE_GLOBAL, MODE_THREAD, MODE_RELAXED };

struct recording {
	struct capture info;
	struct sim_stream *streams; /* that take part, the origin last */
	bool spoilt;
	struct recording *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct recording *recordings;
static unsigned int active; /* recordings, read without the lock */
static unsigned long long next_id = 1;
static __thread int thread_mode = MODE_GLOBAL;

static void take_in(struct recording *r, struct sim_stream *s)
{
	s->capture = r;
	s->next_same = r->streams;
	r->streams = s;
}

int capture_begin(void *stream, struct sim_graph *graph, int mode)
{
	struct sim_stream *s = stream_find(stream);
	struct recording *r;
	int result = SIM_OK;

	if (!s)
		return SIM_BAD_HANDLE;
	if (mode < MODE_GLOBAL || mode > MODE_RELAXED)
		return SIM_INVALID;
	if (s->capture)
		return ERR_ILLEGAL_STATE;
	if (stream_is_default(s) && stream != (void *)2)
		return ERR_CAPTURE_UNSUPPORTED;
	r = calloc(1, sizeof(*r));
	if (!r)
		return SIM_NOMEM;
	r->info = (struct capture){ 0, graph, s, mode, gettid(), graph != NULL };
	if (!graph)
		result = graph_create(&r->info.graph);
	if (result) {
		free(r);
		return result;
	}
	pthread_mutex_lock(&lock);
	r->info.id = next_id++;
	r->next = recordings;
	recordings = r;
	take_in(r, s);
	__atomic_add_fetch(&active, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

static void unlink_recording(struct recording *r)
{
	struct recording **p = &recordings;

	while (*p != r)
		p = &(*p)->next;
	*p = r->next;
	for (struct sim_stream *s = r->streams, *next; s; s = next) {
		next = s->next_same;
		s->capture = NULL;
		s->next_same = NULL;
	}
	__atomic_sub_fetch(&active, 1, __ATOMIC_RELEASE);
}

int capture_end(void *stream, struct sim_graph **out)
{
	struct sim_stream *s = stream_find(stream);
	struct recording *r;

	if (!s)
		return SIM_BAD_HANDLE;
	r = s->capture;
	if (out)
		*out = NULL;
	if (!r)
		return ERR_ILLEGAL_STATE;
	if (r->info.origin != s)
		return ERR_CAPTURE_UNMATCHED;
	if (r->info.mode != MODE_RELAXED && r->info.thread != gettid())
		return ERR_CAPTURE_WRONG_THREAD;
	pthread_mutex_lock(&lock);
	unlink_recording(r);
	pthread_mutex_unlock(&lock);
	if (r->spoilt && !r->info.own_graph)
		graph_destroy(r->info.graph);
	else if (!r->spoilt && out)
		*out = r->info.graph;
	s = r->spoilt ? NULL : s;
	free(r);
	return s ? SIM_OK : ERR_CAPTURE_INVALIDATED;
}

int capture_info(void *stream, int *status, struct capture *out)
{
	struct sim_stream *s = stream_find(stream);
	struct recording *r;

	if (!s)
		return SIM_BAD_HANDLE;
	r = s->capture;
	if (!r && (uintptr_t)stream <= 1)
		return capture_legacy(stream);
	*status = !r ? 0 : r->spoilt ? 2 : 1;
	if (r && out)
		*out = r->info;
	return SIM_OK;
}

bool sim_capturing(const void *stream)
{
	struct sim_stream *s;

	if (!__atomic_load_n(&active, __ATOMIC_ACQUIRE))
		return false;
	s = stream_find((void *)stream);
	return s && s->capture && !s->capture->spoilt;
}

int capture_spoil(struct sim_stream *s, int error)
{
	if (s->capture)
		s->capture->spoilt = true;
	return error;
}

int capture_join(struct sim_stream *s, const struct sim_event *e)
{
	int result = SIM_OK;

	pthread_mutex_lock(&lock);
	for (struct recording *r = recordings; r; r = r->next) {
		if (r->info.id != e->capture || s->capture == r)
			continue;
		if (s->capture || stream_is_default(s))
			result = s->capture ? ERR_CAPTURE_MERGE : ERR_CAPTURE_IMPLICIT;
		else
			take_in(r, s);
		if (result)
			r->spoilt = true;
		break;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

void capture_forget(struct sim_stream *s)
{
	struct recording *r = s->capture;
	struct sim_stream **p;

	if (!r)
		return;
	pthread_mutex_lock(&lock);
	for (p = &r->streams; *p && *p != s;)
		p = &(*p)->next_same;
	if (*p)
		*p = s->next_same;
	if (r->info.origin == s) {
		unlink_recording(r);
		if (!r->info.own_graph)
			graph_destroy(r->info.graph);
		free(r);
	}
	pthread_mutex_unlock(&lock);
}

unsigned long long capture_id(const struct sim_stream *s)
{
	return s->capture ? s->capture->info.id : 0;
}

bool capture_lives(unsigned long long id)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct recording *r = recordings; r; r = r->next)
		found |= r->info.id == id;
	pthread_mutex_unlock(&lock);
	return found;
}

int capture_thread_mode(int *mode)
{
	int old = thread_mode;

	if (!mode || *mode < MODE_GLOBAL || *mode > MODE_RELAXED)
		return SIM_INVALID;
	thread_mode = *mode;
	*mode = old;
	return SIM_OK;
}

/* A relaxed thread may do anything; a thread-local one is bound by its own recordings, others by
 * every recording made in global mode as well. */
static bool binds(const struct recording *r)
{
	if (r->info.mode == MODE_RELAXED || thread_mode == MODE_RELAXED)
		return false;
	if (r->info.thread == gettid())
		return true;
	return r->info.mode == MODE_GLOBAL && thread_mode == MODE_GLOBAL;
}

int capture_forbids(void)
{
	int result = SIM_OK;

	if (!__atomic_load_n(&active, __ATOMIC_ACQUIRE))
		return SIM_OK;
	pthread_mutex_lock(&lock);
	for (struct recording *r = recordings; r; r = r->next)
		if (binds(r)) {
			r->spoilt = true;
			result = ERR_CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

/* The legacy stream waits for every blocking stream: not possible while one of them records. */
int capture_legacy(void *stream)
{
	int result = SIM_OK;

	if ((uintptr_t)stream > 1 || !__atomic_load_n(&active, __ATOMIC_ACQUIRE))
		return SIM_OK;
	pthread_mutex_lock(&lock);
	for (struct recording *r = recordings; r; r = r->next)
		for (struct sim_stream *s = r->streams; s; s = s->next_same)
			if (!(s->flags & 1)) {
				r->spoilt = true;
				result = ERR_CAPTURE_IMPLICIT;
			}
	pthread_mutex_unlock(&lock);
	return result;
}

bool stream_captures(void *stream, enum node_type type, uintptr_t addr, void *fn, void *data)
{
	struct sim_stream *s;

	if (!__atomic_load_n(&active, __ATOMIC_ACQUIRE))
		return false;
	s = stream_find(stream);
	if (!s || !s->capture)
		return false;
	graph_add(s->capture->info.graph, type, addr, fn, data, NULL);
	return true;
}

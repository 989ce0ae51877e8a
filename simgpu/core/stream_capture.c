/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording the work of streams into a graph. A recording begins on one stream and takes in every
 * stream that waits for an event recorded in it. Meanwhile calls that would wait for the device
 * fail and invalidate the recording, as on a real one. Any thread; one lock.
 */
#include <stdlib.h>
#include "graph.h"
#include "stream.h"

enum { MODE_GLOBAL, MODE_THREAD, MODE_RELAXED };

#define EDGES_MOST 1024

struct recording {
	struct capture info;
	struct sim_stream *streams; /* streams that take part, the origin last */
	bool spoilt;
	struct recording *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct recording *recordings;
static unsigned int active; /* number of recordings, read without the lock */
static unsigned long long next_id = 1;
static __thread int thread_mode = MODE_GLOBAL;

static void take_in(struct recording *r, struct sim_stream *s)
{
	s->capture = r;
	s->ends.n = 0;
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
	r->info = (struct capture){ 0, graph, s, mode, thread_id(), graph != NULL, NULL };
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
		s->ends.n = 0;
		s->next_same = NULL;
	}
	__atomic_sub_fetch(&active, 1, __ATOMIC_RELEASE);
}

/* Whether the origin stream has waited for the work of every other stream. */
static bool all_joined(const struct recording *r)
{
	for (const struct sim_stream *s = r->streams; s; s = s->next_same)
		if (s != r->info.origin && !graph_leads(&r->info.origin->ends, &s->ends))
			return false;
	return true;
}

int capture_end(void *stream, struct sim_graph **out)
{
	struct sim_stream *s = stream_find(stream);
	struct recording *r;
	int result;

	if (!s)
		return SIM_BAD_HANDLE;
	r = s->capture;
	if (out)
		*out = NULL;
	if (!r)
		return ERR_ILLEGAL_STATE;
	if (r->info.origin != s)
		return ERR_CAPTURE_UNMATCHED;
	if (r->info.mode != MODE_RELAXED && r->info.thread != thread_id())
		return ERR_CAPTURE_WRONG_THREAD;
	pthread_mutex_lock(&lock);
	result = r->spoilt	 ? ERR_CAPTURE_INVALIDATED
		 : all_joined(r) ? SIM_OK
				 : ERR_CAPTURE_UNJOINED;
	unlink_recording(r);
	pthread_mutex_unlock(&lock);
	if (result && !r->info.own_graph)
		graph_destroy(r->info.graph);
	else if (!result && out)
		*out = r->info.graph;
	free(r);
	return result;
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
	if (r && out) {
		*out = r->info;
		out->ends = &s->ends;
	}
	return SIM_OK;
}

/* Edge data are 8 bytes of 0 each, because all edges are plain. */
void capture_tell(const struct capture *c, const void **nodes, const void **edges, size_t *n)
{
	static const uint64_t plain[EDGES_MOST];
	size_t count = c->ends ? c->ends->n : 0;

	if (nodes)
		*nodes = count ? c->ends->nodes : NULL;
	if (edges)
		*edges = count && count <= EDGES_MOST ? plain : NULL;
	if (n)
		*n = count;
}

/* Implements cudaStreamUpdateCaptureDependencies. */
int capture_depend(void *stream, void *const *nodes, size_t n, bool instead)
{
	struct sim_stream *s = stream_find(stream);
	struct recording *r = s ? s->capture : NULL;
	bool fits;

	if (!s)
		return SIM_BAD_HANDLE;
	if (!r || r->spoilt)
		return ERR_ILLEGAL_STATE;
	for (size_t i = 0; i < n; i++)
		if (!nodes || !graph_owns(r->info.graph, nodes[i]))
			return SIM_INVALID;
	pthread_mutex_lock(&lock);
	if (instead)
		s->ends.n = 0;
	fits = nodes_add(&s->ends, nodes, n);
	pthread_mutex_unlock(&lock);
	return fits ? SIM_OK : SIM_NOMEM;
}

void capture_note(struct sim_stream *s, struct sim_event *e)
{
	e->capture = capture_id(s);
	e->ends.n = 0;
	if (e->capture)
		nodes_add(&e->ends, s->ends.nodes, s->ends.n);
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
		if (r->info.id != e->capture)
			continue;
		if (s->capture && s->capture != r)
			result = ERR_CAPTURE_MERGE;
		else if (!s->capture && stream_is_default(s))
			result = ERR_CAPTURE_IMPLICIT;
		else if (!s->capture)
			take_in(r, s);
		if (result)
			r->spoilt = true;
		else
			nodes_add(&s->ends, e->ends.nodes, e->ends.n);
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
		if (r->info.id == id)
			found = true;
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

/* Whether a recording forbids unsafe calls of this thread: a relaxed thread may make any call, a
 * thread-local one is bound by its own recordings, a global one also by all in global mode. */
static bool binds(const struct recording *r)
{
	if (r->info.mode == MODE_RELAXED || thread_mode == MODE_RELAXED)
		return false;
	if (r->info.thread == thread_id())
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

void capture_act(void *stream, struct act *act)
{
	struct sim_stream *s = stream_find(stream);

	if (s && s->capture && s->ends.n)
		graph_act(s->ends.nodes[s->ends.n - 1], act);
	else
		act_drop(act);
}

void capture_launch(void *stream, struct act *launch)
{
	struct sim_stream *s = stream_find(stream);

	if (s && s->capture && s->ends.n)
		graph_asked(s->ends.nodes[s->ends.n - 1], launch);
	else
		act_drop(launch);
}

bool stream_captures(void *stream, const struct node_spec *spec)
{
	struct sim_stream *s;
	void *node = NULL;

	if (!__atomic_load_n(&active, __ATOMIC_ACQUIRE))
		return false;
	s = stream_find(stream);
	if (!s || !s->capture)
		return false;
	graph_add(s->capture->info.graph, spec, s->ends.nodes, s->ends.n, &node);
	if (node) {
		s->ends.n = 0;
		nodes_add(&s->ends, &node, 1);
	}
	return true;
}

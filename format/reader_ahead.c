/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each thread takes runs of blocks that depend on one another, and decodes them with a reader of
 * its own, a twin that shares the file and the list of blocks. Results wait in a few slots, which
 * limits how far ahead the threads get. Damage is counted by the thread that takes a block, so in
 * order. The threads block all signals, which are for the program's first thread.
 */
#include "reader_ahead.h"

#include "record.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define THREADS 3 /* more would wait for the thread that takes the events */
#define AHEAD	4 /* blocks decoded ahead, plus a group for each thread but the first */
#define SLOTS	((THREADS - 1) * GMT_GROUP_BLOCKS + AHEAD)

struct ahead_slot {
	struct reader_events events;
	bool ready; /* until then it belongs to the thread that decodes its block */
};

struct reader_ahead {
	struct gmt_reader *reader;
	struct reader_times times;
	pthread_t threads[THREADS];
	unsigned count;
	size_t slots_used;

	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	size_t next;  /* first block of the next run */
	size_t taken; /* all blocks before this one were taken */
	bool over;    /* no more blocks will be taken */
	struct ahead_slot slots[SLOTS];
};

static bool next_run(struct reader_ahead *a, size_t *first, size_t *end)
{
	const struct gmt_reader *r = a->reader;

	*first = a->next;
	*end = *first + 1;
	while (*end < r->blocks_used && !reader_begins_run(r, *end))
		++*end;
	a->next = *end;
	return *first < r->blocks_used && !a->over;
}

/* Called with the lock held, which it releases while it decodes. */
static void decode_ahead(struct reader_ahead *a, struct gmt_reader *twin, size_t block)
{
	struct ahead_slot *slot = &a->slots[block % a->slots_used];

	while (block >= a->taken + a->slots_used && !a->over)
		pthread_cond_wait(&a->changed, &a->lock);
	if (a->over)
		return;
	pthread_mutex_unlock(&a->lock);
	slot->events.used = 0;
	slot->events.rc = -GMT_ERR_NO_MEMORY;
	if (twin->codec)
		reader_decode(twin, &twin->blocks[block], &a->times, &slot->events);
	pthread_mutex_lock(&a->lock);
	slot->ready = true;
	pthread_cond_broadcast(&a->changed);
}

static void *work_ahead(void *arg)
{
	struct reader_ahead *a = arg;
	const struct gmt_reader *r = a->reader;
	struct gmt_reader twin = {
		.fd = r->fd, .blocks = r->blocks, .blocks_used = r->blocks_used, .places = r->places
	};
	size_t block, end;

	if (!reader_take_room(&twin))
		reader_free_room(&twin);
	pthread_mutex_lock(&a->lock);
	while (next_run(a, &block, &end))
		for (; block < end && !a->over; block++)
			decode_ahead(a, &twin, block);
	pthread_mutex_unlock(&a->lock);
	reader_free_room(&twin);
	return NULL;
}

static void start_threads(struct reader_ahead *a)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN), threads = cores < THREADS ? cores : THREADS;
	sigset_t all, before;

	a->slots_used = threads > 1 ? (size_t)(threads - 1) * GMT_GROUP_BLOCKS + AHEAD : AHEAD;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (a->count < threads && !pthread_create(&a->threads[a->count], NULL, work_ahead, a))
		a->count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct reader_ahead *reader_ahead_begin(struct gmt_reader *r, size_t first,
					const struct reader_times *t)
{
	struct reader_ahead *a = NULL;

	if (r->blocks_used > first + 1 && reader_find_places(r))
		a = reader_memory(NULL, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct reader_ahead){ .reader = r, .times = *t, .next = first, .taken = first };
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	start_threads(a);
	if (a->count)
		return a;
	reader_ahead_end(a);
	return NULL;
}

void reader_ahead_take(struct reader_ahead *a, size_t block, struct reader_events *out)
{
	struct ahead_slot *slot = &a->slots[block % a->slots_used];
	struct reader_events before = *out;

	pthread_mutex_lock(&a->lock);
	while (!slot->ready)
		pthread_cond_wait(&a->changed, &a->lock);
	*out = slot->events;
	*slot = (struct ahead_slot){ .events = before };
	a->taken = block + 1;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

void reader_ahead_end(struct reader_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->over = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < a->count; i++)
		pthread_join(a->threads[i], NULL);
	for (size_t i = 0; i < SLOTS; i++)
		reader_events_free(&a->slots[i].events);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
	reader_memory(a, 0);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that only query whether collectives have ended and never give the device work. NCCL's
 * watchdog in PyTorch does so every tenth of a second, and its result decides when memory is freed.
 * When the device's clock ticks (clock.c), the working thread waits here, in real time, until such
 * threads have looked and sleep again. The wait is limited, and there is none if no other thread
 * polls.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "pollers.h"

#define STEP_NS	   200000
#define FIRST_NS   1000000000ull /* wait for the first to appear, once per process */
#define LOOK_NS	   2000000000ull
#define END_NS	   1000000000ull /* at the end of the program */
#define FAILS_MOST 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_event *unmet; /* events that were queried too early */
static pid_t poller;		/* the thread that queried last; 0: none yet */
static unsigned int times;	/* number of queries */
static unsigned int expected;	/* collectives since the last look */
static unsigned int fails;
static bool ended;

static void drop(struct sim_event *e)
{
	struct sim_event **p = &unmet;

	while (*p && *p != e)
		p = &(*p)->next_unmet;
	if (*p)
		*p = e->next_unmet;
	e->unmet = false;
}

void pollers_asked(struct sim_event *e, bool met)
{
	pthread_mutex_lock(&lock);
	if (met && e->unmet)
		drop(e);
	if (!met && !e->unmet) {
		e->unmet = true;
		e->next_unmet = unmet;
		unmet = e;
	}
	__atomic_store_n(&poller, thread_id(), __ATOMIC_RELEASE);
	__atomic_add_fetch(&times, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

void pollers_forget(struct sim_event *e)
{
	if (!e->unmet)
		return;
	pthread_mutex_lock(&lock);
	drop(e);
	pthread_mutex_unlock(&lock);
}

void pollers_expect(void)
{
	__atomic_add_fetch(&expected, 1, __ATOMIC_RELAXED);
}

/* ---- waiting for them ---- */

/* Not by a function of the C library, because those use the simulated clock. */
static void pause_a_little(void)
{
	struct timespec t = { 0, STEP_NS };

	syscall(SYS_nanosleep, &t, NULL);
}

static bool sleeps(pid_t thread)
{
	char path[64], text[512], *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true; /* it has ended */
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	state = strrchr(text, ')');
	return !state || state[1] != ' ' || state[2] != 'R';
}

/* Whether an event that was queried too early is reached at `seen`. */
static bool may_learn(uint64_t seen)
{
	bool any = false;

	pthread_mutex_lock(&lock);
	for (const struct sim_event *e = unmet; e && !any; e = e->next_unmet)
		any = e->recorded <= seen;
	pthread_mutex_unlock(&lock);
	return any;
}

static unsigned int asked(void)
{
	return __atomic_load_n(&times, __ATOMIC_ACQUIRE);
}

/* Waits at most `most` ns until a thread has queried after `before`, no event that was queried too
 * early is reached, and the last poller sleeps. False if that did not happen. */
static bool wait_for_looks(unsigned int before, uint64_t seen, uint64_t most)
{
	int asleep = 0;

	for (uint64_t t = 0; t < most; t += STEP_NS) {
		bool done = asked() != before && !may_learn(seen) &&
			    sleeps(__atomic_load_n(&poller, __ATOMIC_ACQUIRE));

		asleep = done ? asleep + 1 : 0;
		if (asleep == 2)
			return true;
		pause_a_little();
	}
	return false;
}

void pollers_look(uint64_t seen)
{
	unsigned int before = asked();
	unsigned int news = __atomic_exchange_n(&expected, 0, __ATOMIC_ACQ_REL);
	bool first = !__atomic_load_n(&poller, __ATOMIC_ACQUIRE);

	if (fails >= FAILS_MOST || (!news && !may_learn(seen)))
		return;
	if (wait_for_looks(before, seen, first ? FIRST_NS : LOOK_NS))
		fails = 0;
	else
		fails = first ? FAILS_MOST : fails + 1;
}

/* ---- the end of the program ---- */

static bool all_met(void)
{
	bool met;

	pthread_mutex_lock(&lock);
	met = !unmet;
	pthread_mutex_unlock(&lock);
	return met;
}

bool pollers_ended(void)
{
	return __atomic_load_n(&ended, __ATOMIC_ACQUIRE);
}

void pollers_end(void)
{
	unsigned int before = asked();
	bool news = __atomic_exchange_n(&expected, 0, __ATOMIC_ACQ_REL) != 0;
	int asleep = 0;

	__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
	if (!__atomic_load_n(&poller, __ATOMIC_ACQUIRE))
		return;
	for (uint64_t t = 0; t < END_NS && asleep < 2; t += STEP_NS) {
		bool done = (!news || asked() != before) && all_met() &&
			    sleeps(__atomic_load_n(&poller, __ATOMIC_ACQUIRE));

		asleep = done ? asleep + 1 : 0;
		if (asleep < 2)
			pause_a_little();
	}
}

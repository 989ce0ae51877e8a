/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks (clock.h): of each device, and of each thread that drives one. A thread's clock is
 * never behind that of the device it calls, because the calls that other threads made before came
 * earlier. Any thread; one lock.
 *
 * The moments at which a thread that never gave the device work (a watchdog) queries depend on the
 * machine. So when it queries the end of collectives, it sees the device as it was at the last
 * tick. Ticks are a tenth of a second apart by the device's clock, later a tenth of the time so
 * far, at most a second. At a tick the working thread waits until the watchdog has looked
 * (pollers.c). The end of the program is also a tick, at which all work counts as done, even if it
 * waits for other ranks: calls of the device fail while the program's libraries are being unloaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "clock.h"
#include "pollers.h"

#define SECOND	   1000000000ull
#define TICK_LEAST (SECOND / 10)
#define TICK_MOST  SECOND
#define PATIENCE   1000		/* queries in a row while nothing else happens... */
#define REAL_MOST  (2 * SECOND) /* ...or a watchdog's for so long, in ns */

struct device_clock {
	uint64_t now;				/* the latest clock of its working threads */
	uint64_t all;				/* when all work ends */
	uint64_t blocking;			/* when the work of blocking streams ends */
	uint64_t begun[ENGINES], done[ENGINES]; /* busy stretch of each engine */
	uint64_t seen, tick;			/* moment that watchdogs see, next tick */
	uint64_t calls;				/* pieces of work so far */
	bool collectives;
};

static struct device_clock clocks[SIM_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static __thread uint64_t mine;
static __thread bool works; /* this thread has given a device work... */
static __thread int where;  /* ...this one, last */
static __thread struct {
	uint64_t calls, step, since;
	unsigned int times;
} asking;

bool clock_on(void)
{
	static int on = -1;

	if (on < 0) {
		const char *s = getenv("SIMGPU_TIME");

		on = !s || strcmp(s, "off") != 0;
		if (s && *s && on && strcmp(s, "on"))
			fprintf(stderr,
				"simgpu: SIMGPU_TIME=%.40s is neither on nor off: on is taken\n",
				s);
	}
	return on;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Adds the cost of a call of this device to the thread's clock and returns the clock. The lock is
 * held. */
static uint64_t arrive(struct device_clock *c, uint64_t cost)
{
	mine = later(mine, c->now) + cost;
	if (works)
		c->now = mine;
	return mine;
}

void clock_spend(int device, uint64_t ns)
{
	if (!clock_on())
		return;
	pthread_mutex_lock(&lock);
	arrive(&clocks[device], ns);
	pthread_mutex_unlock(&lock);
}

/* ---- streams ---- */

static bool is_legacy(const struct sim_stream *s)
{
	return s == stream_legacy(s->device);
}

static uint64_t ready(const struct sim_stream *s)
{
	if (is_legacy(s))
		return later(s->end, clocks[s->device].blocking);
	return s->flags & 1 ? s->end : later(s->end, stream_legacy(s->device)->end);
}

static void finish(struct sim_stream *s, uint64_t end)
{
	struct device_clock *c = &clocks[s->device];

	s->end = later(s->end, end);
	c->all = later(c->all, end);
	if (!(s->flags & 1) && !is_legacy(s))
		c->blocking = later(c->blocking, end);
}

/* When a copy begins. It may fill the time before the engine's later copies. */
static uint64_t on_engine(struct device_clock *c, const struct work *w, uint64_t begin)
{
	if (w->engine == ENGINE_NONE || begin + w->ns <= c->begun[w->engine])
		return begin;
	begin = later(begin, c->done[w->engine]);
	if (begin > c->done[w->engine])
		c->begun[w->engine] = begin;
	c->done[w->engine] = begin + w->ns;
	return begin;
}

/* Whether a tick is due, at which watchdogs see the present state. The lock is held. */
static bool ticks(struct device_clock *c)
{
	uint64_t period = c->now / 10;

	if (!c->collectives || c->now < c->tick)
		return false;
	period = period < TICK_LEAST ? TICK_LEAST : period > TICK_MOST ? TICK_MOST : period;
	c->seen = c->now;
	c->tick = c->now + period;
	return true;
}

/* Exit handlers run before the destructors of libraries that were loaded earlier. */
static void watch_for_the_end(void)
{
	atexit(pollers_end);
}

void clock_work(struct sim_stream *s, const struct work *w)
{
	struct device_clock *c = &clocks[s->device];
	uint64_t host;
	bool tick;

	if (!clock_on())
		return;
	pthread_mutex_lock(&lock);
	works = true;
	where = s->device;
	host = arrive(c, COST_LAUNCH);
	finish(s, on_engine(c, w, later(host, ready(s))) + w->ns);
	c->calls++;
	s->collectives |= w->collective;
	c->collectives |= w->collective;
	tick = ticks(c);
	pthread_mutex_unlock(&lock);
	if (tick)
		pollers_look(c->seen);
	if (w->collective) {
		pthread_once(&watched, watch_for_the_end);
		pollers_expect();
	}
}

uint64_t clock_end(struct sim_stream *s)
{
	uint64_t end;

	pthread_mutex_lock(&lock);
	end = ready(s);
	pthread_mutex_unlock(&lock);
	return end;
}

uint64_t clock_mark(struct sim_stream *s)
{
	uint64_t end;

	pthread_mutex_lock(&lock);
	end = later(arrive(&clocks[s->device], COST_SMALL), ready(s));
	finish(s, end);
	pthread_mutex_unlock(&lock);
	return end;
}

void clock_join(struct sim_stream *s, uint64_t moment)
{
	if (!clock_on())
		return;
	pthread_mutex_lock(&lock);
	arrive(&clocks[s->device], COST_SMALL);
	finish(s, later(moment, ready(s)));
	pthread_mutex_unlock(&lock);
}

/* ---- waits and queries ---- */

/* The wait of one thread moves the device's clock for all. */
static void wait_until(struct device_clock *c, uint64_t moment)
{
	c->now = later(c->now, moment);
	arrive(c, COST_SYNC);
}

void clock_wait(int device, uint64_t moment)
{
	if (!clock_on())
		return;
	pthread_mutex_lock(&lock);
	wait_until(&clocks[device], moment);
	pthread_mutex_unlock(&lock);
}

void clock_wait_all(int device)
{
	if (!clock_on())
		return;
	pthread_mutex_lock(&lock);
	wait_until(&clocks[device], clocks[device].all);
	pthread_mutex_unlock(&lock);
}

static uint64_t real_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* Called when a query came too early. If this thread has queried for long and nothing else happens,
 * time runs faster and faster. True if the moment is then reached. */
static bool insist(struct device_clock *c, uint64_t moment)
{
	if (!asking.times || asking.calls != c->calls) {
		asking.calls = c->calls;
		asking.times = 1;
		asking.step = COST_SMALL;
		asking.since = real_time();
		return false;
	}
	if (++asking.times < PATIENCE && (works || real_time() - asking.since < REAL_MOST))
		return false;
	asking.step *= 2;
	mine = c->now = c->seen = later(mine, c->now) + asking.step;
	return moment <= mine;
}

static bool reached(struct device_clock *c, uint64_t moment, bool by_ticks)
{
	uint64_t now;
	bool yes;

	pthread_mutex_lock(&lock);
	if (by_ticks)
		now = later(mine, c->seen);
	else
		now = arrive(c, COST_SMALL);
	yes = moment <= now || insist(c, moment);
	if (yes)
		asking.times = 0;
	pthread_mutex_unlock(&lock);
	return yes;
}

bool clock_reached(int device, uint64_t moment)
{
	return !clock_on() || reached(&clocks[device], moment, false);
}

bool clock_event(struct sim_event *e)
{
	bool by_ticks = e->collective && !works, yes;

	if (!clock_on())
		return !pending_busy(e->pending);
	yes = (by_ticks && pollers_ended()) ||
	      (reached(&clocks[e->device], e->recorded, by_ticks) && !pending_overdue(e->pending));
	if (by_ticks)
		pollers_asked(e, yes);
	return yes;
}

/* ---- sleeping ---- */

void clock_sleep(uint64_t ns)
{
	struct device_clock *c = &clocks[where];

	if (!clock_on())
		return;
	pthread_mutex_lock(&lock);
	mine += ns;
	if (works) {
		arrive(c, 0);
		c->seen = c->now;
	}
	pthread_mutex_unlock(&lock);
}

void clock_slept(void)
{
	bool tick;

	if (!works || !clock_on())
		return;
	pthread_mutex_lock(&lock);
	tick = ticks(&clocks[where]);
	pthread_mutex_unlock(&lock);
	if (tick)
		pollers_look(clocks[where].seen);
}

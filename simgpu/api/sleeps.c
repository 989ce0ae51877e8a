/* SPDX-License-Identifier: Apache-2.0
 *
 * The device works on while a thread sleeps: the requested time is added to the thread's clock
 * (../core/clock.h), and then it really sleeps. Any thread, in signal handlers too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>
#include "../core/clock.h"

#define SECOND 1000000000ull

static struct {
	typeof(nanosleep) *nanosleep;
	typeof(clock_nanosleep) *clock_nanosleep;
	typeof(usleep) *usleep;
	typeof(sleep) *sleep;
	typeof(select) *select;
} next;

/* Runs before the program has threads. Another library's constructor may sleep even earlier. */
__attribute__((constructor)) static void find(void)
{
	if (next.select)
		return;
	next.nanosleep = (typeof(next.nanosleep))dlsym(RTLD_NEXT, "nanosleep");
	next.clock_nanosleep = (typeof(next.clock_nanosleep))dlsym(RTLD_NEXT, "clock_nanosleep");
	next.usleep = (typeof(next.usleep))dlsym(RTLD_NEXT, "usleep");
	next.sleep = (typeof(next.sleep))dlsym(RTLD_NEXT, "sleep");
	next.select = (typeof(next.select))dlsym(RTLD_NEXT, "select");
}

static uint64_t ns_of(const struct timespec *t)
{
	return t && t->tv_sec >= 0 ? (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec : 0;
}

/* ns until a moment of that clock. */
static uint64_t ns_until(clockid_t clock, const struct timespec *t)
{
	struct timespec now;
	uint64_t then = ns_of(t);

	if (clock_gettime(clock, &now) || ns_of(&now) > then)
		return 0;
	return then - ns_of(&now);
}

#define SLEEP(type, ns, call)        \
	do {                         \
		type result_;        \
                                     \
		find();              \
		clock_sleep(ns);     \
		result_ = next.call; \
		clock_slept();       \
		return result_;      \
	} while (0)

SIM_API int nanosleep(const struct timespec *t, struct timespec *left)
{
	SLEEP(int, ns_of(t), nanosleep(t, left));
}

SIM_API int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
			    struct timespec *left)
{
	SLEEP(int, flags &TIMER_ABSTIME ? ns_until(clock, t) : ns_of(t),
	      clock_nanosleep(clock, flags, t, left));
}

SIM_API int usleep(useconds_t us)
{
	SLEEP(int, us * 1000ull, usleep(us));
}

SIM_API unsigned int sleep(unsigned int seconds)
{
	SLEEP(unsigned int, seconds *SECOND, sleep(seconds));
}

/* Without descriptors select() is a sleep. */
SIM_API int select(int n, fd_set *in, fd_set *out, fd_set *other, struct timeval *t)
{
	find();
	if (n || !t || t->tv_sec < 0)
		return next.select(n, in, out, other, t);
	SLEEP(int, (uint64_t)t->tv_sec *SECOND + (uint64_t)t->tv_usec * 1000,
	      select(n, in, out, other, t));
}

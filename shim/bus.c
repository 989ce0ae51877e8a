/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings lie in a mapped file. If someone truncates it or the disk fails, the next event's store
 * raises SIGBUS, which would end the program. So our handler runs before the program's: it maps
 * memory in place of the page, and passes on signals about other pages. sigaction and signal show
 * the program its own action. Handlers run on any thread: loads, stores, mmap.
 *
 * Not covered: threads that block SIGBUS, and programs that set it without the C library.
 */
#include "bus.h"

#include "cuda/resolve.h"
#include "rings/live.h"
#include "rings/state.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

typedef void handler_fn(int);

static struct {
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	handler_fn *(*signal)(int, handler_fn *);
} libc;

#define REAL(name) (libc.name ? libc.name : (typeof(libc.name))resolve_next(#name))

/* The program's own actions. The latest counts; a handler might still be reading the one before. */
static struct sigaction theirs[2];
static uint32_t changes;
static bool is_on;

static const struct sigaction *now(void)
{
	return &theirs[__atomic_load_n(&changes, __ATOMIC_ACQUIRE) % 2];
}

__attribute__((constructor)) static void bus_load(void)
{
	libc.sigaction = (typeof(libc.sigaction))resolve_next("sigaction");
	libc.signal = (typeof(libc.signal))resolve_next("signal");
}

static void end_by_default(const siginfo_t *info)
{
	struct sigaction end = { .sa_handler = SIG_DFL };

	REAL(sigaction)(SIGBUS, &end, NULL);
	if (info->si_code <= 0) /* somebody sent it; else the instruction raises it again */
		syscall(SYS_tgkill, getpid(), os_tid(), SIGBUS);
}

static void on_bus(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *a = now();
	int saved = errno;

	if (info->si_code > 0 && live_mend((uintptr_t)info->si_addr)) {
		errno = saved;
		return;
	}
	if (a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN)
		end_by_default(info);
	else if (a->sa_flags & SA_SIGINFO)
		a->sa_sigaction(signal, info, context);
	else
		a->sa_handler(signal);
}

/* Our handler, with the mask and flags of the program's own. */
static int stand_before(const struct sigaction *a)
{
	struct sigaction ours = *a;

	ours.sa_sigaction = on_bus;
	ours.sa_flags = (a->sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
	return REAL(sigaction)(SIGBUS, &ours, NULL);
}

void bus_setup(void)
{
	if (is_on || !REAL(sigaction) || REAL(sigaction)(SIGBUS, NULL, &theirs[changes % 2]))
		return;
	is_on = !stand_before(now());
}

/* A child that shares our memory has its own signal actions. */
static bool is_ours(int signal)
{
	return signal == SIGBUS && is_on && gmt_session.pid == (uint32_t)getpid();
}

API int sigaction(int signal, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction before;

	if (!is_ours(signal))
		return REAL(sigaction)(signal, act, old);
	before = *now();
	if (act) {
		theirs[(changes + 1) % 2] = *act;
		__atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE);
		if (stand_before(now()))
			return -1;
	}
	if (old)
		*old = before;
	return 0;
}

API handler_fn *signal(int signal, handler_fn *handler)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

	if (!is_ours(signal))
		return REAL(signal)(signal, handler);
	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGBUS);
	if (sigaction(SIGBUS, &act, &old))
		return SIG_ERR;
	return old.sa_handler;
}

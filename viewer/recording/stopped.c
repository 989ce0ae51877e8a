/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops one thread of the target, calls functions in it, lets it run on. The thread must hold no
 * lock of the C library then, or the call would wait for itself: it waits in the kernel for
 * something else than such a lock, or it is in the interpreter's own code, which the C library
 * does not call. From the stop to the release no signal ends us; every other thread runs on.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "../base/need.h"
#include "../base/proc.h"
#include "registers_parts.h"

#ifndef PTRACE_SETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

enum { STOP_MS = 2000, CALL_MS = 5000 };

struct saved {
	struct registers registers;
	uint64_t mask;
	sigset_t own; /* our mask before */
};

/* For one of the C library's locks a thread waits with FUTEX_WAIT until its word is not 2; what it
 * needs while it holds one may be such a lock as well. For conditions and semaphores it waits with
 * FUTEX_WAIT_BITSET, or with other words. */
static bool is_lock(const uint64_t arguments[3])
{
	uint64_t command = arguments[1] & FUTEX_CMD_MASK;

	return command != FUTEX_WAIT_BITSET &&
	       (command != FUTEX_WAIT || (uint32_t)arguments[2] == 2);
}

/* Waits in which a thread holds none of the locks that a new thread is made with. */
static bool waits_without_locks(long number, const uint64_t arguments[3])
{
	static const long waits[] = {
#ifdef SYS_poll
		SYS_poll,
		SYS_select,
		SYS_epoll_wait,
#endif
		SYS_read,
		SYS_ppoll,
		SYS_pselect6,
		SYS_epoll_pwait,
		SYS_nanosleep,
		SYS_clock_nanosleep,
		SYS_recvfrom,
		SYS_recvmsg,
		SYS_accept,
		SYS_accept4,
		SYS_wait4,
		SYS_waitid,
		SYS_rt_sigtimedwait,
	};

	if (number == SYS_futex)
		return !is_lock(arguments);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (number == waits[i])
			return true;
	return false;
}

enum where { WHERE_UNFIT, WHERE_WAITS, WHERE_RUNS };

/* "running", or the number of the system call and its arguments; -1 once a running one stopped. */
static enum where thread_where(const struct target *t, pid_t tid)
{
	char line[256];
	uint64_t a[3] = { 0 };
	long number;

	if (!proc_read(line, sizeof(line), "/proc/%d/task/%d/syscall", (int)t->pid, (int)tid))
		return WHERE_UNFIT;
	if (!strncmp(line, "running", 7) || !strncmp(line, "-1 ", 3))
		return WHERE_RUNS;
	if (sscanf(line, "%ld %lx %lx %lx", &number, &a[0], &a[1], &a[2]) != 4)
		return WHERE_UNFIT;
	return waits_without_locks(number, a) ? WHERE_WAITS : WHERE_UNFIT;
}

/* No handler of a signal is running: one may have interrupted anything. */
static bool no_handler(const struct target *t, pid_t tid)
{
	char text[8192];
	const char *row;

	proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)t->pid, (int)tid);
	row = proc_row(text, "SigBlk");
	return row && !strtoull(row, NULL, 16);
}

static bool in_the_interpreter(const struct target *t, pid_t tid, const struct registers *r)
{
	uint64_t pc = registers_pc(r);

	return pc >= t->python && pc < t->python_end && no_handler(t, tid);
}

/* Waits for the next stop of the thread; 0 = none came in time, or the thread is gone. */
static int next_stop(pid_t tid, int ms)
{
	const struct timespec pause = { .tv_nsec = 50 * 1000 };
	int status = 0;

	for (int i = 0; i < ms * 20; i++) {
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(status) ? status : 0;
		if (got < 0 && errno != EINTR)
			return 0;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Signals that come meanwhile wait; those that the processor makes of an instruction cannot. */
static uint64_t mask_of_call(void)
{
	uint64_t mask = UINT64_MAX;
	static const int kept[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		mask &= ~(UINT64_C(1) << (kept[i] - 1));
	return mask;
}

static bool prepare(const struct target *t, pid_t tid, enum where where, struct saved *save)
{
	uint64_t mask = mask_of_call();

	return registers_get(tid, &save->registers) && thread_where(t, tid) == where &&
	       (where == WHERE_WAITS || in_the_interpreter(t, tid, &save->registers)) &&
	       !ptrace(PTRACE_GETSIGMASK, tid, sizeof(save->mask), &save->mask) &&
	       !ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask);
}

/* A stop for a signal that was on its way: the thread gets it. */
static bool interrupted(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return false;
	status = next_stop(tid, STOP_MS);
	if (status && status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
		return true;
	if (status)
		ptrace(PTRACE_DETACH, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	return false;
}

enum stop thread_stop(const struct target *t, pid_t tid, struct stopped *s)
{
	enum where where = thread_where(t, tid);
	struct saved *save;
	sigset_t all;

	if (where == WHERE_UNFIT)
		return STOP_BUSY;
	save = need_new(sizeof(*save));
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &save->own);
	if (ptrace(PTRACE_SEIZE, tid, 0, 0)) {
		sigprocmask(SIG_SETMASK, &save->own, NULL);
		free(save);
		return errno == EPERM ? STOP_FORBIDDEN : STOP_BUSY;
	}
	if (interrupted(tid)) {
		if (prepare(t, tid, where, save)) {
			*s = (struct stopped){ tid, save };
			return STOP_READY;
		}
		ptrace(PTRACE_DETACH, tid, 0, 0);
	}
	sigprocmask(SIG_SETMASK, &save->own, NULL);
	free(save);
	return STOP_BUSY;
}

bool thread_call(const struct target *t, struct stopped *s, uint64_t function,
		 const uint64_t arguments[6], uint64_t *result)
{
	struct registers *now = need_new(sizeof(*now));
	uint64_t pushed;
	bool fine = false;
	int status;

	*now = s->saved->registers;
	registers_call(now, function, arguments, t->trap, &pushed);
	if (target_write(t, registers_stack(now), &pushed, sizeof(pushed)) &&
	    registers_set(s->tid, now) && !ptrace(PTRACE_CONT, s->tid, 0, 0)) {
		status = next_stop(s->tid, CALL_MS);
		fine = status && WSTOPSIG(status) == SIGTRAP && registers_get(s->tid, now) &&
		       registers_trapped(now, t->trap);
		*result = registers_result(now);
	}
	free(now);
	return fine;
}

/* A thread that is still in a call after all this time has to be stopped for it once more. */
void thread_release(struct stopped *s)
{
	struct saved *save = s->saved;

	if (!registers_set(s->tid, &save->registers) && interrupted(s->tid))
		registers_set(s->tid, &save->registers);
	ptrace(PTRACE_SETSIGMASK, s->tid, sizeof(save->mask), &save->mask);
	ptrace(PTRACE_DETACH, s->tid, 0, 0);
	sigprocmask(SIG_SETMASK, &save->own, NULL);
	free(save);
	s->saved = NULL;
}

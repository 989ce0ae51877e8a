/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"

#include <dirent.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../base/now.h"
#include "../base/proc.h"
#include "attach_parts.h"

/*
 * Stops one thread of the target, calls functions in it and lets it run on. The thread must hold no
 * lock of the C library, or the call might wait for it forever. So it must wait in the kernel for
 * anything but such a lock, or run the interpreter's own code, which the C library does not call.
 * No signal ends this process between stop and release. All other threads run on.
 */

#ifndef PTRACE_SETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

enum { STOP_MS = 2000, CALL_MS = 5000 };

struct saved {
	struct registers registers;
	uint64_t mask;
	sigset_t own; /* this process's mask before the stop */
};

/* Whether a futex call might wait for a lock of the C library. Such a wait is a FUTEX_WAIT while
 * the word is 2; a thread in it might hold another such lock. Waits for conditions and semaphores
 * use FUTEX_WAIT_BITSET or other words. */
static bool is_lock(const uint64_t arguments[3])
{
	uint64_t command = arguments[1] & FUTEX_CMD_MASK;

	return command != FUTEX_WAIT_BITSET &&
	       (command != FUTEX_WAIT || (uint32_t)arguments[2] == 2);
}

/* Whether a thread in this system call holds none of the locks that starting a thread needs. */
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
	return ANY_OF(x, waits, sizeof(waits) / sizeof(waits[0]), number == *x);
}

enum where { WHERE_UNFIT, WHERE_WAITS, WHERE_RUNS };

/* Where a thread is, by its system call in /proc: "running", or the call's number and arguments; -1
 * if it was stopped while it ran. */
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

/* Whether the thread blocks no signal: it is in no handler, which could interrupt anything. */
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

/* Waits for the thread's next stop; returns its wait status, 0: none in time, or no thread. */
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

/* Signals to block during a call: all but those that the processor raises for an instruction. */
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

/* Stops the thread. False: it stopped for something else, such as a signal, and runs on with it. */
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

/* Tries once to stop a thread. STOP_BUSY: it was in code that must not be interrupted, and
 * continues. */
static enum stop thread_stop(const struct target *t, pid_t tid, struct stopped *s)
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
		bool forbidden = errno == EPERM;

		sigprocmask(SIG_SETMASK, &save->own, NULL);
		free(save);
		return forbidden ? STOP_FORBIDDEN : STOP_BUSY;
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

/* Calls a function of the target in the stopped thread. */
static bool thread_call(const struct target *t, struct stopped *s, uint64_t function,
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
		       registers_pc(now) == registers_behind(t->trap);
		*result = registers_result(now);
	}
	free(now);
	return fine;
}

/* Restores the thread and lets it run on. If it is still in a call, it is stopped once more. */
static void thread_release(struct stopped *s)
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

enum { CODE_ROOM = 4096, PAUSE_MS = 2 };

/* How long to wait for another tracer: an attach needs under a millisecond, a debugger stays. */
#define OTHER_TRACER_SECONDS 0.5

static void pause_shortly(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };

	nanosleep(&pause, NULL);
}

#define PF_EXITING 4 /* the kernel's flag of a process that is exiting and frees its memory */

/* Whether the process runs. A zombie keeps its number until its parent has waited for it. */
bool attach_lives(pid_t pid)
{
	char text[PROC_STAT], state;
	const char *stat = proc_stat(text, pid);
	unsigned long flags;

	return stat && sscanf(stat, "%c %*d %*d %*d %*d %*d %lu", &state, &flags) == 2 &&
	       state != 'Z' && state != 'X' && !(flags & PF_EXITING);
}

static long yama_scope(void)
{
	char text[32];

	proc_read(text, sizeof(text), "/proc/sys/kernel/yama/ptrace_scope");
	return strtol(text, NULL, 10);
}

static bool no(char why[ATTACH_WHY], const char *text)
{
	snprintf(why, ATTACH_WHY, "%s", text);
	return false;
}

static bool forbidden(pid_t pid, char why[ATTACH_WHY])
{
	long tracer = proc_status(pid, "TracerPid"), scope = yama_scope();

	if (tracer > 0)
		snprintf(why, ATTACH_WHY, "process %ld traces it already (a debugger or strace)",
			 tracer);
	else if (scope > 0)
		snprintf(why, ATTACH_WHY,
			 "this machine lets only root look into running processes "
			 "(kernel.yama.ptrace_scope = %ld); try with sudo",
			 scope);
	else
		no(why, "the system does not let this user look into it; in a container, start "
			"that with --cap-add SYS_PTRACE");
	return false;
}

bool attach_allowed(pid_t pid, char why[ATTACH_WHY])
{
	long owner = proc_status(pid, "Uid");
	double end = now_seconds() + OTHER_TRACER_SECONDS;
	char path[64];

	if (pid == getpid())
		return no(why, "that is this command itself");
	if (kill(pid, 0) && errno == ESRCH)
		return no(why, "there is no such process");
	if (!attach_lives(pid))
		return no(why, "it has ended");
	if (geteuid() && owner >= 0 && (uid_t)owner != geteuid())
		return no(why, "it belongs to another user; root may look into it");
	while (proc_status(pid, "TracerPid") > 0) {
		if (now_seconds() > end)
			return forbidden(pid, why);
		pause_shortly();
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	return !access(path, R_OK | W_OK) || forbidden(pid, why);
}

/* Tries one thread after the other until one stops. */
static enum stop stop_any(const struct target *t, struct stopped *s)
{
	char path[64];
	enum stop got = STOP_BUSY;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	d = opendir(path);
	while (d && got == STOP_BUSY && (e = readdir(d)))
		if (e->d_name[0] != '.')
			got = thread_stop(t, (pid_t)strtol(e->d_name, NULL, 10), s);
	if (d)
		closedir(d);
	return got;
}

static bool stop_one(const struct target *t, double seconds, struct stopped *s,
		     char why[ATTACH_WHY])
{
	double start = now_seconds(), passed = 0;
	enum stop got;

	while ((got = stop_any(t, s)) != STOP_READY &&
	       passed < (got == STOP_BUSY ? seconds : OTHER_TRACER_SECONDS)) {
		pause_shortly();
		passed = now_seconds() - start;
	}
	if (got == STOP_FORBIDDEN)
		return forbidden(t->pid, why);
	if (got == STOP_BUSY)
		snprintf(why, ATTACH_WHY,
			 "in %.0f seconds none of its threads was at a place where it can be "
			 "interrupted; it was left alone",
			 seconds);
	return got == STOP_READY;
}

static uint64_t map_pages(const struct target *t, struct stopped *s, size_t len, int rights)
{
	const uint64_t a[6] = {
		0, len, (uint64_t)rights, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0
	};
	uint64_t at = 0;

	return thread_call(t, s, t->mmap, a, &at) && at < UINT64_MAX - 4096 ? at : 0;
}

static struct thread_data *thread_data(const struct target *t, const char *source, size_t *len)
{
	struct thread_data *d;

	*len = sizeof(*d) + strlen(source) + 1;
	d = need_new(*len);
	*d = (struct thread_data){ .pthread_self = t->pthread_self,
				   .pthread_detach = t->pthread_detach,
				   .Py_IsInitialized = t->Py_IsInitialized,
				   .PyGILState_Ensure = t->PyGILState_Ensure,
				   .PyRun_SimpleString = t->PyRun_SimpleString,
				   .PyGILState_Release = t->PyGILState_Release };
	memcpy(d->source, source, strlen(source));
	return d;
}

/* Starts the new thread. Its two mappings stay, because it returns through them. */
static bool make_thread(const struct target *t, struct stopped *s, const struct thread_data *d,
			size_t len, char why[ATTACH_WHY])
{
	uint64_t data = map_pages(t, s, len, PROT_READ | PROT_WRITE), failed = 1;
	uint64_t code = data ? map_pages(t, s, CODE_ROOM, PROT_READ | PROT_EXEC) : 0;
	const uint64_t a[6] = { data + offsetof(struct thread_data, id), 0, code, data };

	if (!code || !target_write(t, data, d, len) ||
	    !target_write(t, code, attach_code, (size_t)(attach_code_end - attach_code)))
		return no(why, "no memory can be mapped in it; it runs on unchanged");
	if (!thread_call(t, s, t->pthread_create, a, &failed) || (int)failed)
		return no(why, "no thread can be started in it; it runs on unchanged");
	return true;
}

bool attach_start(pid_t pid, const char *source, double seconds, char why[ATTACH_WHY])
{
	struct stopped s = { 0 };
	struct thread_data *d;
	struct target t;
	bool fine = false;
	size_t len;

	if (!target_open(&t, pid, why))
		return attach_lives(pid) ? false : no(why, "it has ended");
	d = thread_data(&t, source, &len);
	if (stop_one(&t, seconds, &s, why)) {
		fine = make_thread(&t, &s, d, len, why);
		thread_release(&s);
	}
	if (!fine && !attach_lives(pid))
		no(why, "it ended before its snapshot was written");
	free(d);
	target_close(&t);
	return fine;
}

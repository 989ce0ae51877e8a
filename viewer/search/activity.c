/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc for the processes that were started here and all their descendants, in whatever group
 * or session they are now. A process that only polls (a thread that wakes every tenth of a second)
 * counts as idle: less than 1/IDLE_SHARE of a processor is no activity.
 */
#include "activity.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../base/need.h"
#include "../base/now.h"
#include "../base/proc.h"
#include "trial.h"

#define LOOK_MS	   1000
#define IDLE_SHARE 50 /* a processor's share, as 1 / IDLE_SHARE */
#define BURST	   5  /* ticks of processor time that count as idle */
#define WORK	   20 /* pieces of work in a second that count as work */
#define TRIES	   50
#define LISTENS	   "0A"	     /* the state of a socket, in /proc/net/tcp */
#define SOCKETS	   (1 << 16) /* most descriptors looked at */

struct process {
	pid_t pid, parent, group;
	char state;
	uint64_t ticks, ended; /* of the processor; of its ended children */
	bool ours, below;      /* below: of a process that uses the device */
};

static bool read_process(struct process *p, const char *name)
{
	unsigned long long user, system, child_user, child_system;
	char text[PROC_STAT];
	const char *stat;
	int parent, group;

	p->pid = (pid_t)atol(name);
	stat = proc_stat(text, p->pid);
	if (!stat ||
	    sscanf(stat, "%c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &p->state,
		   &parent, &group, &user, &system, &child_user, &child_system) != 7)
		return false;
	p->parent = parent;
	p->group = group;
	p->ticks = user + system;
	p->ended = child_user + child_system;
	p->ours = p->below = false;
	return true;
}

static struct process *all_processes(size_t *count)
{
	DIR *d = opendir("/proc");
	struct process *all = NULL;
	size_t room = 0;
	struct dirent *e;

	*count = 0;
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		all = need_grow(all, &room, *count, sizeof(*all));
		*count += read_process(&all[*count], e->d_name);
	}
	if (d)
		closedir(d);
	return all;
}

static const struct process *find_process(const struct process *all, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].pid == pid)
			return &all[i];
	return NULL;
}

static bool parent_is_ours(const struct process *all, size_t n, pid_t pid)
{
	const struct process *p = find_process(all, n, pid);

	return p && p->ours;
}

static void find_ours(struct process *all, size_t n, pid_t group)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			if (all[i].ours ||
			    (all[i].group != group && !parent_is_ours(all, n, all[i].parent)))
				continue;
			all[i].ours = more = true;
		}
	}
}

static bool uses_device(const struct activity *a, pid_t pid)
{
	for (size_t i = 0; i < a->pid_count; i++)
		if (a->pids[i] == pid)
			return true;
	return false;
}

static void find_below(const struct activity *a, struct process *all, size_t n)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			const struct process *p = find_process(all, n, all[i].parent);

			if (all[i].below || uses_device(a, all[i].pid) || !p ||
			    (!p->below && !uses_device(a, p->pid)))
				continue;
			all[i].below = more = true;
		}
	}
}

/* Processor time of all our processes, and of the descendants of those that use the device, ended
 * ones included. A process that waits for a processor or a disk counts as active. */
static uint64_t ticks_now(const struct activity *a, bool *runs, uint64_t *below)
{
	size_t n;
	struct process *all = all_processes(&n);
	uint64_t ticks = 0;

	find_ours(all, n, a->group);
	find_below(a, all, n);
	*runs = false;
	*below = 0;
	for (size_t i = 0; i < n; i++) {
		if (!all[i].ours)
			continue;
		ticks += all[i].ticks;
		*runs |= all[i].state == 'D' || all[i].state == 'R';
		*below += all[i].below		       ? all[i].ticks + all[i].ended
			  : uses_device(a, all[i].pid) ? all[i].ended
						       : 0;
	}
	free(all);
	return ticks;
}

/* The device's count of its work (simgpu/core/usage.c). */
static uint64_t device_work(const struct activity *a)
{
	uint64_t work = 0;
	int fd = open(a->usage, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && pread(fd, &work, sizeof(work), offsetof(struct usage, work)) != sizeof(work))
		work = 0;
	if (fd >= 0)
		close(fd);
	return work;
}

static pid_t latest(const struct activity *a)
{
	return a->pid_count ? a->pids[a->pid_count - 1] : 0;
}

/* How often the main thread has begun to wait. */
static uint64_t switches_now(const struct activity *a)
{
	long n = proc_status(latest(a), "voluntary_ctxt_switches");

	return n < 0 ? 0 : (uint64_t)n;
}

void activity_begin(struct activity *a, pid_t group, const char *usage)
{
	*a = (struct activity){ .group = group, .usage = usage, .moved_ms = now_ms() };
	a->worked_ms = a->second_ms = a->moved_ms;
}

void activity_uses_device(struct activity *a, pid_t pid)
{
	if (pid <= 0 || uses_device(a, pid) || a->pid_count == ACTIVITY_DEVICE)
		return;
	a->pids[a->pid_count++] = pid;
	a->below = 0;
}

/* A lower total counts as activity: a process has ended, and its time is no longer included. */
static bool is_much(uint64_t before, uint64_t ticks, uint64_t ms)
{
	uint64_t tick_ms = 1000 / (uint64_t)sysconf(_SC_CLK_TCK);

	return ticks < before || (ticks - before) * tick_ms > BURST * tick_ms + ms / IDLE_SHARE;
}

/* Counts a second of work, unless compilers run below the process. The device's work meanwhile
 * would not be the program's usual work. */
static void count_second(struct activity *a, uint64_t now, uint64_t work, uint64_t below)
{
	bool busy = is_much(a->below, below, now - a->second_ms);

	if (!busy && work - a->second_work < WORK)
		return;
	a->seconds += !busy;
	a->second_ms = now;
	a->second_work = work;
	a->below = below;
}

void activity_look(struct activity *a, uint64_t events)
{
	uint64_t now = now_ms(), given = device_work(a), work = given + events, ticks, below;
	bool runs;

	if (now - a->look_ms < LOOK_MS)
		return;
	a->look_ms = now;
	ticks = ticks_now(a, &runs, &below);
	count_second(a, now, given, below);
	if (work != a->work)
		a->worked_ms = now;
	if (runs || work != a->work || is_much(a->ticks, ticks, now - a->moved_ms)) {
		a->moved_ms = now;
		a->ticks = ticks;
		a->switches = switches_now(a);
	}
	a->work = work;
}

/* ---- while the program is idle ---- */

/* Number of the system call that the main thread is in; -1: none, or it cannot be read. */
static long call_now(const struct activity *a)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	int pid = (int)(a->pid_count ? latest(a) : a->group);
	char text[256];

	for (int i = 0; i < TRIES; i++) {
		if (!proc_read(text, sizeof(text), "/proc/%d/syscall", pid))
			return -1;
		if (isdigit((unsigned char)text[0]))
			return atol(text);
		nanosleep(&pause, NULL); /* it was just awake */
	}
	return -1;
}

static const struct {
	long call;
	const char *words;
} calls[] = {
	{ SYS_futex, "a lock, or another thread" },
	{ SYS_clock_nanosleep, "the end of short sleeps, one after another" },
	{ SYS_nanosleep, "the end of short sleeps, one after another" },
	{ SYS_wait4, "another process" },
	{ SYS_waitid, "another process" },
	{ SYS_ppoll, "a connection or another process" },
	{ SYS_pselect6, "a connection or another process" },
	{ SYS_epoll_pwait, "a connection or another process" },
	{ SYS_read, "a file, a pipe or a terminal" },
	{ SYS_recvfrom, "a connection" },
	{ SYS_recvmsg, "a connection" },
	{ SYS_accept, "a connection" },
	{ SYS_accept4, "a connection" },
	{ SYS_flock, "a file that another process has locked" },
#ifdef SYS_poll
	{ SYS_poll, "a connection or another process" },
	{ SYS_select, "a connection or another process" },
	{ SYS_epoll_wait, "a connection or another process" },
#endif
};

const char *activity_waits_for(const struct activity *a)
{
	long call = call_now(a);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].call == call)
			return calls[i].words;
	return "something that cannot be seen from outside";
}

bool activity_sleeps(const struct activity *a)
{
	long call = call_now(a);

	return (call == SYS_clock_nanosleep || call == SYS_nanosleep || call == SYS_pselect6) &&
	       switches_now(a) <= a->switches + 1;
}

static bool is_listening(pid_t pid, unsigned long inode, const char *table)
{
	FILE *f = proc_open("/proc/%d/net/%s", (int)pid, table);
	char line[512], state[8];
	unsigned long of;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, " %*s %*s %*s %7s %*s %*s %*s %*s %*s %lu", state, &of) == 2 &&
			of == inode && !strcmp(state, LISTENS);
	if (f)
		fclose(f);
	return found;
}

static bool process_listens(pid_t pid)
{
	char path[64], to[64];
	bool found = false;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	for (int i = 0; d && !found && i < SOCKETS && (e = readdir(d)); i++) {
		unsigned long inode;
		ssize_t n = readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1);

		to[n > 0 ? n : 0] = 0;
		found = sscanf(to, "socket:[%lu]", &inode) == 1 &&
			(is_listening(pid, inode, "tcp") || is_listening(pid, inode, "tcp6"));
	}
	if (d)
		closedir(d);
	return found;
}

/* Whether the process that uses the device listens, or one of its ancestors, because a server may
 * start it. */
bool activity_listens(const struct activity *a)
{
	size_t n;
	struct process *all = all_processes(&n);
	pid_t pid = latest(a);
	bool found = false;

	find_ours(all, n, a->group);
	while (pid && !found) {
		pid_t parent = 0;

		found = process_listens(pid);
		for (size_t i = 0; i < n; i++)
			if (all[i].pid == pid && parent_is_ours(all, n, all[i].parent))
				parent = all[i].parent;
		pid = parent;
	}
	free(all);
	return found;
}

/* Repeats until no process is left, because a process may start another one during a round. */
void activity_end_all(void)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	bool any = true;

	for (int i = 0; any && i < TRIES; i++) {
		size_t n;
		struct process *all = all_processes(&n);

		for (size_t k = 0; k < n; k++)
			all[k].ours = all[k].parent == getpid();
		find_ours(all, n, -1);
		any = false;
		for (size_t k = 0; k < n; k++)
			any |= all[k].ours && !kill(all[k].pid, SIGKILL);
		free(all);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (any)
			nanosleep(&pause, NULL);
	}
}

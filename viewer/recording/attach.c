/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../base/now.h"
#include "../base/need.h"
#include "../base/proc.h"
#include "registers_parts.h"

enum { CODE_ROOM = 4096, PAUSE_MS = 2 };

/* Another attach traces for less than a millisecond, but a debugger stays. */
#define OTHER_TRACER_SECONDS 0.5

static void pause_shortly(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };

	nanosleep(&pause, NULL);
}

#define PF_EXITING 4 /* of the kernel: the process is exiting, and frees its memory */

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

/* Tries one thread after the other, waiting ones before running ones, until one stops. */
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

/* The two mappings stay, because the thread returns through them. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways out of a process that run no destructor: _exit, _Exit, quick_exit, and exec, after which
 * the process is another program. Forked workers end by _exit. The recording is finished first, by
 * its own thread; the caller waits for it two seconds at most. Any thread, signal handlers
 * included.
 *
 * A child of vfork calls these functions with its parent's memory: nothing is touched there (see
 * session_leave), and no function is looked up, because all were found at load. Not covered: system
 * calls that bypass the C library, and signals.
 */
#include "leave.h"

#include "capture.h"
#include "cuda/resolve.h"
#include "recording/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

/* name, result, (parameters) */
#define FUNCTIONS(F)                                                                \
	F(_exit, void, (int code))                                                  \
	F(execve, int, (const char *path, char *const argv[], char *const envp[]))  \
	F(execv, int, (const char *path, char *const argv[]))                       \
	F(execvp, int, (const char *file, char *const argv[]))                      \
	F(execvpe, int, (const char *file, char *const argv[], char *const envp[])) \
	F(fexecve, int, (int fd, char *const argv[], char *const envp[]))           \
	F(execveat, int,                                                            \
	  (int dir, const char *path, char *const argv[], char *const envp[], int flags))

static struct {
#define F(name, result, proto) result(*name) proto;
	FUNCTIONS(F)
#undef F
} libc;

#define REAL(name) (libc.name ? libc.name : (typeof(libc.name))resolve_next(#name))

static void leave(void)
{
	session_leave();
}

__attribute__((constructor)) static void leave_load(void)
{
#define F(name, result, proto) libc.name = (typeof(libc.name))resolve_next(#name);
	FUNCTIONS(F)
#undef F
}

void leave_setup(void)
{
	at_quick_exit(leave); /* the first that is registered is the last to run */
}

API _Noreturn void _exit(int code)
{
	session_leave();
	if (REAL(_exit))
		REAL(_exit)(code);
	for (;;)
		syscall(SYS_exit_group, code);
}

API _Noreturn void _Exit(int code)
{
	_exit(code);
}

/* ---- exec: only a file that can be started ends the recording ---- */

static bool is_program(int dir, const char *path, int flags)
{
	struct stat st;

	return !fstatat(dir, path, &st, flags) && S_ISREG(st.st_mode) &&
	       (flags & AT_EMPTY_PATH || !faccessat(dir, path, X_OK, 0));
}

static bool is_on_path(const char *name)
{
	const char *folders = getenv("PATH");
	char path[4096];

	if (!folders)
		folders = "/bin:/usr/bin";
	for (size_t n; *folders; folders += n + (folders[n] == ':')) {
		n = strcspn(folders, ":");
		if (n + strlen(name) + 2 > sizeof(path))
			continue;
		memcpy(path, folders, n);
		path[n] = '/';
		strcpy(path + n + (n > 0), name);
		if (is_program(AT_FDCWD, path, 0))
			return true;
	}
	return false;
}

static bool is_found(const char *file)
{
	return strchr(file, '/') ? is_program(AT_FDCWD, file, 0) : is_on_path(file);
}

/* Exec returned, so it failed. A recording that was finished (left) does not go on. */
static int came_back(bool left, int rc)
{
	static bool said;
	int why = errno;

	if (left)
		gmt_say(&said, "an exec failed; the recording was finished before it, and what the "
			       "program does from here on is not in it");
	errno = why;
	return rc;
}

/* `startable` is looked at only in a process that records. */
#define EXEC(startable, call)                                                     \
	do {                                                                      \
		bool left_ = session_is_here() && (startable) && session_leave(); \
                                                                                  \
		return came_back(left_, call);                                    \
	} while (0)

API int execve(const char *path, char *const argv[], char *const envp[])
{
	EXEC(is_program(AT_FDCWD, path, 0), REAL(execve)(path, argv, envp));
}

API int execv(const char *path, char *const argv[])
{
	EXEC(is_program(AT_FDCWD, path, 0), REAL(execv)(path, argv));
}

API int execvp(const char *file, char *const argv[])
{
	EXEC(is_found(file), REAL(execvp)(file, argv));
}

API int execvpe(const char *file, char *const argv[], char *const envp[])
{
	EXEC(is_found(file), REAL(execvpe)(file, argv, envp));
}

API int fexecve(int fd, char *const argv[], char *const envp[])
{
	EXEC(is_program(fd, "", AT_EMPTY_PATH), REAL(fexecve)(fd, argv, envp));
}

API int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	if (!libc.execveat) /* for a C library without this function */
		EXEC(is_program(dir, path, flags),
		     (int)syscall(SYS_execveat, dir, path, argv, envp, flags));
	EXEC(is_program(dir, path, flags), libc.execveat(dir, path, argv, envp, flags));
}

/* The arguments after `first` up to NULL, as an array on this function's stack; `list` is then
 * behind the NULL. */
#define COLLECT(argv, list, first)                                  \
	do {                                                        \
		size_t n_ = 1;                                      \
                                                                    \
		va_start(list, first);                              \
		while (va_arg(list, char *))                        \
			n_++;                                       \
		va_end(list);                                       \
		argv = __builtin_alloca((n_ + 1) * sizeof(char *)); \
		argv[0] = (char *)(uintptr_t)first;                 \
		va_start(list, first);                              \
		for (size_t i_ = 1; i_ <= n_; i_++)                 \
			argv[i_] = va_arg(list, char *);            \
	} while (0)

API int execl(const char *path, const char *arg, ...)
{
	char **argv;
	va_list list;

	COLLECT(argv, list, arg);
	va_end(list);
	return execv(path, argv);
}

API int execlp(const char *file, const char *arg, ...)
{
	char **argv;
	va_list list;

	COLLECT(argv, list, arg);
	va_end(list);
	return execvp(file, argv);
}

API int execle(const char *path, const char *arg, ...)
{
	char **argv, **envp;
	va_list list;

	COLLECT(argv, list, arg);
	envp = va_arg(list, char **);
	va_end(list);
	return execve(path, argv, envp);
}

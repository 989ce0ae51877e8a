/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS 8
#define IS_RECENT "import sys; sys.exit(sys.version_info < (3, 9))" /* PYTHON_LEAST */

/* Replaces this process, which was forked from `parent`. */
static _Noreturn void become(const char *python, const char *const *args, const int fds[3],
			     pid_t parent)
{
	const char *argv[ARGUMENTS + 4] = { python, "-I", "-S" };
	int moved[3];

	for (size_t i = 0; i < ARGUMENTS && args[i]; i++)
		argv[3 + i] = args[i];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	unsetenv("LD_PRELOAD"); /* nothing is to be recorded here */
	for (int fd = 0; fd < 3; fd++)
		moved[fd] = fcntl(fds[fd], F_DUPFD_CLOEXEC, 3);
	for (int fd = 0; fd < 3; fd++)
		dup2(moved[fd], fd);
	execvp(python, (char **)argv);
	_exit(EXIT_FAILURE);
}

static bool is_recent(const char *python)
{
	const char *const args[] = { "-c", IS_RECENT, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), status = 0;
	pid_t self = getpid(), pid = fork();

	if (pid == 0)
		become(python, args, (const int[]){ null, null, null }, self);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	close(null);
	return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

const char *python_place(size_t i)
{
	static const char *const names[] = { "python3", "python" };
	const char *named = getenv("GPUMEMTRACE_PYTHON");

	if (named && *named && i-- == 0)
		return named;
	return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

const char *python_find(const char *last)
{
	const char *python;

	for (size_t i = 0; (python = python_place(i)); i++)
		if (is_recent(python))
			return python;
	return last && *last && is_recent(last) ? last : NULL;
}

/* A file without a name that has this text; -1: none. */
static int file_of(const char *text)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text);

	if (fd >= 0 && (write(fd, text, (size_t)len) != len || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

pid_t python_start(const char *python, const char *program, const char *const *args, int *out,
		   int err)
{
	const char *all[ARGUMENTS] = { "-" };
	int in = file_of(program), ends[2] = { -1, -1 };
	pid_t self = getpid(), pid = -1;

	for (size_t i = 0; i + 2 < ARGUMENTS && args[i]; i++)
		all[1 + i] = args[i];
	if (in >= 0 && !pipe2(ends, O_CLOEXEC))
		pid = fork();
	if (pid == 0)
		become(python, all, (const int[]){ in, ends[1], err }, self);
	if (pid < 0 && ends[0] >= 0)
		close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	if (in >= 0)
		close(in);
	*out = ends[0];
	return pid;
}

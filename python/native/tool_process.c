/* SPDX-License-Identifier: Apache-2.0 */
#include "tool_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals that Python ignores or has blocked must end the tool: a pipe that is closed, above all.
 */
static int set_signals(posix_spawnattr_t *a)
{
	sigset_t none, usual;

	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	posix_spawnattr_setsigmask(a, &none);
	posix_spawnattr_setsigdefault(a, &usual);
	return posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(struct child *c, int out, const char *path, char *const argv[], char *const envp[])
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int rc = posix_spawn_file_actions_init(&files);

	if (rc)
		return rc;
	rc = posix_spawnattr_init(&attributes);
	if (!rc)
		rc = set_signals(&attributes);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&files, out, 1);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&files, c->err, 2);
	if (!rc)
		rc = posix_spawn(&c->pid, path, &files, &attributes, argv, envp);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

int child_start(struct child *c, const char *path, char *const argv[], char *const envp[])
{
	int pipes[2], rc;

	*c = (struct child){ 0, -1, -1 };
	if (pipe2(pipes, O_CLOEXEC))
		return errno;
	fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
	c->out = pipes[0];
	c->err = memfd_create("stderr", MFD_CLOEXEC);
	rc = c->err < 0 ? errno : spawn(c, pipes[1], path, argv, envp);
	close(pipes[1]);
	if (rc)
		child_kill(c);
	return rc;
}

/* Somebody else of the process may have waited for it: then its code is not known. */
static int wait_for(struct child *c)
{
	int status = 0;
	pid_t got;

	if (!c->pid)
		return -1;
	while ((got = waitpid(c->pid, &status, 0)) < 0 && errno == EINTR)
		;
	c->pid = 0;
	if (got < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void close_both(struct child *c)
{
	if (c->out >= 0)
		close(c->out);
	if (c->err >= 0)
		close(c->err);
	c->out = c->err = -1;
}

int child_end(struct child *c, char *text, size_t room)
{
	ssize_t n;
	int code;

	close(c->out);
	c->out = -1;
	code = wait_for(c);
	n = pread(c->err, text, room - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close_both(c);
	return code;
}

void child_kill(struct child *c)
{
	close_both(c);
	if (c->pid)
		kill(c->pid, SIGKILL);
	wait_for(c);
}

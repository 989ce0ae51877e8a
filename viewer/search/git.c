/* SPDX-License-Identifier: Apache-2.0 */
#include "git.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/need.h"
#include "../base/ending.h"

#define WORDS 32

enum { NOWHERE = -1, TOGETHER = -2 }; /* in place of a descriptor for error output */

static volatile pid_t running;

void git_interrupt(int signal)
{
	if (running > 0)
		kill(-running, signal);
}

static void become(const char *folder, const char *const *argv, int out, int errors)
{
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	if (folder && chdir(folder))
		_exit(126);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(errors == TOGETHER ? out : errors == NOWHERE ? null : errors, STDERR_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static char *read_all(int fd)
{
	size_t room = 4096, n = 0;
	char *text = need_new(room);
	ssize_t got;

	while ((got = read(fd, text + n, room - n - 1)) > 0 || (got < 0 && errno == EINTR)) {
		n += got > 0 ? (size_t)got : 0;
		if (n + 1 == room)
			text = need_resize(text, room *= 2);
	}
	while (n && text[n - 1] == '\n')
		n--;
	text[n] = 0;
	return text;
}

static int run(const char *folder, const char *const *argv, int errors, char **text)
{
	int pipe_ends[2], status = 0;
	pid_t pid;

	*text = NULL;
	if (pipe2(pipe_ends, O_CLOEXEC))
		return 126;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become(folder, argv, pipe_ends[1], errors);
	if (pid > 0)
		setpgid(pid, pid);
	running = pid;
	close(pipe_ends[1]);
	*text = read_all(pipe_ends[0]);
	close(pipe_ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	running = 0;
	if (pid < 0)
		return 126;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int git_run_program(const char *folder, const char *const *argv, char **text)
{
	return run(folder, argv, TOGETHER, text);
}

/* Switches hooks off, because the repository's hooks are meant for its own tree. */
static void git_words(const char *argv[WORDS], const char *const *words)
{
	size_t n = 0;

	argv[n++] = "git";
	argv[n++] = "-c";
	argv[n++] = "core.hooksPath=/dev/null";
	argv[n++] = "-c";
	argv[n++] = "advice.detachedHead=false";
	while (*words && n + 1 < WORDS)
		argv[n++] = *words++;
	argv[n] = NULL;
}

static char *last_line(const char *text)
{
	const char *line = ending_behind(text, '\n');

	return need_copy(line, strlen(line));
}

static char *why_not(int rc, int errors)
{
	char *text, *line;

	if (rc == 127)
		return need_copy("git was not found", 17);
	if (lseek(errors, 0, SEEK_SET) < 0)
		return need_copy("", 0);
	text = read_all(errors);
	line = last_line(text);
	free(text);
	return line;
}

/* Discards git's warnings, which are not part of its answer. */
char *git_ask(const char *folder, char **why, const char *const *words)
{
	int errors = why ? memfd_create("errors", MFD_CLOEXEC) : NOWHERE, rc;
	const char *argv[WORDS];
	char *text;

	git_words(argv, words);
	rc = run(folder, argv, errors, &text);
	if (rc) {
		if (why)
			*why = why_not(rc, errors);
		free(text);
		text = NULL;
	}
	if (errors >= 0)
		close(errors);
	return text;
}

bool git_into(const char *folder, char *into, size_t room, const char *const *words)
{
	char *text = git_ask(folder, NULL, words);

	snprintf(into, room, "%s", text ? text : "");
	free(text);
	return text;
}

bool git_does(const char *folder, const char *const *words)
{
	char none[1];

	return git_into(folder, none, sizeof(none), words);
}

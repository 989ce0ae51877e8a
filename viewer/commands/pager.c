/* SPDX-License-Identifier: Apache-2.0 */
#include "pager.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/machine.h"

static struct {
	FILE *file;
	char *held; /* text not printed yet, up to a screenful */
	size_t len, room;
	size_t lines, column;
	struct winsize screen;
	int fd; /* the pager's or stdout; -1 while text is held */
	pid_t pid;
} pager;

static bool wanted(void)
{
	const char *name = getenv("PAGER");

	if (name && (!*name || !strcmp(name, "cat")))
		return false;
	return machine_moves(stdout) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &pager.screen) &&
	       pager.screen.ws_row && pager.screen.ws_col;
}

static void run_pager(int in)
{
	/* If the pager cannot be started, cat prints the text after the shell's error message. */
	static const char try[] =
		"eval \"$PAGER\"; c=$?; case $c in 126|127) exec cat;; esac; exit $c";
	const char *name = getenv("PAGER");

	dup2(in, STDIN_FILENO);
	close(in);
	setenv("LESS", "FRX", 0); /* ends if the text fits, and keeps colours */
	signal(SIGINT, SIG_DFL);
	if (name)
		execl("/bin/sh", "sh", "-c", try, (char *)NULL);
	else
		execlp("less", "less", (char *)NULL);
	execlp("cat", "cat", (char *)NULL);
	_exit(127);
}

/* From now on an interrupt is for the pager. If the user ends it early, the next write ends this
 * process (SIGPIPE). */
static void start_pager(void)
{
	int ends[2] = { -1, -1 };

	pager.fd = STDOUT_FILENO;
	if (pipe(ends))
		return;
	pager.pid = fork();
	if (!pager.pid) {
		close(ends[1]);
		run_pager(ends[0]);
	}
	close(ends[0]);
	if (pager.pid < 0) {
		close(ends[1]);
		return;
	}
	pager.fd = ends[1];
	signal(SIGINT, SIG_IGN);
	say_progress_off();
}

static void pass_on_text(const char *s, size_t len)
{
	while (len) {
		ssize_t n = write(pager.fd, s, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		s += n;
		len -= (size_t)n;
	}
}

static void hold_text(const char *s, size_t len)
{
	while (pager.len + len > pager.room)
		pager.held = need_resize(pager.held, pager.room = 2 * (pager.room + len));
	memcpy(pager.held + pager.len, s, len);
	pager.len += len;
	for (size_t i = 0; i < len; i++) {
		bool ends = s[i] == '\n' || pager.column == pager.screen.ws_col;

		pager.lines += ends;
		pager.column = ends ? 0 : pager.column + 1;
	}
}

static ssize_t take_output(UNUSED void *cookie, const char *s, size_t len)
{
	if (pager.fd < 0) {
		hold_text(s, len);
		if (pager.lines < pager.screen.ws_row)
			return (ssize_t)len;
		start_pager();
		s = pager.held;
		pass_on_text(s, pager.len);
		return (ssize_t)len;
	}
	pass_on_text(s, len);
	return (ssize_t)len;
}

/* Prints what is held, or waits for the pager. Also called before a message on stderr, so that the
 * message comes last. */
static void finish_pager(void)
{
	fflush(pager.file);
	if (pager.fd < 0) {
		pager.fd = STDOUT_FILENO;
		pass_on_text(pager.held, pager.len);
	}
	if (pager.pid <= 0)
		return;
	close(pager.fd);
	pager.fd = STDOUT_FILENO;
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
	pager.pid = 0;
	signal(SIGINT, SIG_DFL);
}

FILE *pager_open(void)
{
	static const cookie_io_functions_t functions = { .write = take_output };

	pager.fd = -1;
	if (!wanted())
		return stdout;
	pager.file = fopencookie(NULL, "w", functions);
	if (!pager.file)
		return stdout;
	say_before(finish_pager);
	return pager.file;
}

void pager_close(FILE *f)
{
	if (f == stdout)
		return;
	finish_pager();
	say_before(NULL);
	fclose(f);
	free(pager.held);
	pager.held = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_engine.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/asset.h"
#include "../base/say.h"

ASSET_FILE(engine, "viewer/lake/engine.py");

enum { NO_DUCKDB = 96, NOT_STARTED = 97 };

/* A file without a name that has these bytes. */
static int file_of(const char *name, const char *first, size_t first_len, const char *rest)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	size_t len = strlen(rest);

	if (fd >= 0 && (write(fd, first, first_len) != (ssize_t)first_len ||
			write(fd, rest, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void become(const char *python, int in, int out, int err)
{
	char *argv[] = { (char *)python, "-c", (char *)asset_engine, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	unsetenv("LD_PRELOAD"); /* nothing is to be recorded here */
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execvp(python, argv);
	_exit(NOT_STARTED);
}

static void read_answer(const struct lake_question *q, int fd)
{
	FILE *f = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	bool first = true;
	ssize_t n;

	while (f && (n = getline(&line, &room, f)) > 0) {
		(first ? q->columns : q->row)(q->ctx, json_text(line, (size_t)n));
		first = false;
	}
	free(line);
	if (f)
		fclose(f);
	else
		close(fd);
}

/* DuckDB's own words, in one line. */
static int wrong_query(int err)
{
	char text[1024];
	ssize_t n = pread(err, text, sizeof(text) - 1, 0);

	n = n < 0 ? 0 : n;
	while (n && text[n - 1] == '\n')
		n--;
	text[n] = 0;
	return say_error(EXIT_USAGE, "DuckDB: %s", n ? text : "the query failed");
}

static int ended(int status, int err)
{
	if (WIFSIGNALED(status))
		return say_error(EXIT_UNREADABLE, "DuckDB was ended by signal %d (%s)",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status) ? wrong_query(err) : 0;
}

/* -1: this Python has no DuckDB, or is not there. */
static int ask(const struct lake_question *q, const char *python)
{
	int in = file_of("query", q->prepare, strlen(q->prepare) + 1, q->query);
	int err = file_of("errors", "", 0, ""), ends[2] = { -1, -1 }, status = 0, rc;
	pid_t pid = in < 0 || err < 0 || pipe(ends) ? -1 : fork();

	if (pid == 0)
		become(python, in, ends[1], err);
	if (pid < 0) {
		rc = say_error(EXIT_UNREADABLE, "%s cannot be started: %s", python,
			       strerror(errno));
	} else {
		close(ends[1]);
		read_answer(q, ends[0]);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		rc = WIFEXITED(status) && WEXITSTATUS(status) >= NO_DUCKDB &&
				     WEXITSTATUS(status) <= NOT_STARTED
			     ? -1
			     : ended(status, err);
	}
	if (in >= 0)
		close(in);
	if (err >= 0)
		close(err);
	return rc;
}

int lake_ask(const struct lake_question *q)
{
	const char *const places[] = { getenv("GPUMEMTRACE_PYTHON"), "python3", "python" };
	int rc = -1;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && rc < 0; i++)
		if (places[i] && *places[i])
			rc = ask(q, places[i]);
	if (rc >= 0)
		return rc;
	return say_error(
		EXIT_USAGE,
		"this runs in DuckDB, and neither python3 nor python on the PATH has it: "
		"pip install 'gpumemtrace[sql]' or pip install duckdb (or name a Python that has "
		"it: GPUMEMTRACE_PYTHON=PATH)");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/asset.h"
#include "../base/ending.h"
#include "../base/say.h"

ASSET_FILE(engine, "viewer/lake/engine.py");

enum { NO_DUCKDB = 96, NOT_STARTED = 97, ANSWER = 3, LINE = 512 };

/* foreign: something came that is no part of an answer. */
struct answer {
	const struct lake_question *q;
	size_t columns, rows;
	bool begun, whole, foreign;
	int code;
	char error[1024];
};

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

/* Its answer has a descriptor of its own: what DuckDB, a package or the start of Python writes on
 * standard output is kept beside the errors. */
static void become(const char *python, int in, int out, int err)
{
	char *argv[] = { (char *)python, "-c", (char *)asset_engine, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	unsetenv("LD_PRELOAD");			     /* nothing is to be recorded here */
	in = fcntl(in, F_DUPFD_CLOEXEC, ANSWER + 1); /* out of the way of the four below */
	out = fcntl(out, F_DUPFD_CLOEXEC, ANSWER + 1);
	err = fcntl(err, F_DUPFD_CLOEXEC, ANSWER + 1);
	dup2(in, STDIN_FILENO);
	dup2(err, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	dup2(out, ANSWER);
	execvp(python, argv);
	_exit(NOT_STARTED);
}

/* ---- the answer, line by line ---- */

static size_t count_items(struct json array)
{
	size_t n = 0;

	for (struct json v = json_first(array, NULL); v.s; v = json_next(array, v, NULL))
		n++;
	return n;
}

/* The last line: how many rows there were, or an error. False: it is neither. */
static bool take_end(struct answer *a, struct json v)
{
	struct json error = json_member(v, "error"), rows = json_member(v, "rows");

	if (error.s) {
		json_string(error, a->error, sizeof(a->error));
		a->code = json_unsigned(json_member(v, "code")) == EXIT_UNREADABLE ? EXIT_UNREADABLE
										   : EXIT_USAGE;
		return true;
	}
	a->whole = a->begun && rows.s && json_unsigned(rows) == a->rows;
	return a->whole;
}

static bool take_line(struct answer *a, const char *line, size_t len)
{
	struct json v = json_text(line, len);

	if (v.s != line || v.end != line + len - 1 || *v.end != '\n' || a->whole || a->error[0])
		return false;
	if (*v.s == '{')
		return take_end(a, v);
	if (*v.s != '[' || (a->begun && count_items(v) != a->columns))
		return false;
	if (a->begun) {
		a->rows++;
		a->q->row(a->q->ctx, v);
		return true;
	}
	a->begun = true;
	a->columns = count_items(v);
	a->q->columns(a->q->ctx, v);
	return true;
}

/* False: a signal is to end this process. */
static bool read_answer(struct answer *a, int fd)
{
	FILE *f = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	bool goes_on;
	ssize_t n;

	while (f && !a->foreign && (n = getline(&line, &room, f)) > 0)
		a->foreign = !take_line(a, line, (size_t)n);
	goes_on = f && !ferror(f);
	free(line);
	if (f)
		fclose(f);
	else
		close(fd);
	return goes_on;
}

/* ---- what came of it ---- */

/* The last line of what was written beside the answer, with ": " before it. */
static void last_line(int err, char text[LINE])
{
	char all[4096];
	off_t size = lseek(err, 0, SEEK_END), from = size > 4095 ? size - 4095 : 0;
	ssize_t n = pread(err, all, sizeof(all) - 1, from);
	const char *line;

	n = n < 0 ? 0 : n;
	while (n && (all[n - 1] == '\n' || all[n - 1] == '\r'))
		n--;
	all[n] = 0;
	line = ending_behind(all, '\n');
	snprintf(text, LINE, "%s%.*s", n ? ": " : "", LINE - 4, line);
}

static int judge(const struct answer *a, const char *python, int status, int err)
{
	char words[LINE];

	if (a->whole && !a->foreign)
		return 0;
	if (a->error[0] && !a->foreign)
		return say_error(a->code, "DuckDB: %s", a->error);
	last_line(err, words);
	if (a->foreign)
		return say_error(EXIT_UNREADABLE,
				 "the answer of DuckDB in %s cannot be read after %zu rows%s",
				 python, a->rows, words);
	if (WIFSIGNALED(status))
		return say_error(EXIT_UNREADABLE, "DuckDB was ended by signal %d (%s)",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return say_error(EXIT_UNREADABLE,
			 "%s ended with code %d before the answer of DuckDB was complete%s", python,
			 WEXITSTATUS(status), words);
}

static bool lacks_duckdb(const struct answer *a, int status)
{
	return !a->begun && !a->error[0] && !a->foreign && WIFEXITED(status) &&
	       (WEXITSTATUS(status) == NO_DUCKDB || WEXITSTATUS(status) == NOT_STARTED);
}

/* -1: this Python has no DuckDB, or is not there. */
static int ask(const struct lake_question *q, const char *python)
{
	int in = file_of("query", q->prepare, strlen(q->prepare) + 1, q->query);
	int err = file_of("errors", "", 0, ""), ends[2] = { -1, -1 }, status = 0, rc;
	pid_t pid = in < 0 || err < 0 || pipe2(ends, O_CLOEXEC) ? -1 : fork();
	struct answer a = { .q = q };

	if (pid == 0)
		become(python, in, ends[1], err);
	if (pid < 0) {
		rc = say_error(EXIT_UNREADABLE, "%s cannot be started: %s", python,
			       strerror(errno));
	} else {
		close(ends[1]);
		if (!read_answer(&a, ends[0]) || a.foreign)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		rc = lacks_duckdb(&a, status) ? -1 : judge(&a, python, status, err);
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
	return say_error(EXIT_USAGE,
			 "this runs in DuckDB, and neither python3 nor python on the PATH has it: "
			 "pip install duckdb (or name a Python that has "
			 "it: GPUMEMTRACE_PYTHON=PATH)");
}

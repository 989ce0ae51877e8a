/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/ending.h"
#include "../base/interpreter.h"
#include "../base/say.h"
#include "lake_request.h"

enum { NO_DUCKDB = 96, NOT_STARTED = 97, ANSWER = 3, TERMINAL = 4, LINE = 512 };

/* foreign: something came that is no part of an answer. */
struct answer {
	const struct lake_question *q;
	size_t columns, rows;
	bool begun, whole, foreign;
	int code;
	char error[1024];
};

/* ---- signals ---- */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
#define ENDING (sizeof(ending) / sizeof(ending[0]))

static volatile sig_atomic_t interrupted;
static volatile pid_t child;

static void pass_signal_on(int signal)
{
	interrupted = signal;
	if (child > 0)
		kill(child, signal);
}

/* Only those that would end this process. */
static void listen_to_signals(struct sigaction old[ENDING])
{
	struct sigaction pass = { .sa_handler = pass_signal_on, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < ENDING; i++)
		if (!sigaction(ending[i], NULL, &old[i]) && old[i].sa_handler != SIG_IGN)
			sigaction(ending[i], &pass, NULL);
}

static void stop_listening(const struct sigaction old[ENDING])
{
	for (size_t i = 0; i < ENDING; i++)
		sigaction(ending[i], &old[i], NULL);
	if (interrupted)
		raise(interrupted);
}

/* ---- the process ---- */

/* Its answer has a descriptor of its own: what DuckDB, a package or the start of Python writes on
 * standard output is kept beside the errors. */
static void become(const char *python, int in, int out, int err)
{
	char *argv[] = { (char *)python, "-c", (char *)lake_request_loader(), NULL };
	int terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, TERMINAL + 1);

	prctl(PR_SET_PDEATHSIG, SIGTERM);	       /* it may have files to remove */
	unsetenv("LD_PRELOAD");			       /* nothing is to be recorded here */
	in = fcntl(in, F_DUPFD_CLOEXEC, TERMINAL + 1); /* out of the way of the five below */
	out = fcntl(out, F_DUPFD_CLOEXEC, TERMINAL + 1);
	err = fcntl(err, F_DUPFD_CLOEXEC, TERMINAL + 1);
	dup2(in, STDIN_FILENO);
	dup2(err, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	dup2(out, ANSWER);
	dup2(terminal, TERMINAL);
	execvp(python, argv);
	_exit(NOT_STARTED);
}

/* Starts it with signals blocked, so that none is lost between the fork and its own handlers. */
static pid_t start(const char *python, int in, int out, int err)
{
	sigset_t signals, before;

	sigemptyset(&signals);
	for (size_t i = 0; i < ENDING; i++)
		sigaddset(&signals, ending[i]);
	sigprocmask(SIG_BLOCK, &signals, &before);
	child = fork();
	if (child == 0) {
		for (size_t i = 0; i < ENDING; i++) {
			struct sigaction now;

			if (!sigaction(ending[i], NULL, &now) && now.sa_handler != SIG_IGN)
				signal(ending[i], SIG_DFL);
		}
		sigprocmask(SIG_SETMASK, &before, NULL);
		become(python, in, out, err);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return child;
}

/* It reads all of it before it does anything; one that ended has closed its end. */
static void send_request(int fd, const struct bytes *request)
{
	size_t sent = 0;
	ssize_t n = 1;

	while (sent < request->len && (n > 0 || errno == EINTR)) {
		n = send(fd, request->p + sent, request->len - sent, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
	}
	close(fd);
}

/* ---- the answer, line by line ---- */

/* An error of DuckDB, or a sentence of our own. */
static bool take_error(struct answer *a, struct json v)
{
	struct json error = json_member(v, "error"), sentence = json_member(v, "sentence");
	size_t n = error.s ? (size_t)snprintf(a->error, sizeof(a->error), "DuckDB: ") : 0;

	json_string(error.s ? error : sentence, a->error + n, sizeof(a->error) - n);
	a->code = json_unsigned(json_member(v, "code")) == EXIT_UNREADABLE ? EXIT_UNREADABLE
									   : EXIT_USAGE;
	return true;
}

static bool take_note(struct json note)
{
	char text[PATH_MAX + 1024];

	say_note("%s", json_string(note, text, sizeof(text)));
	return true;
}

/* A note, or the last line: how many rows there were, or an error. False: it is none of them. */
static bool take_object(struct answer *a, struct json v)
{
	struct json note = json_member(v, "note"), rows = json_member(v, "rows");

	if (note.s)
		return take_note(note);
	if (json_member(v, "error").s || json_member(v, "sentence").s)
		return take_error(a, v);
	a->whole = a->begun && rows.s && json_unsigned(rows) == a->rows;
	return a->whole;
}

static bool take_line(struct answer *a, const char *line, size_t len)
{
	struct json v = json_text(line, len);

	if (v.s != line || v.end != line + len - 1 || *v.end != '\n' || a->whole || a->error[0])
		return false;
	if (*v.s == '{')
		return take_object(a, v);
	if (*v.s != '[' || (a->begun && json_count(v) != a->columns))
		return false;
	if (a->begun) {
		a->rows++;
		a->q->row(a->q->ctx, v);
		return true;
	}
	a->begun = true;
	a->columns = json_count(v);
	if (a->q->columns)
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
		return say_error(a->code, "%s", a->error);
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
static int finish(struct answer *a, const char *python, int out, int err)
{
	int status = 0;

	if (!read_answer(a, out) || a->foreign)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	if (interrupted)
		return EXIT_UNREADABLE;
	return lacks_duckdb(a, status) ? -1 : judge(a, python, status, err);
}

static int ask_python(const struct lake_question *q, const char *python,
		      const struct bytes *request)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err = memfd_create("errors", MFD_CLOEXEC), rc;
	struct answer a = { .q = q };

	if (err < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) ||
	    pipe2(out, O_CLOEXEC) || start(python, in[0], out[1], err) < 0) {
		rc = say_error(EXIT_UNREADABLE, "%s cannot be started: %s", python,
			       strerror(errno));
		close(in[1]);
		close(out[0]);
	} else {
		close(in[0]);
		close(out[1]);
		in[0] = out[1] = -1;
		send_request(in[1], request);
		rc = finish(&a, python, out[0], err);
	}
	close(in[0]);
	close(out[1]);
	close(err);
	return rc;
}

int lake_ask(const struct lake_question *q)
{
	struct sigaction old[ENDING];
	struct bytes request = { 0 };
	const char *python;
	int rc = -1;

	lake_request(&request, q);
	listen_to_signals(old);
	for (size_t i = 0; rc < 0 && (python = python_place(i)); i++)
		rc = ask_python(q, python, &request);
	stop_listening(old);
	bytes_free(&request);
	if (rc >= 0)
		return rc;
	return say_error(EXIT_USAGE,
			 "this runs in DuckDB, and neither python3 nor python on the PATH has it: "
			 "pip install duckdb (or name a Python that has "
			 "it: GPUMEMTRACE_PYTHON=PATH)");
}

bool lake_is_one(const char *path)
{
	char table[PATH_MAX];
	struct stat st;

	return snprintf(table, sizeof(table), "%s/ranks", path) < PATH_MAX && !stat(table, &st) &&
	       S_ISDIR(st.st_mode);
}

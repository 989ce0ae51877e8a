/* SPDX-License-Identifier: Apache-2.0 */
#include "question.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/asset.h"
#include "../base/ending.h"
#include "../recording/owners.h"

ASSET_FILE(handover, "viewer/commands/handover.py");

#define PYTHON_LEAST "3.9"
#define BEGUN	     "{\"begun\": true}\n"

enum { ANSWER = 3 }; /* descriptor of the answer */
/* Exit codes: Python lacks a package; it is missing or too old; the search was interrupted. */
enum { UNFIT = 96, NOT_STARTED = 97, INTERRUPTED = 130 };
enum { ENDINGS = 3, WORDS = 512 };

static const struct {
	const char *flags;   /* of Python, or NULL */
	const char *who;     /* subject of error messages */
	const char *missing; /* the error message if no Python is suitable */
} kinds[] = {
	[QUESTION_SEARCH] = { "-ISXutf8", "the search",
			      "the runs are started by Python " PYTHON_LEAST
			      " or later, and neither python3 nor python on the PATH is that (name "
			      "another: GPUMEMTRACE_PYTHON=PATH)" },
	[QUESTION_LAKE] = { NULL, "DuckDB",
			    "this runs in DuckDB, and neither python3 nor python on the PATH has "
			    "it: pip install duckdb (or name a Python that has it: "
			    "GPUMEMTRACE_PYTHON=PATH)" },
	[QUESTION_RANKS] = { "-ISXutf8", "the comparison of recordings",
			     "several recordings are compared by Python " PYTHON_LEAST
			     " or later, and neither python3 nor python on the PATH is that (name "
			     "another: GPUMEMTRACE_PYTHON=PATH); a single recording needs none" },
};

/* ---- signals ---- */

static const int ending[ENDINGS] = { SIGINT, SIGTERM, SIGHUP };

static volatile sig_atomic_t interrupted;
static volatile pid_t child;

static void pass_signal_on(int signal)
{
	interrupted = signal;
	if (child > 0)
		kill(child, signal);
}

/* Passes on signals that would end this process, with even_ignored also those that it ignores. */
static void listen_to_signals(struct sigaction old[ENDINGS], bool even_ignored)
{
	struct sigaction pass = { .sa_handler = pass_signal_on, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < ENDINGS; i++)
		if (!sigaction(ending[i], NULL, &old[i]) &&
		    (even_ignored || old[i].sa_handler != SIG_IGN))
			sigaction(ending[i], &pass, NULL);
}

/* ---- the process ---- */

/* The Pythons to try, in order of i; NULL after the last. */
static const char *python_place(size_t i)
{
	static const char *const names[] = { "python3", "python" };
	const char *named = getenv("GPUMEMTRACE_PYTHON");

	if (named && *named && i-- == 0)
		return named;
	return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

static void set_default_signals(void)
{
	for (size_t i = 0; i < ENDINGS; i++) {
		struct sigaction now;

		if (!sigaction(ending[i], NULL, &now) && now.sa_handler != SIG_IGN)
			signal(ending[i], SIG_DFL);
	}
}

/* Executes Python. The answer has its own descriptor, because packages or the start of Python may
 * print to stdout. That goes into `err`. */
static void become(const char *python, const char *flags, int in, int out, int err)
{
	const char *argv[] = { python, flags, "-c", asset_handover, NULL };
	const char **from = flags ? argv : argv + 1;

	from[0] = python;
	prctl(PR_SET_PDEATHSIG, SIGTERM);	     /* it may have files to remove */
	unsetenv("LD_PRELOAD");			     /* Python itself is not recorded */
	in = fcntl(in, F_DUPFD_CLOEXEC, ANSWER + 1); /* above the four that are set below */
	out = fcntl(out, F_DUPFD_CLOEXEC, ANSWER + 1);
	err = fcntl(err, F_DUPFD_CLOEXEC, ANSWER + 1);
	dup2(in, STDIN_FILENO);
	dup2(err, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	dup2(out, ANSWER);
	execvp(python, (char **)from);
	_exit(NOT_STARTED);
}

/* Forks with signals blocked, so that none is lost before the child has its own handlers. */
static pid_t start(const char *python, const char *flags, int in, int out, int err)
{
	sigset_t signals, before;

	sigemptyset(&signals);
	for (size_t i = 0; i < ENDINGS; i++)
		sigaddset(&signals, ending[i]);
	sigprocmask(SIG_BLOCK, &signals, &before);
	child = fork();
	if (child == 0) {
		set_default_signals();
		sigprocmask(SIG_SETMASK, &before, NULL);
		become(python, flags, in, out, err);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return child;
}

/* Writes the request and closes the socket. If Python has ended, the rest is dropped. */
static void send_request(int fd, const char *text, size_t len)
{
	size_t sent = 0;
	ssize_t n = 1;

	while (sent < len && (n > 0 || errno == EINTR)) {
		n = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
	}
	close(fd);
}

/* ---- the answer ---- */

/* Reads the answer up to its end or to a line that is no part of it. False: a read failed. */
static bool read_answer(struct answer *a, int fd)
{
	FILE *f = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	bool goes_on;
	ssize_t n;

	while (f && !a->foreign && (n = getline(&line, &room, f)) > 0) {
		if (!a->begun && !strcmp(line, BEGUN))
			a->begun = true;
		else
			a->foreign = !answer_take(a, line, (size_t)n);
	}
	goes_on = f && !ferror(f);
	free(line);
	if (f)
		fclose(f);
	else
		close(fd);
	return goes_on;
}

/* Copies ": " and the last line of what Python printed; "" if it printed nothing. */
static void last_line(int err, char text[WORDS])
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
	snprintf(text, WORDS, "%s%.*s", n ? ": " : "", WORDS - 4, line);
}

/* Returns the exit code, after an error message if there is no whole answer. -1: try another
 * Python, because this one is missing, too old or lacks a package. */
static int judge(const struct answer *a, int status, const char *python, const char *words)
{
	const char *who = kinds[a->question->kind].who;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	if (!a->any && !a->foreign && !interrupted &&
	    (code == UNFIT || code == NOT_STARTED ||
	     (!a->begun && a->question->kind != QUESTION_LAKE)))
		return -1;
	if (a->code >= 0 && !a->foreign)
		return a->code;
	if (interrupted)
		return INTERRUPTED;
	if (a->foreign)
		return say_unreadable("the answer of %s in %s cannot be read%s", who, python,
				      words);
	if (WIFSIGNALED(status))
		return say_unreadable("%s in %s was ended by signal %d (%s)", who, python,
				      WTERMSIG(status), strsignal(WTERMSIG(status)));
	return say_unreadable("%s ended with code %d before the answer of %s was complete%s",
			      python, code, who, words);
}

static int finish(struct answer *a, const char *python, int out, int err)
{
	char words[WORDS];
	int status = 0;

	if (!read_answer(a, out) || a->foreign)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	last_line(err, words);
	say_progress_end();
	return judge(a, status, python, words);
}

static int ask_python(struct question *q, const char *python)
{
	struct answer a = { .question = q, .code = -1 };
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err = memfd_create("errors", MFD_CLOEXEC);
	int rc;

	if (err < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) ||
	    pipe2(out, O_CLOEXEC) || start(python, kinds[q->kind].flags, in[0], out[1], err) < 0) {
		rc = say_unreadable("%s cannot be started: %s", python, strerror(errno));
		close(in[1]);
		close(out[0]);
	} else {
		close(in[0]);
		close(out[1]);
		in[0] = out[1] = -1;
		send_request(in[1], q->text, q->len);
		rc = finish(&a, python, out[0], err);
	}
	close(in[0]);
	close(out[1]);
	close(err);
	return rc;
}

/* The Python of the program itself is the last choice. */
static const char *own_python(const struct question *q)
{
	bool is_python = q->command && !strncmp(owners_base(q->command[0]), "python", 6);

	return is_python ? q->command[0] : NULL;
}

/* A search that is interrupted still reports what it found. Other commands end by the signal, after
 * Python has removed its unfinished files. */
static int ask_pythons(struct question *q)
{
	struct sigaction old[ENDINGS];
	const char *python;
	int rc = -1;

	listen_to_signals(old, q->kind == QUESTION_SEARCH);
	for (size_t i = 0; rc < 0 && (python = python_place(i)); i++)
		rc = ask_python(q, python);
	if (rc < 0 && own_python(q))
		rc = ask_python(q, own_python(q));
	for (size_t i = 0; i < ENDINGS; i++)
		sigaction(ending[i], &old[i], NULL);
	if (interrupted && q->kind != QUESTION_SEARCH)
		raise(interrupted);
	return rc;
}

int question_ask(struct question *q)
{
	int rc;

	emit_close(q->request);
	fclose(q->f);
	rc = ask_pythons(q);
	free(q->text);
	return rc >= 0 ? rc : say_usage("%s", kinds[q->kind].missing);
}

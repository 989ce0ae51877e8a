/* SPDX-License-Identifier: Apache-2.0 */
#include "question.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/asset.h"
#include "../base/ending.h"

ASSET_FILE(handover, "viewer/commands/handover.py");

enum { ANSWER = 3, TERMINAL = 4, FLAGS = 6 };
#define BEGUN "{\"begun\": true}\n"

/* ---- signals ---- */

static const int ending[HANDOVER_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

static volatile sig_atomic_t interrupted;
static volatile pid_t child;

static void pass_signal_on(int signal)
{
	interrupted = signal;
	if (child > 0)
		kill(child, signal);
}

void handover_listen(struct sigaction old[HANDOVER_SIGNALS], bool even_ignored)
{
	struct sigaction pass = { .sa_handler = pass_signal_on, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < HANDOVER_SIGNALS; i++)
		if (!sigaction(ending[i], NULL, &old[i]) &&
		    (even_ignored || old[i].sa_handler != SIG_IGN))
			sigaction(ending[i], &pass, NULL);
}

int handover_stop(const struct sigaction old[HANDOVER_SIGNALS])
{
	for (size_t i = 0; i < HANDOVER_SIGNALS; i++)
		sigaction(ending[i], &old[i], NULL);
	return interrupted;
}

bool handover_interrupted(void)
{
	return interrupted;
}

/* ---- the process ---- */

const char *python_place(size_t i)
{
	static const char *const names[] = { "python3", "python" };
	const char *named = getenv("GPUMEMTRACE_PYTHON");

	if (named && *named && i-- == 0)
		return named;
	return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

static void set_default_signals(void)
{
	for (size_t i = 0; i < HANDOVER_SIGNALS; i++) {
		struct sigaction now;

		if (!sigaction(ending[i], NULL, &now) && now.sa_handler != SIG_IGN)
			signal(ending[i], SIG_DFL);
	}
}

/* Its answer has a descriptor of its own: what a package or the start of Python writes on standard
 * output is kept beside the errors. */
static void become(const char *python, const char *const *flags, int in, int out, int err)
{
	const char *argv[FLAGS + 4] = { python };
	int terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, TERMINAL + 1);
	size_t n = 1;

	for (; *flags && n <= FLAGS; flags++)
		argv[n++] = *flags;
	argv[n++] = "-c";
	argv[n] = asset_handover;
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
	execvp(python, (char **)argv);
	_exit(HANDOVER_NOT_STARTED);
}

/* Starts it with signals blocked, so that none is lost between the fork and its own handlers. */
static pid_t start(const char *python, const char *const *flags, int in, int out, int err)
{
	sigset_t signals, before;

	sigemptyset(&signals);
	for (size_t i = 0; i < HANDOVER_SIGNALS; i++)
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

/* ---- the answer ---- */

/* False: a signal is to end this process. */
static bool read_answer(struct handover *h, int fd)
{
	FILE *f = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	bool goes_on;
	ssize_t n;

	while (f && !h->foreign && (n = getline(&line, &room, f)) > 0) {
		if (!h->begun && !strcmp(line, BEGUN))
			h->begun = true;
		else
			h->foreign = !h->take(h->ctx, line, (size_t)n);
	}
	goes_on = f && !ferror(f);
	free(line);
	if (f)
		fclose(f);
	else
		close(fd);
	return goes_on;
}

/* The last line of what was written beside the answer. */
static void last_line(int err, char text[HANDOVER_WORDS])
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
	snprintf(text, HANDOVER_WORDS, "%s%.*s", n ? ": " : "", HANDOVER_WORDS - 4, line);
}

static void finish(struct handover *h, int out, int err)
{
	if (!read_answer(h, out) || h->foreign)
		kill(child, SIGKILL);
	while (waitpid(child, &h->status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	last_line(err, h->words);
}

int handover_ask(struct handover *h, const char *python)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err = memfd_create("errors", MFD_CLOEXEC);
	int rc = 0;

	h->begun = h->foreign = false;
	h->status = 0;
	if (err < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) ||
	    pipe2(out, O_CLOEXEC) || start(python, h->flags, in[0], out[1], err) < 0) {
		rc = say_error(EXIT_UNREADABLE, "%s cannot be started: %s", python,
			       strerror(errno));
		close(in[1]);
		close(out[0]);
	} else {
		close(in[0]);
		close(out[1]);
		in[0] = out[1] = -1;
		send_request(in[1], h->request);
		finish(h, out[0], err);
	}
	close(in[0]);
	close(out[1]);
	close(err);
	return rc;
}

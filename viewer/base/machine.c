/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's machine: a terminal, the environment, signals. One thread changes the list of
 * unfinished files. A signal handler reads it, possibly between any two writes.
 */
#include "machine.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "emit_json.h"
#include "now.h"

/* ---- sentences ---- */

static const char *command;
static void (*before)(void);
static bool progress_shown;
static bool progress_off;

void say_command(const char *name)
{
	command = name;
}

void say_before(void (*f)(void))
{
	before = f;
}

void say_progress_off(void)
{
	progress_off = true;
}

static void end_progress(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}

/* Names in the text (files, marks) can contain any bytes, so control characters are escaped. */
void machine_say(UNUSED bool error, const char *text, size_t len)
{
	end_progress();
	if (before)
		before();
	fflush(stdout);
	fprintf(stderr, "gpumemtrace%s%s: ", command ? " " : "", command ? command : "");
	emit_plain_string(stderr, text, len);
	fputc('\n', stderr);
}

/* Whether a progress line is due now. */
static bool progress_due(void)
{
	static double begin, last;
	double t = now_seconds();

	if (begin == 0)
		begin = last = t;
	if (progress_off || t - begin < 2 || t - last < 0.2 || !machine_moves(stderr))
		return false;
	last = t;
	return progress_shown = true;
}

/* Bytes of a text that fit into `room` columns; whole words and room for "..." if not all do. */
static size_t progress_length(const char *what, size_t room)
{
	size_t len = strlen(what), n = room > 3 ? room - 3 : 0;

	if (len <= room)
		return len;
	while (n && what[n] != ' ')
		n--;
	while (n && strchr(" ,;:", what[n - 1]))
		n--;
	return n;
}

void machine_progress(const char *what, uint64_t done, uint64_t all)
{
	unsigned columns = 0;
	size_t shown;

	if (!what) {
		end_progress();
		fflush(stderr);
		return;
	}
	if (!progress_due())
		return;
	machine_terminal(stderr, &columns, NULL);
	columns = columns > 1 ? columns : 80;
	columns -= all && columns > 7 ? 7 : 1; /* for " 100 %" */
	shown = progress_length(what, columns);
	fputs("\r\033[K", stderr);
	emit_plain_string(stderr, what, shown);
	if (what[shown])
		fputs("...", stderr);
	if (all)
		fprintf(stderr, " %3.0f %%", 100.0 * done / all);
	fflush(stderr);
}

void machine_out_of_memory(void)
{
	static const char sentence[] = "out of memory";

	machine_say(true, sentence, sizeof(sentence) - 1);
	exit(EXIT_UNREADABLE);
}

/* ---- settings, the terminal, files ---- */

const char *machine_setting(const char *name)
{
	return getenv(name);
}

bool machine_terminal(FILE *f, unsigned *columns, unsigned *rows)
{
	struct winsize size = { 0 };
	int fd = f ? fileno(f) : STDOUT_FILENO;
	bool is = isatty(fd);

	if (is)
		ioctl(fd, TIOCGWINSZ, &size);
	if (columns)
		*columns = size.ws_col;
	if (rows)
		*rows = size.ws_row;
	return is;
}

bool machine_moves(FILE *f)
{
	const char *term = getenv("TERM");

	return term && strcmp(term, "dumb") && isatty(fileno(f));
}

/* ---- unfinished files ---- */

#define FILES 64

static struct {
	char *volatile path; /* NULL = free */
	pid_t maker;
} files[FILES];

static void remove_all(int signal)
{
	pid_t self = getpid();

	for (int i = 0; i < FILES; i++)
		if (files[i].path && files[i].maker == self)
			unlink(files[i].path);
	raise(signal); /* SA_RESETHAND: ends the process after the handler returns */
}

static void listen_to_signals(void)
{
	static const int signals[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ
	};
	struct sigaction action = { .sa_handler = remove_all, .sa_flags = SA_RESETHAND }, old;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
}

static void begin_file(const char *path)
{
	listen_to_signals();
	for (int i = 0; i < FILES; i++) {
		if (files[i].path)
			continue;
		files[i].maker = getpid();
		files[i].path = strdup(path);
		return;
	}
}

static void end_file(const char *path)
{
	for (int i = 0; i < FILES; i++) {
		char *at = files[i].path;

		if (!at || strcmp(at, path))
			continue;
		files[i].path = NULL;
		free(at);
		return;
	}
}

/* Of more than 64 files at a time, a signal does not remove the later ones. */
void machine_unfinished(const char *path, bool begins)
{
	if (begins)
		begin_file(path);
	else
		end_file(path);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "emit_json.h"
#include "now.h"

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

/* Prints one line. Names in it (files, marks) may contain any bytes, so control characters are
 * escaped. */
static void say(const char *format, va_list args)
{
	char *text;
	int len = vasprintf(&text, format, args);

	say_progress_end();
	if (before)
		before();
	fflush(stdout);
	if (command)
		fprintf(stderr, "gpumemtrace %s: ", command);
	else
		fprintf(stderr, "gpumemtrace: ");
	if (len >= 0) {
		emit_plain_string(stderr, text, (size_t)len);
		free(text);
	}
	fputc('\n', stderr);
}

int say_error(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return code;
}

void say_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

/* Whether a progress line is due now. */
static bool progress_due(void)
{
	static double begin, last;
	double t = now_seconds();

	if (begin == 0)
		begin = last = t;
	if (progress_off || t - begin < 2 || t - last < 0.2 || !emit_moves(STDERR_FILENO))
		return false;
	last = t;
	return progress_shown = true;
}

void say_progress(const char *what, uint64_t done, uint64_t all)
{
	if (!all || !progress_due())
		return;
	fputc('\r', stderr);
	emit_plain_string(stderr, what, strlen(what));
	fprintf(stderr, " %3.0f %%", 100.0 * done / all);
	fflush(stderr);
}

void say_doing(const char *text)
{
	struct winsize size;
	int columns = 80;

	if (!progress_due())
		return;
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 1)
		columns = size.ws_col;
	fputs("\r\033[K", stderr);
	emit_plain_string(stderr, text, strnlen(text, (size_t)columns - 1));
	fflush(stderr);
}

void say_progress_off(void)
{
	progress_off = true;
}

void say_progress_end(void)
{
	if (progress_shown)
		fprintf(stderr, "\r\033[K");
	progress_shown = false;
}

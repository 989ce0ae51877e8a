/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include "machine.h"

static void say(bool error, const char *format, va_list args)
{
	char *text;
	int len = vasprintf(&text, format, args);

	machine_say(error, len < 0 ? "out of memory" : text, len < 0 ? 13 : (size_t)len);
	if (len >= 0)
		free(text);
}

int say_error(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(true, format, args);
	va_end(args);
	return code;
}

void say_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(false, format, args);
	va_end(args);
}

void say_progress(const char *what, uint64_t done, uint64_t all)
{
	if (all)
		machine_progress(what, done, all);
}

void say_doing(const char *text)
{
	machine_progress(text, 0, 0);
}

void say_progress_end(void)
{
	machine_progress(NULL, 0, 0);
}

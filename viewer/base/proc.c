/* SPDX-License-Identifier: Apache-2.0 */
#include "proc.h"

#include <unistd.h>

FILE *proc_open(const char *format, ...)
{
	char path[128];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return n < (int)sizeof(path) ? fopen(path, "re") : NULL;
}

size_t proc_text(FILE *f, char *text, size_t room)
{
	size_t n = f ? fread(text, 1, room - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return n;
}

const char *proc_row(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (; text; text = strchr(text, '\n'), text += text != NULL)
		if (!strncmp(text, name, len) && text[len] == ':')
			return text + len + 1;
	return NULL;
}

long proc_status(pid_t pid, const char *name)
{
	char text[8192];
	const char *row;

	proc_read(text, sizeof(text), "/proc/%d/status", (int)pid);
	row = proc_row(text, name);
	return row ? strtol(row, NULL, 10) : -1;
}

const char *proc_stat(char text[PROC_STAT], pid_t pid)
{
	const char *end;

	proc_read(text, PROC_STAT, "/proc/%d/stat", (int)pid);
	end = strrchr(text, ')');
	return end && end[1] ? end + 2 : NULL;
}

bool proc_own_path(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[n < 0 ? 0 : n] = 0;
	return n > 0;
}

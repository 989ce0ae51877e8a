/* SPDX-License-Identifier: Apache-2.0 */
#include "run_program.h"

#include <glob.h>
#include <unistd.h>

#include "../../format/rank.h"
#include "../base/outfile.h"
#include "../recording/running.h"

#define GMT    ".gmt"
#define DIGITS '\1' /* in a name: any number */

int run_output_absolute(const char *pattern, char absolute[PATH_MAX])
{
	char here[PATH_MAX];
	size_t n = 0, length = strlen(pattern);

	if (pattern[0] != '/' && getcwd(here, sizeof(here))) {
		for (const char *s = here; *s && n + 2 < PATH_MAX; s++) {
			if (*s == '%')
				absolute[n++] = '%';
			absolute[n++] = *s;
		}
		if (here[1]) /* not the root */
			absolute[n++] = '/';
	}
	if (n + length >= PATH_MAX)
		return say_usage("-o %.60s...: the name is too long", pattern);
	memcpy(absolute + n, pattern, length + 1);
	return 0;
}

const char *run_output_short(const char *path)
{
	char here[PATH_MAX];
	size_t n;

	if (!getcwd(here, sizeof(here)))
		return path;
	n = strlen(here);
	return !strncmp(path, here, n) && path[n] == '/' ? path + n + 1 : path;
}

static size_t length_of_name(const char *name)
{
	size_t n = strlen(name), end = strlen(GMT);

	return n > end && !strcmp(name + n - end, GMT) ? n - end : n;
}

void run_output_glob(const char *pattern, const char *more, char *out, int room)
{
	size_t length = length_of_name(pattern), n = 0;

	for (size_t i = 0; i < length && n + 8 < (size_t)room; i++) {
		if (pattern[i] == '%' && pattern[i + 1] == '%') {
			out[n++] = '%';
			i++;
		} else if (pattern[i] == '%' && pattern[i + 1] && strchr("phr", pattern[i + 1])) {
			out[n++] = '*';
			i++;
		} else {
			if (strchr("*?[\\", pattern[i]))
				out[n++] = '\\';
			out[n++] = pattern[i];
		}
	}
	snprintf(out + n, (size_t)room - n, "%s%s", more, pattern + length);
}

/* ---- which names are the pattern's ---- */

/* Replacement of a pattern's letter; "" + DIGITS if it is an unknown number. */
static const char *meaning(char which, char host[256])
{
	static const char number[] = { DIGITS, 0 };

	if (which == '%')
		return "%";
	if (which == 'h')
		return gethostname(host, 256) ? "host" : host;
	if (which == 'r')
		return gmt_rank() ? gmt_rank() : number;
	return NULL;
}

/* Replaces the known parts: "/tmp/x.%h.%r.gmt" becomes "/tmp/x.box." DIGITS ".gmt". */
static bool names_of(const char *pattern, char names[PATH_MAX])
{
	char host[256];
	size_t n = 0;

	for (; *pattern; pattern++) {
		const char *text = *pattern == '%' ? meaning(pattern[1], host) : NULL;
		char one[2] = { *pattern, 0 };

		if (text)
			pattern++;
		else
			text = one;
		if (n + strlen(text) >= PATH_MAX)
			return false;
		strcpy(names + n, text);
		n += strlen(text);
	}
	return true;
}

static size_t digits(const char *s)
{
	size_t n = 0;

	while (isdigit((unsigned char)s[n]))
		n++;
	return n;
}

/* "" or ".PID" or ".PID.N" before the end of the name; *pid is 0 or that PID. */
static bool is_rest(const char *s, const char *end, long *pid)
{
	*pid = 0;
	if (!strcmp(s, end))
		return true;
	if (*s != '.' || !digits(s + 1))
		return false;
	*pid = strtol(s + 1, NULL, 10);
	s += 1 + digits(s + 1);
	if (*s == '.' && digits(s + 1))
		s += 1 + digits(s + 1);
	return !strcmp(s, end);
}

static bool matches(const char *names, size_t length, const char *s, long *pid)
{
	size_t n = 0;

	if (!length)
		return is_rest(s, names, pid);
	if (*names != DIGITS)
		return *names == *s && matches(names + 1, length - 1, s + 1, pid);
	for (n = digits(s); n; n--)
		if (matches(names + 1, length - 1, s + n, pid))
			return true;
	return false;
}

/* ---- clearing ---- */

static int clear_own(const char *names, const char *path)
{
	struct gmt_reader_info old;
	long pid;

	if (!matches(names, length_of_name(names), path, &pid))
		return 0;
	if (running_writer(path) || (pid && (!running_info(path, &old) || old.pid != pid)))
		return 0;
	return outfile_clear(path);
}

static bool has_process(const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern == '%' && pattern[1] == 'p')
			return true;
		if (*pattern == '%' && pattern[1])
			pattern++;
	}
	return false;
}

/* Checks the folder, unless each process has its own. */
static int check_folder(const char *names)
{
	const char *slash = strrchr(names, '/');

	for (const char *s = names; slash && s < slash; s++)
		if (*s == DIGITS || (*s == '%' && s[1] == 'p'))
			return 0;
	return outfile_check_folder(names);
}

static int clear_all(const char *absolute, const char *names)
{
	static const char *const more[] = { "", ".*" };
	char pattern[PATH_MAX];
	glob_t found = { 0 };
	int rc = 0;

	for (int i = 0; i < 2; i++) {
		run_output_glob(absolute, more[i], pattern, sizeof(pattern));
		glob(pattern, i ? GLOB_APPEND : 0, NULL, &found);
	}
	for (size_t i = 0; i < found.gl_pathc && !rc; i++)
		rc = clear_own(names, found.gl_pathv[i]);
	globfree(&found);
	return rc;
}

int run_output_clear(const char *absolute)
{
	char names[PATH_MAX];
	int rc;

	if (!names_of(absolute, names))
		return say_usage("-o %.60s...: the name is too long", absolute);
	if (has_process(absolute))
		return check_folder(names);
	if (strchr(names, DIGITS))
		rc = check_folder(names);
	else
		rc = running_writer(names) ? 0 : outfile_clear(names);
	return rc ? rc : clear_all(absolute, names);
}

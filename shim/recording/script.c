/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the script that a Python interpreter runs, by its command line. Files in the script's
 * folder are the program, whatever the working directory is. Runs once, on the drain's thread.
 */
#include "facts.h"

#include "../base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char words[32 * 1024], found[PATH_MAX], folder[PATH_MAX];

/* The word after w; NULL after the last. */
static char *next_word(char *w, const char *end)
{
	w = w ? w + strlen(w) + 1 : NULL;
	return w && w < end ? w : NULL;
}

/* An option's argument ("-Xdev"), "" if it is the next word ("-m"), NULL if there is none
 * ("-u"). */
static const char *argument_of(const char *word, char *letter)
{
	for (const char *at = word + 1; *at; at++) {
		*letter = *at;
		if (strchr("cmWXQ", *at))
			return at + 1;
	}
	return NULL;
}

/* The path of the script, or the name of a module; NULL: a command (-c), an input, no script. */
static const char *find_script(char *first, const char *end, bool *module)
{
	*module = false;
	for (char *w = next_word(first, end); w; w = next_word(w, end)) {
		const char *argument;
		char letter = 0;

		if (w[0] != '-')
			return w;
		if (!strcmp(w, "--"))
			return next_word(w, end);
		if (!strcmp(w, "--check-hash-based-pycs"))
			w = next_word(w, end);
		if (!w || w[1] == '-')
			continue;
		argument = w[1] ? argument_of(w, &letter) : NULL;
		if (letter == 'c' || !w[1])
			return NULL;
		if (argument && !*argument)
			argument = w = next_word(w, end);
		*module = letter == 'm';
		if (*module)
			return argument;
	}
	return NULL;
}

/* Sets `found` to the file's path without links and dots; false: there is no such file. */
static bool find_file(const char *in, const char *path)
{
	char link[40];
	ssize_t n;
	int fd;

	snprintf(found, sizeof(found), "%.2000s%s%.2000s", path[0] == '/' ? "" : in,
		 path[0] == '/' ? "" : "/", path);
	fd = open(found, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, found, sizeof(found) - 1);
	close(fd);
	found[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* pkg.train -> pkg/train.py, pkg/train/__main__.py */
static bool find_module(const char *in, const char *name)
{
	static const char *const ends[] = { ".py", "/__main__.py" };
	char path[1024];

	for (int i = 0; i < 2; i++) {
		size_t len = (size_t)snprintf(path, sizeof(path), "%.900s", name);

		for (size_t k = 0; k < len; k++)
			path[k] = path[k] == '.' ? '/' : path[k];
		snprintf(path + len, sizeof(path) - len, "%s", ends[i]);
		if (find_file(in, path))
			return true;
	}
	return false;
}

/* Scripts that an installation brings (torchrun, pytest) are not the user's program. */
static bool is_installed(void)
{
	static const char *const beside[] = { "python", "python3" };
	char path[PATH_MAX + 16];
	const char *slash = strrchr(found, '/');

	if (strstr(found, "/site-packages/") || strstr(found, "/dist-packages/"))
		return true;
	for (int i = 0; slash && i < 2; i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - found), found, beside[i]);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

static bool is_python(void)
{
	ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	const char *base;

	folder[n > 0 ? n : 0] = 0;
	base = strrchr(folder, '/');
	return base && (!strncmp(base + 1, "python", 6) || !strncmp(base + 1, "pypy", 4));
}

const char *script_path(void)
{
	ssize_t n = file_text("/proc/self/cmdline", words, sizeof(words) - 1);
	const char *script, *pwd = getenv("PWD");
	bool module;

	if (n <= 0 || !is_python())
		return NULL;
	words[n] = 0;
	script = find_script(words, words + n, &module);
	if (!script || !*script)
		return NULL;
	/* The program might have changed its folder since it started. */
	for (int i = 0; i < 2; i++) {
		const char *in = i ? pwd : getcwd(folder, sizeof(folder));

		if (in && (module ? find_module(in, script) : find_file(in, script)))
			return is_installed() ? NULL : found;
	}
	return NULL;
}

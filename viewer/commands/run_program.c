/* SPDX-License-Identifier: Apache-2.0 */
#include "run_program.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../base/plain_file.h"
#include "../base/need.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

static bool find_in_path(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	for (size_t n; folders && *folders; folders += n + (folders[n] == ':')) {
		n = strcspn(folders, ":");
		snprintf(path, PATH_MAX, "%.*s/%s", (int)n, folders, name);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

/* The program that a script names in its first line; the file itself if it is none. */
static void follow_script(char path[PATH_MAX])
{
	char line[PATH_MAX] = "";
	int fd = file_open(path);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	char *start;

	if (fd >= 0)
		close(fd);
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return;
	start = line + 2 + strspn(line + 2, " \t");
	start[strcspn(start, " \t\r\n")] = 0;
	snprintf(path, PATH_MAX, "%s", start);
}

static bool has_interpreter(int fd, const Elf64_Ehdr *h)
{
	Elf64_Phdr p;

	for (unsigned i = 0; i < h->e_phnum; i++)
		if (pread(fd, &p, sizeof(p), (off_t)(h->e_phoff + i * sizeof(p))) == sizeof(p) &&
		    p.p_type == PT_INTERP)
			return true;
	return false;
}

/* NULL: nothing in the file's headers is in the way. */
static const char *look_at_file(const char *path)
{
	Elf64_Ehdr h;
	int fd = file_open(path);
	const char *why = NULL;

	if (fd < 0)
		return NULL;
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG))
		why = NULL;
	else if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != OWN_MACHINE)
		why = "is a program for another kind of processor than the library";
	else if (!has_interpreter(fd, &h))
		why = "is statically linked";
	close(fd);
	return why;
}

static const char *look_at_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return NULL;
	if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	    (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid()))
		return "runs with another user's rights (setuid)";
	if (geteuid() && getxattr(path, "security.capability", NULL, 0) > 0)
		return "has capabilities of its own";
	return NULL;
}

static bool is_missing(const char *name, char *text, size_t room)
{
	char path[PATH_MAX];
	struct stat st;

	if (!find_in_path(name, path))
		errno = ENOENT;
	else if (stat(path, &st) || access(path, X_OK))
		;
	else if (S_ISDIR(st.st_mode))
		errno = EISDIR;
	else
		return false;
	snprintf(text, room, "%s cannot be started: %s", name, strerror(errno));
	return true;
}

bool run_program_obstacle(const char *name, char *text, size_t room)
{
	char path[PATH_MAX];
	const char *why;

	if (!find_in_path(name, path))
		return false;
	follow_script(path);
	why = look_at_rights(path);
	if (!why)
		why = look_at_file(path);
	if (why)
		snprintf(text, room, "%s %s, so the library is not loaded into it", path, why);
	return why;
}

bool run_program_fails(const char *name, char *text, size_t room)
{
	return is_missing(name, text, room) || run_program_obstacle(name, text, room);
}

char **run_program_python(char **command)
{
	const char *python = getenv("GPUMEMTRACE_PYTHON"), *name = command[0];
	size_t len = strlen(name), count;
	struct stat st;
	char **with;

	if (len < 4 || strcmp(name + len - 3, ".py") || stat(name, &st) || !S_ISREG(st.st_mode) ||
	    !access(name, X_OK))
		return command;
	count = need_count(command);
	with = need_new((count + 2) * sizeof(*with));
	with[0] = (char *)(python && *python ? python : "python3");
	memcpy(with + 1, command, count * sizeof(*with));
	return with;
}

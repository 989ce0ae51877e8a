/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and opens the files. Runs once in a session, on the thread of the first event.
 *
 * A name is taken by whoever creates it (O_EXCL): with a pattern that does not tell processes apart
 * the first gets it, every other adds its process id, and a number if that is taken too.
 */
#include "output.h"

#include "../../format/rank.h"
#include "../base/config.h"
#include "../base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FD_AT_LEAST 700 /* out of the way of programs that close or count on low numbers */
#define TRIES	    1000

static char start_dir[PATH_MAX];
static char base[PATH_MAX], path[PATH_MAX + 64], live_path[PATH_MAX + 80];
static struct output out = { -1, -1, path, live_path };
static struct stat identity;

void output_setup(void)
{
	if (!getcwd(start_dir, sizeof(start_dir)))
		start_dir[0] = 0;
}

const char *output_start_dir(void)
{
	return start_dir;
}

static const char *placeholder(char which, char *buf, size_t size)
{
	switch (which) {
	case 'p':
		snprintf(buf, size, "%d", (int)getpid());
		return buf;
	case 'h':
		return gethostname(buf, size) ? "host" : buf;
	case 'r':
		return gmt_rank() ? gmt_rank() : "0";
	case '%':
		return "%";
	}
	return NULL;
}

/* The pattern with its placeholders filled in, absolute if the directory is known; false: too long.
 */
static bool expand(const char *pattern)
{
	char value[256];
	size_t n = 0;

	if (pattern[0] != '/' && start_dir[0])
		n = (size_t)snprintf(base, sizeof(base), "%s/", start_dir);
	for (; *pattern && n < sizeof(base); pattern++) {
		const char *text =
			*pattern == '%' ? placeholder(pattern[1], value, sizeof(value)) : NULL;

		if (text) {
			n += (size_t)snprintf(base + n, sizeof(base) - n, "%s", text);
			pattern++;
		} else {
			base[n++] = *pattern;
		}
	}
	if (n >= sizeof(base))
		return false;
	base[n] = 0;
	return true;
}

/* The name to try next: base; then with the process id, then with a number too, before ".gmt". */
static void name_number(int tries, bool has_pid)
{
	size_t n = strlen(base);
	const char *end = n > 4 && !strcmp(base + n - 4, ".gmt") ? ".gmt" : "";
	char extra[32] = "";
	int length = 0;

	n -= strlen(end);
	if (tries > 0 && !has_pid)
		length = snprintf(extra, sizeof(extra), ".%d", (int)getpid());
	if (tries > !has_pid)
		snprintf(extra + length, sizeof(extra) - (size_t)length, ".%d", tries - !has_pid);
	snprintf(path, sizeof(path), "%.*s%s%s", (int)n, base, extra, end);
	snprintf(live_path, sizeof(live_path), "%s.live", path);
}

static int create(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), high;

	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, FD_AT_LEAST);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static bool create_both(void)
{
	out.fd = create(path);
	if (out.fd < 0)
		return false;
	out.live_fd = create(live_path);
	if (out.live_fd >= 0)
		return true;
	close(out.fd);
	unlink(path);
	out.fd = -1;
	return false;
}

bool output_open(void)
{
	bool has_pid = strstr(gmt_config.output, "%p") != NULL;

	if (!expand(gmt_config.output)) {
		errno = ENAMETOOLONG;
		return false;
	}
	for (int tries = 0; tries < TRIES; tries++) {
		name_number(tries, has_pid);
		if (create_both())
			return !fstat(out.fd, &identity);
		if (errno != EEXIST && errno != ELOOP)
			return false;
	}
	return false;
}

const struct output *output_get(void)
{
	return &out;
}

bool output_is_ours(void)
{
	struct stat st;

	return !fstat(out.fd, &st) && st.st_dev == identity.st_dev && st.st_ino == identity.st_ino;
}

void output_drop(void)
{
	unlink(path);
	unlink(live_path);
	output_forget(true);
}

static const char *part_path(void)
{
	static char part[PATH_MAX + 80];

	snprintf(part, sizeof(part), "%s.part", path);
	return part;
}

/* What is left of one belongs to a process of this number that was killed. */
int output_part(void)
{
	unlink(part_path());
	return create(part_path());
}

void output_drop_part(int part)
{
	unlink(part_path());
	close(part);
}

bool output_replace(int part)
{
	struct stat now;

	if (stat(path, &now) || now.st_dev != identity.st_dev || now.st_ino != identity.st_ino ||
	    fstat(part, &now) || rename(part_path(), path))
		return false;
	close(out.fd);
	out.fd = part;
	identity = now;
	return true;
}

void output_remove_live(void)
{
	unlink(live_path);
}

void output_forget(bool close_them)
{
	if (close_them && out.fd >= 0)
		close(out.fd);
	if (close_them && out.live_fd >= 0)
		close(out.live_fd);
	out.fd = out.live_fd = -1;
}

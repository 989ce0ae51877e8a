/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = { 0 };

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	return -1;
}

FILE *file_open_stream(const char *path)
{
	int fd = file_open(path);

	return fd < 0 ? NULL : fdopen(fd, "r");
}

bool file_same(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

const char *file_from_here(const char *path)
{
	char here[PATH_MAX];
	size_t n;

	if (!getcwd(here, sizeof(here)))
		return path;
	n = strlen(here);
	return !strncmp(path, here, n) && path[n] == '/' ? path + n + 1 : path;
}

const char *file_trouble(int err)
{
	return err == EINVAL ? "a pipe or a device, not a file; write it to a file first"
			     : strerror(err);
}

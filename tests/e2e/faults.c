/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that fails, for one process: stands between the recorder and the C library. Of the calls
 * of one kind that concern a recording or its live file, the one with the number in FAULT fails;
 * with '+' behind the number, all from there on. FAULT is KIND:NUMBER[+]; KIND is write (also
 * pwrite; half of it is written first), room (fallocate) or map (a shared mapping). The file named
 * in FAULT_FIRED is made when that happened.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *kind;
static int number, calls;
static int on_and_on;

__attribute__((constructor)) static void read_fault(void)
{
	const char *fault = getenv("FAULT");
	const char *colon = fault ? strchr(fault, ':') : NULL;

	if (!colon)
		return;
	number = atoi(colon + 1);
	on_and_on = fault[strlen(fault) - 1] == '+';
	kind = fault;
}

static int is_recording(int fd)
{
	char link[40], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return 0;
	path[n] = 0;
	return strstr(path, ".gmt") != NULL;
}

static int fails(const char *what, int fd)
{
	const char *fired = getenv("FAULT_FIRED");
	int n;

	if (!kind || strncmp(kind, what, strlen(what)) || !is_recording(fd))
		return 0;
	n = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
	if (n != number && !(on_and_on && n > number))
		return 0;
	if (fired)
		close(open(fired, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	return 1;
}

#define REAL(f) ((typeof(&f))dlsym(RTLD_NEXT, #f))

/* A disk that is nearly full takes a part, and nothing from then on. */
ssize_t write(int fd, const void *data, size_t len)
{
	static int half;

	if (!fails("write", fd))
		return REAL(write)(fd, data, len);
	if (on_and_on && len > 1 && !__atomic_exchange_n(&half, 1, __ATOMIC_SEQ_CST))
		return REAL(write)(fd, data, len / 2);
	errno = ENOSPC;
	return -1;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	if (!fails("write", fd))
		return REAL(pwrite)(fd, data, len, at);
	errno = ENOSPC;
	return -1;
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
	if (!fails("room", fd))
		return REAL(fallocate)(fd, mode, at, len);
	errno = ENOSPC;
	return -1;
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fd < 0 || !(flags & MAP_SHARED) || !fails("map", fd))
		return REAL(mmap)(at, len, prot, flags, fd, offset);
	errno = ENODEV;
	return MAP_FAILED;
}

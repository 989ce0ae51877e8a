/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, closes and recognises our files. Any thread, hook path included. Cancellation is off
 * meanwhile, because the C library's open, read and close are cancellation points.
 */
#include "file.h"

#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

static bool identify(int dir, const char *name, int flags, struct file_id *id)
{
	struct statx x;
	struct stat st;

	*id = (struct file_id){ 0 };
	if (!statx(dir, name, flags, STATX_INO | STATX_TYPE | STATX_BTIME, &x)) {
		id->dev = (uint64_t)x.stx_dev_major << 32 | x.stx_dev_minor;
		id->ino = x.stx_ino;
		id->mode = x.stx_mode;
		if (x.stx_mask & STATX_BTIME)
			id->born = (uint64_t)x.stx_btime.tv_sec * 1000000000u + x.stx_btime.tv_nsec;
		return true;
	}
	if (errno == ENOENT || errno == EBADF || fstatat(dir, name, &st, flags))
		return false;
	id->dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
	id->ino = st.st_ino;
	id->mode = st.st_mode;
	return true;
}

static bool equal(const struct file_id *a, const struct file_id *b)
{
	return b->mode && a->dev == b->dev && a->ino == b->ino && a->born == b->born &&
	       (a->mode & S_IFMT) == (b->mode & S_IFMT);
}

bool file_identify(int fd, struct file_id *id)
{
	return identify(fd, "", AT_EMPTY_PATH, id);
}

bool file_is(int fd, const struct file_id *id)
{
	struct file_id now;

	if (!os_may(OS_FILES))
		return fd >= 0; /* it cannot be checked, and nothing can be done about it */
	return fd >= 0 && file_identify(fd, &now) && equal(&now, id);
}

bool file_is_at(int dir, const char *name, const struct file_id *id)
{
	struct file_id now;

	return os_may(OS_FILES) && identify(dir, name, AT_SYMLINK_NOFOLLOW, &now) &&
	       equal(&now, id);
}

/* Closes a descriptor that was opened within this call. Keeps errno. */
static void shut(int fd)
{
	int saved = errno;

	close(fd);
	errno = saved;
}

bool file_raise(struct file *f, int least)
{
	int higher = f->fd < least ? fcntl(f->fd, F_DUPFD_CLOEXEC, least) : f->fd;

	if (higher < 0)
		return false;
	if (higher != f->fd)
		shut(f->fd);
	f->fd = higher;
	return true;
}

static bool open_here(struct file *f, int dir, const char *name, int flags, mode_t mode)
{
	*f = FILE_CLOSED;
	f->fd = openat(dir, name, flags | O_CLOEXEC, mode);
	if (f->fd < 0)
		return false;
	if (file_raise(f, 3) && file_identify(f->fd, &f->id))
		return true;
	shut(f->fd);
	*f = FILE_CLOSED;
	return false;
}

bool file_open(struct file *f, int dir, const char *name, int flags, mode_t mode)
{
	struct os_calm calm;
	bool ok;

	*f = FILE_CLOSED;
	errno = EPERM;
	if (!os_may(OS_FILES))
		return false;
	os_calm_begin(&calm);
	ok = open_here(f, dir, name, flags, mode);
	os_calm_end(&calm);
	return ok;
}

void file_hold_low(struct file_low *l)
{
	for (int i = 0; i < 3; i++)
		l->held[i] = fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) == i;
}

void file_let_low(const struct file_low *l)
{
	for (int i = 0; i < 3; i++)
		if (l->held[i])
			shut(i);
}

void file_close(struct file *f)
{
	struct os_calm calm;

	os_calm_begin(&calm);
	if (os_may(OS_FILES) && file_is(f->fd, &f->id))
		shut(f->fd);
	os_calm_end(&calm);
	*f = FILE_CLOSED;
}

ssize_t file_read(const struct file *f, void *out, size_t size)
{
	struct os_calm calm;
	size_t have = 0;
	ssize_t n = 1;

	os_calm_begin(&calm);
	while (have < size && n > 0) {
		n = read(f->fd, (char *)out + have, size - have);
		if (n > 0)
			have += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	os_calm_end(&calm);
	return n < 0 ? -1 : (ssize_t)have;
}

ssize_t file_text(const char *path, void *out, size_t size)
{
	struct file f;
	ssize_t n;

	if (!file_open(&f, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0))
		return -1;
	n = file_read(&f, out, size);
	file_close(&f);
	return n;
}

/* For systems that forbid process_vm_readv. */
static bool peek_by_file(void *out, uintptr_t address, size_t bytes)
{
	struct file f;
	bool ok;

	if (!file_open(&f, AT_FDCWD, "/proc/self/mem", O_RDONLY, 0))
		return false;
	ok = lseek(f.fd, (off_t)address, SEEK_SET) == (off_t)address &&
	     file_read(&f, out, bytes) == (ssize_t)bytes;
	file_close(&f);
	return ok;
}

static bool peeks_by_file;

bool file_peeks_often(void)
{
	return !__atomic_load_n(&peeks_by_file, __ATOMIC_RELAXED);
}

bool file_peek(void *out, uintptr_t address, size_t bytes)
{
	struct iovec to = { out, bytes };
	struct iovec from = { (void *)address, bytes };
	ssize_t n;

	if (!os_may(OS_PEEK))
		return false;
	n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
		__atomic_store_n(&peeks_by_file, true, __ATOMIC_RELAXED);
		return peek_by_file(out, address, bytes);
	}
	return n == (ssize_t)bytes;
}

uintptr_t file_peek_word(uintptr_t address)
{
	uintptr_t value = 0;

	return file_peek(&value, address, sizeof(value)) ? value : 0;
}

/* A field of /proc/self/stat (in `text`) from 3 on; 2 is a name in brackets. NULL: not found. */
static const char *process_field(char text[512], int field)
{
	ssize_t n = file_text("/proc/self/stat", text, 511);
	const char *p;

	text[n > 0 ? n : 0] = 0;
	p = strrchr(text, ')');
	for (int i = 2; p && i < field; i++)
		p = strchr(p + 1, ' ');
	return p ? p + 1 : NULL;
}

uint64_t file_process_start(void)
{
	char text[512];
	const char *p = process_field(text, 22);

	return p ? strtoull(p, NULL, 10) : 0;
}

bool file_is_last_thread(void)
{
	char text[512];
	const char *state = process_field(text, 3);

	if (!state || *state != 'Z')
		return false;
	state = process_field(text, 20);
	return state && strtoull(state, NULL, 10) == 2;
}

bool file_unlink(int dir, const char *name, const struct file_id *id)
{
	return file_is_at(dir, name, id) && !unlinkat(dir, name, 0);
}

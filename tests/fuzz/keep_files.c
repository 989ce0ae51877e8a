/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a fuzz target in its memory, and contexts of zstd from run to run (each new one asks the
 * processor what it is, which takes long in a virtual machine). Linked in the place of the calls
 * (--wrap) of all objects of a target. A file of ours is one that the target creates; all others
 * are the system's. One thread.
 *
 * wraps: open memfd_create close fstat stat unlink ftruncate lseek pread pwrite write
 *
 * wraps: ZSTD_createDCtx_advanced ZSTD_freeDCtx ZSTD_initStaticCCtx
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#define FILES 8
#define FIRST 100000 /* descriptor */
#define NAME  96

static struct file {
	char name[NAME]; /* none: a memfd */
	uint8_t *data;
	size_t len, room, at;
	bool closed;
	int opened; /* a memfd, how often */
} files[FILES];
static int file_count;

#define WRAP(type, name, ...)            \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

static struct file *of(int fd)
{
	return fd >= FIRST && fd < FIRST + file_count ? &files[fd - FIRST] : NULL;
}

/* -1: not one of ours. */
static int named(const char *path, bool *sibling)
{
	int fd = -1;

	*sibling = false;
	if (!strncmp(path, "/proc/self/fd/", 14)) {
		fd = atoi(path + 14);
		*sibling = of(fd) && strchr(path, '.'); /* no file has it */
		return of(fd) && !*sibling ? fd : -1;
	}
	for (int i = 0; i < file_count; i++)
		if (files[i].name[0] && !strcmp(files[i].name, path))
			return FIRST + i;
	return -1;
}

static int make(const char *path)
{
	int i = 0;

	while (i < file_count && !files[i].closed)
		i++;
	if (i == FILES)
		abort();
	file_count += i == file_count;
	snprintf(files[i].name, NAME, "%s", path);
	files[i].len = files[i].at = 0;
	files[i].closed = false;
	files[i].opened = 1;
	return FIRST + i;
}

WRAP(int, open, const char *path, int flags, ...)
{
	bool sibling;
	int fd = named(path, &sibling), mode;
	va_list list;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, int) : 0;
	va_end(list);
	if (sibling) {
		errno = ENOENT;
		return -1;
	}
	if (fd < 0 && !(flags & O_CREAT))
		return __real_open(path, flags, mode);
	if (fd < 0)
		fd = make(path);
	else
		of(fd)->opened++;
	if (flags & O_TRUNC)
		of(fd)->len = of(fd)->at = 0;
	return fd;
}

WRAP(int, memfd_create, const char *name, unsigned flags)
{
	(void)name, (void)flags;
	return make("");
}

WRAP(int, close, int fd)
{
	struct file *f = of(fd);

	if (!f)
		return __real_close(fd);
	f->closed = !f->name[0] && f->opened-- == 1;
	return 0;
}

static int describe(const struct file *f, struct stat *st)
{
	*st = (struct stat){ .st_mode = S_IFREG | 0600, .st_size = (off_t)f->len };
	st->st_ino = (ino_t)(f - files + 1);
	return 0;
}

WRAP(int, fstat, int fd, struct stat *st)
{
	return of(fd) ? describe(of(fd), st) : __real_fstat(fd, st);
}

WRAP(int, stat, const char *path, struct stat *st)
{
	bool sibling;
	int fd = named(path, &sibling);

	return fd < 0 ? __real_stat(path, st) : describe(of(fd), st);
}

WRAP(int, unlink, const char *path)
{
	bool sibling;

	return named(path, &sibling) < 0 ? __real_unlink(path) : 0;
}

static void grow(struct file *f, size_t len)
{
	if (len > f->room) {
		f->data = realloc(f->data, len * 2);
		f->room = len * 2;
	}
	if (!f->data)
		abort();
	if (len > f->len) {
		memset(f->data + f->len, 0, len - f->len);
		f->len = len;
	}
}

WRAP(int, ftruncate, int fd, off_t len)
{
	struct file *f = of(fd);

	if (!f)
		return __real_ftruncate(fd, len);
	if ((size_t)len > f->len)
		grow(f, (size_t)len);
	f->len = (size_t)len;
	return 0;
}

WRAP(off_t, lseek, int fd, off_t at, int whence)
{
	struct file *f = of(fd);

	if (!f)
		return __real_lseek(fd, at, whence);
	f->at = (size_t)at + (whence == SEEK_CUR ? f->at : whence == SEEK_END ? f->len : 0);
	return (off_t)f->at;
}

WRAP(ssize_t, pread, int fd, void *to, size_t len, off_t at)
{
	const struct file *f = of(fd);
	size_t left;

	if (!f)
		return __real_pread(fd, to, len, at);
	left = (size_t)at < f->len ? f->len - (size_t)at : 0;
	len = len < left ? len : left;
	if (len)
		memcpy(to, f->data + at, len);
	return (ssize_t)len;
}

WRAP(ssize_t, pwrite, int fd, const void *from, size_t len, off_t at)
{
	struct file *f = of(fd);

	if (!f)
		return __real_pwrite(fd, from, len, at);
	if (len) {
		grow(f, (size_t)at + len);
		memcpy(f->data + at, from, len);
	}
	return (ssize_t)len;
}

WRAP(ssize_t, write, int fd, const void *from, size_t len)
{
	struct file *f = of(fd);

	if (!f)
		return __real_write(fd, from, len);
	f->at += len;
	return __wrap_pwrite(fd, from, len, (off_t)(f->at - len));
}

/* ---- zstd ---- */

static ZSTD_DCtx *unpackers[4];

WRAP(ZSTD_DCtx *, ZSTD_createDCtx_advanced, ZSTD_customMem memory)
{
	for (int i = 0; i < 4; i++) {
		ZSTD_DCtx *one = unpackers[i];

		unpackers[i] = NULL;
		if (one && !ZSTD_isError(ZSTD_DCtx_reset(one, ZSTD_reset_session_and_parameters)))
			return one;
	}
	return __real_ZSTD_createDCtx_advanced(memory);
}

WRAP(size_t, ZSTD_freeDCtx, ZSTD_DCtx *one)
{
	for (int i = 0; i < 4 && one; i++)
		if (!unpackers[i]) {
			unpackers[i] = one;
			return 0;
		}
	return __real_ZSTD_freeDCtx(one);
}

/* One of each size, for good: a target has one writer at a time, and its two differ in size. */
WRAP(ZSTD_CCtx *, ZSTD_initStaticCCtx, void *memory, size_t bytes)
{
	static struct {
		ZSTD_CCtx *one;
		size_t room;
	} packers[4];

	for (int i = 0; i < 4; i++) {
		if (!packers[i].one) {
			packers[i].room = bytes;
			memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
			return packers[i].one = __real_ZSTD_initStaticCCtx(memory, bytes);
		}
		if (packers[i].room == bytes) {
			ZSTD_CCtx_reset(packers[i].one, ZSTD_reset_session_and_parameters);
			return packers[i].one;
		}
	}
	return __real_ZSTD_initStaticCCtx(memory, bytes);
}

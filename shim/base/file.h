/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own files among those of the program. A descriptor alone proves nothing: the program might
 * have closed it and reused its number. So each file is known by its identity, and only that is
 * closed, written or unlinked. Any thread; no cancellation point, errno as of system calls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FILE_CLOSED ((struct file){ .fd = -1 })

/* `born` distinguishes a file from a later one with its inode; 0 = not known to the file system. */
struct file_id {
	uint64_t dev, ino, born;
	uint32_t mode; /* 0 = not known */
};

struct file {
	int fd;
	struct file_id id;
};

bool file_identify(int fd, struct file_id *id);
bool file_is(int fd, const struct file_id *id); /* the descriptor still is that file */
bool file_is_at(int dir, const char *name, const struct file_id *id); /* links are not followed */

/* Opens with O_CLOEXEC, and never below 3: those numbers are the program's, also when closed. */
bool file_open(struct file *f, int dir, const char *name, int flags, mode_t mode);
bool file_raise(struct file *f,
		int least);	 /* moves it to a descriptor >= least; false: none is free */
void file_close(struct file *f); /* if it still is that file */
ssize_t file_read(const struct file *f, void *out, size_t size); /* bytes; -1: failed */
ssize_t file_text(const char *path, void *out, size_t size);	 /* the same for a path */
bool file_is_last_thread(void);	   /* the first thread has ended, and only one other is left */
uint64_t file_process_start(void); /* of this process, clock ticks since boot; 0 = not known */
/* Occupies free descriptors below 3 while a library that we call opens files. */
struct file_low {
	bool held[3];
};
void file_hold_low(struct file_low *l);
void file_let_low(const struct file_low *l);
bool file_unlink(int dir, const char *name, const struct file_id *id); /* if it is that file */

/* Reads this process's memory at any address; false where nothing is mapped. Slow (a system call).
 */
bool file_peek(void *out, uintptr_t address, size_t bytes);
uintptr_t file_peek_word(uintptr_t address); /* 0 where nothing is mapped */
bool file_peeks_often(void);		     /* false: each peek opens a file */

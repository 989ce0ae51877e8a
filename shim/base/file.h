/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of our own among those of the program. A number says nothing: the program may have closed
 * it and given it to a file of its own. So each file is known by what it is, and only that is
 * closed, written or unlinked. Any thread; no cancellation point, errno as system calls leave it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FILE_CLOSED ((struct file){ .fd = -1 })

/* `born` tells a file from the next one with its number; 0 where the file system does not say. */
struct file_id {
	uint64_t dev, ino, born;
	uint32_t mode; /* 0 = not known */
};

struct file {
	int fd;
	struct file_id id;
};

bool file_identify(int fd, struct file_id *id);
bool file_is(int fd, const struct file_id *id); /* is this number still that file? */
bool file_is_at(int dir, const char *name, const struct file_id *id); /* the name itself, no link */

/* Opened with O_CLOEXEC, and never below 3: those numbers are the program's, also when closed. */
bool file_open(struct file *f, int dir, const char *name, int flags, mode_t mode);
bool file_raise(struct file *f,
		int least);	 /* to a number out of the program's way, if there is one */
void file_close(struct file *f); /* if it is ours */
ssize_t file_read(const struct file *f, void *out, size_t size); /* until the end; -1: failed */
ssize_t file_text(const char *path, void *out, size_t size);	 /* of a file by name */
bool file_is_last_thread(void);	   /* the process's first one ended, and no other is there */
uint64_t file_process_start(void); /* of this process, clock ticks since boot; 0 = not known */
/* While a library that we call opens what it keeps: it gets no number below 3 either. */
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
bool file_peeks_often(void);		     /* false: each of them opens a file */

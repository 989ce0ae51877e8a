/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few stores into a memory file that `gpumemtrace run` owns. The path in the environment is
 * opened only if it is a plain file of the right size, and used only if it begins with the right
 * magic. notes_setup runs in the constructor, notes_refused on the thread that asked for memory,
 * the others on the thread of the first event.
 */
#include "notes.h"

#include "../../format/runnotes.h"
#include "../base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static struct gmt_notes *notes;

static bool is_of_its_size(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size == (off_t)sizeof(struct gmt_notes);
}

static void *map(const char *path)
{
	struct stat st;
	struct file f;
	void *p = MAP_FAILED;

	if (stat(path, &st) || !is_of_its_size(&st) ||
	    !file_open(&f, AT_FDCWD, path, O_RDWR | O_NONBLOCK | O_NOCTTY, 0))
		return NULL;
	if (!fstat(f.fd, &st) && is_of_its_size(&st))
		p = mmap(NULL, sizeof(struct gmt_notes), PROT_READ | PROT_WRITE, MAP_SHARED, f.fd,
			 0);
	file_close(&f);
	return p == MAP_FAILED ? NULL : p;
}

void notes_setup(bool enabled)
{
	const char *path = getenv(GMT_NOTES);
	struct gmt_notes *n = path ? map(path) : NULL;
	uint32_t i;

	if (!n)
		return;
	if (n->magic != GMT_NOTES_MAGIC) {
		munmap(n, sizeof(*n));
		return;
	}
	i = __atomic_fetch_add(&n->loaded, 1, __ATOMIC_RELAXED);
	if (i < GMT_NOTES_PROGRAMS)
		prctl(PR_GET_NAME, n->programs[i]);
	if (!enabled)
		__atomic_add_fetch(&n->off, 1, __ATOMIC_RELAXED);
	notes = n;
}

void notes_begun(const char *path)
{
	uint32_t bytes = (uint32_t)strlen(path) + 1, at;

	if (!notes)
		return;
	__atomic_add_fetch(&notes->recordings, 1, __ATOMIC_RELAXED);
	at = __atomic_fetch_add(&notes->files_used, bytes, __ATOMIC_RELAXED);
	if (at < sizeof(notes->files) && bytes <= sizeof(notes->files) - at)
		memcpy(notes->files + at, path, bytes);
}

void notes_failed(const char *path, int error)
{
	size_t bytes = strlen(path) + 1;

	if (!notes || __atomic_fetch_add(&notes->failed, 1, __ATOMIC_RELAXED))
		return;
	notes->error = error;
	if (bytes <= sizeof(notes->failed_path))
		memcpy(notes->failed_path, path, bytes);
}

void notes_refused(void)
{
	if (notes)
		__atomic_add_fetch(&notes->refused, 1, __ATOMIC_RELAXED);
}

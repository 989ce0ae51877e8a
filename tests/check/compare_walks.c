/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every walk of shim/stacks/frames.c beside libunwind's of the same moment, in a library built with
 * `make CHECK=1` (build/check), and Python walks that a running binding leaves out beside those
 * that do not. What it found is appended to the file that FRAMES_CHECK_LOG names:
 * both walks where they differ, and at the end of the process a line of counts. Not thread safe
 * about its text: the first differences matter, not all.
 */
#include "../../shim/stacks/native.h"
#include "../../shim/stacks/python.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN 20

static unsigned long compared, kept, frames, asked, differ;
static unsigned long left_out, wrong; /* walks of Python frames */

static void append(const char *text)
{
	const char *path = getenv("FRAMES_CHECK_LOG");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		compared = 0;
	close(fd);
}

static void show(const struct walk *w, const uintptr_t *theirs, int n)
{
	char line[160];

	if (__atomic_add_fetch(&differ, 1, __ATOMIC_RELAXED) > SHOWN)
		return;
	snprintf(line, sizeof(line), "differ: %d frames, %d kept; libunwind %d\n", w->count,
		 w->kept, n);
	append(line);
	for (int i = 0; i < w->count || i < n; i++) {
		uintptr_t a = i < w->count ? w->frames[w->count - 1 - i].ip : 0;
		uintptr_t b = i < n ? theirs[i] : 0;

		snprintf(line, sizeof(line), "  %3d %#lx %#lx%s\n", i, (unsigned long)a,
			 (unsigned long)b, a == b ? "" : " <");
		append(line);
	}
}

void native_compare(const struct walk *w)
{
	uintptr_t theirs[FRAMES_MOST];
	int skip, n;

	if (!w) {
		__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
		return;
	}
	n = native_by_libunwind(theirs, FRAMES_MOST, &skip);
	__atomic_add_fetch(&compared, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&kept, (unsigned long)w->kept, __ATOMIC_RELAXED);
	__atomic_add_fetch(&frames, (unsigned long)w->count, __ATOMIC_RELAXED);
	if (n + skip == FRAMES_MOST && w->count > n)
		return; /* libunwind counts our own frames too */
	for (int i = 0; i < n && n == w->count; i++)
		if (w->frames[n - 1 - i].ip != theirs[skip + i])
			n = -1;
	if (n != w->count)
		show(w, theirs + skip, n < 0 ? w->count : n);
}

void python_compare(bool same)
{
	__atomic_add_fetch(&left_out, 1, __ATOMIC_RELAXED);
	if (!same)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

static __attribute__((destructor)) void finish(void)
{
	char line[160];

	snprintf(line, sizeof(line),
		 "frames: compared %lu, frames %lu, kept %lu, asked %lu, differ %lu, left_out %lu, "
		 "wrong %lu\n",
		 compared, frames, kept, asked, differ, left_out, wrong);
	append(line);
}

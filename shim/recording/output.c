/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, opens, moves and removes the files. Runs on the drain's thread. Unlinks and replaces only
 * our own files, whatever their names are by now, and a recording of an earlier run that
 * `gpumemtrace run -o` may replace, once this process's first events are in its own file.
 *
 * A name is taken by the process that creates it (O_EXCL). If a pattern gives several processes one
 * name, the first gets it, every other adds its process id, and a number if that is taken too.
 */
#include "output.h"

#include "../../format/block.h"
#include "../../format/rank.h"
#include "../../format/ring.h"
#include "../../format/runnotes.h"
#include "../base/config.h"
#include "../base/file.h"
#include "../base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FD_AT_LEAST 700 /* out of the way of programs that close or count on low numbers */
#define TRIES	    1000

static char start_dir[PATH_MAX];
static char base[PATH_MAX], path[PATH_MAX + 64], live_path[PATH_MAX + 80];
static struct output out = { { .fd = -1 }, { .fd = -1 }, path, live_path };
static struct file folder = { .fd = -1 };

/* Current place of a file. */
struct place {
	int dir;
	const char *name;
	char path[PATH_MAX];
};

static struct place part_place; /* of the part beside the recording */
static struct file part = { .fd = -1 };

static uint64_t
	replace_until; /* ctime, ns: files changed later are no earlier run's (GMT_REPLACE) */

void output_setup(void)
{
	const char *until = getenv(GMT_REPLACE);

	replace_until = until ? strtoull(until, NULL, 10) : 0;
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

/* Expands the pattern into base, absolute if the directory is known; false: too long. */
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

/* Sets the name to try next: base; then with the process id, then also a number, before ".gmt". */
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

static const char *name_in(const char *full)
{
	const char *slash = strrchr(full, '/');

	return slash ? slash + 1 : full;
}

static bool open_folder(void)
{
	size_t n = (size_t)(name_in(path) - path);
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%.*s", n ? (int)n : 1, n ? path : ".");
	if (!file_open(&folder, AT_FDCWD, name, O_PATH | O_DIRECTORY, 0))
		return false;
	file_raise(&folder, FD_AT_LEAST);
	return true;
}

static bool create_file(struct file *f, int dir, const char *name)
{
	if (!file_open(f, dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600))
		return false;
	file_raise(f, FD_AT_LEAST);
	return true;
}

static bool create_both(void)
{
	int err;

	if (!create_file(&out.recording, folder.fd, name_in(path)))
		return false;
	if (create_file(&out.live, folder.fd, name_in(live_path)))
		return true;
	err = errno;
	file_unlink(folder.fd, name_in(path), &out.recording.id);
	file_close(&out.recording);
	errno = err;
	return false;
}

/* ---- a recording of an earlier run ---- */

enum { OLD_RECORDING, OLD_LIVE, OLD_FILES };

/* Names of the earlier run's files until this process's files have events; "" = none. The live file
 * keeps the name of its recording, so that both can be read after a kill at that moment. */
static char aside[OLD_FILES][PATH_MAX + 100];

static uint64_t changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
}

static bool is_old(const struct file *f, uint64_t magic)
{
	uint64_t start = 0;
	struct stat st;

	return !fstat(f->fd, &st) && S_ISREG(st.st_mode) && changed_ns(&st) <= replace_until &&
	       (!st.st_size ||
		(file_read(f, &start, sizeof(start)) == sizeof(start) && start == magic));
}

/* Whether another process still writes the recording with that live file. */
static bool is_written(const char *live)
{
	struct gmt_live_header h = { 0 };
	struct file f;
	bool read;

	if (!file_open(&f, folder.fd, live, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0))
		return false;
	read = file_read(&f, &h, sizeof(h)) == sizeof(h) && h.magic == GMT_LIVE_MAGIC;
	file_close(&f);
	return read && !h.closed && (pid_t)h.pid > 0 && (pid_t)h.pid != getpid() &&
	       (!kill((pid_t)h.pid, 0) || errno == EPERM);
}

/* The process that gets the lock renames the file to `to`. Without locks in
 * the file system, each would find the name free or taken by a new file. True: it was moved or is
 * not there. */
static bool move_aside(const char *name, uint64_t magic, char to[PATH_MAX + 100])
{
	struct file f;
	bool moved = false;

	if (!file_open(&f, folder.fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0)) {
		to[0] = 0;
		return errno == ENOENT;
	}
	if ((!flock(f.fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) && is_old(&f, magic) &&
	    file_is_at(folder.fd, name, &f.id) && faccessat(folder.fd, to, F_OK, 0))
		moved = !renameat(folder.fd, name, folder.fd, to);
	file_close(&f);
	if (!moved)
		to[0] = 0;
	return moved;
}

/* Gives the old files their names back, unless these are taken by now. */
static void restore_old(void)
{
	const char *const names[OLD_FILES] = { name_in(path), name_in(live_path) };

	for (int i = 0; i < OLD_FILES; i++) {
		if (aside[i][0] && faccessat(folder.fd, names[i], F_OK, 0))
			renameat(folder.fd, aside[i], folder.fd, names[i]);
		aside[i][0] = 0;
	}
}

static bool replace_old(void)
{
	const char *name = name_in(path), *live = name_in(live_path);
	int pid = (int)getpid();

	if (!replace_until || is_written(live))
		return false;
	snprintf(aside[OLD_RECORDING], sizeof(aside[0]), "%s.%d.old", name, pid);
	if (!move_aside(name, GMT_FILE_MAGIC, aside[OLD_RECORDING]))
		return false;
	snprintf(aside[OLD_LIVE], sizeof(aside[0]), "%s.%d.old.live", name, pid);
	if (move_aside(live, GMT_LIVE_MAGIC, aside[OLD_LIVE]))
		return true;
	restore_old();
	return false;
}

void output_begun(void)
{
	for (int i = 0; i < OLD_FILES; i++) {
		if (aside[i][0] && os_may(OS_FILES))
			unlinkat(folder.fd, aside[i], 0);
		aside[i][0] = 0;
	}
}

bool output_open(void)
{
	bool has_pid = strstr(gmt_config.output, "%p") != NULL;

	if (!expand(gmt_config.output)) {
		errno = ENAMETOOLONG;
		return false;
	}
	for (int tries = 0; tries < TRIES; tries++) {
		int err;

		name_number(tries, has_pid);
		if (!tries && !open_folder())
			return false;
		if (create_both())
			return true;
		err = errno;
		if (!tries && err == EEXIST && replace_old()) {
			if (create_both())
				return true;
			err = errno;
		}
		errno = err;
		if (err != EEXIST && err != ELOOP)
			break;
	}
	return false;
}

const struct output *output_get(void)
{
	return &out;
}

bool output_is_ours(void)
{
	return file_is(out.recording.fd, &out.recording.id);
}

/*
 * Finds the place of a file. Its folder can be renamed: our descriptor still leads there. If the
 * file itself was moved, the kernel knows its name by the descriptor.
 */
static bool locate(struct place *p, const struct file *f, const char *full)
{
	char link[40];
	ssize_t n;

	*p = (struct place){ .dir = folder.fd, .name = name_in(full) };
	if (file_is(folder.fd, &folder.id) && file_is_at(p->dir, p->name, &f->id))
		return true;
	p->dir = AT_FDCWD;
	p->name = full;
	if (file_is_at(p->dir, p->name, &f->id))
		return true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", f->fd);
	n = file_is(f->fd, &f->id) ? readlink(link, p->path, sizeof(p->path)) : -1;
	if (n <= 0 || (size_t)n >= sizeof(p->path))
		return false;
	p->name = p->path;
	return file_is_at(p->dir, p->name, &f->id);
}

static void unlink_ours(const struct file *f, const char *full)
{
	static struct place p; /* only for our thread */

	if (os_may(OS_FILES) && locate(&p, f, full))
		file_unlink(p.dir, p.name, &f->id);
}

void output_drop(void)
{
	if (out.recording.fd >= 0)
		unlink_ours(&out.recording, path);
	if (out.live.fd >= 0)
		unlink_ours(&out.live, live_path);
	if (os_may(OS_FILES))
		restore_old();
	output_forget(true);
}

/* Tries several names: a taken one is another run's, or of one that was killed. */
int output_part(void)
{
	static struct place now;
	static char name[PATH_MAX + 16];

	if (!locate(&now, &out.recording, path))
		return -1;
	for (int tries = 0; tries < TRIES; tries++) {
		snprintf(name, sizeof(name), tries ? "%s.%d.part" : "%s.part", now.name, tries);
		if (create_file(&part, now.dir, name)) {
			part_place = (struct place){ .dir = now.dir, .name = name };
			return part.fd;
		}
		if (errno != EEXIST)
			break;
	}
	return -1;
}

void output_drop_part(void)
{
	file_unlink(part_place.dir, part_place.name, &part.id);
	file_close(&part);
}

bool output_replace(void)
{
	static struct place now;

	if (!locate(&now, &out.recording, path) ||
	    renameat(part_place.dir, part_place.name, now.dir, now.name))
		return false;
	file_close(&out.recording);
	out.recording = part;
	part = FILE_CLOSED;
	return true;
}

void output_remove_live(void)
{
	unlink_ours(&out.live, live_path);
}

void output_forget(bool close_them)
{
	struct file *const all[] = { &out.recording, &out.live, &folder, &part };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (close_them && all[i]->fd >= 0)
			file_close(all[i]);
		*all[i] = FILE_CLOSED;
	}
	aside[OLD_RECORDING][0] = aside[OLD_LIVE][0] = 0;
}

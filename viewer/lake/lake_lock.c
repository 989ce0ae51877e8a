/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/say.h"
#include "lake.h"

#define TRIES 1000 /* a writer that ends removes the lock file, and its folder if that is empty */

static bool lock_path(char path[PATH_MAX], const char *lake)
{
	return snprintf(path, PATH_MAX, "%s/.new/lock", lake) < PATH_MAX;
}

/* Whether the locked file still has the name, because its last owner may have removed it
 * meanwhile. */
static bool is_there(int fd, const char *path)
{
	struct stat mine, named;

	return !fstat(fd, &mine) && !stat(path, &named) && mine.st_ino == named.st_ino &&
	       mine.st_dev == named.st_dev;
}

/* Without support for locks in the file system, this writer goes on as if it were the only one. */
static void lock_wait(int fd, const char *lake, bool *said)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (!fcntl(fd, F_OFD_SETLK, &whole) || (errno != EAGAIN && errno != EACCES))
		return;
	if (!*said)
		say_note("%s: another collect is writing there; this one waits for it", lake);
	*said = true;
	while (fcntl(fd, F_OFD_SETLKW, &whole) && errno == EINTR)
		;
}

int lake_lock(struct lake_lock *l, const char *lake)
{
	char path[PATH_MAX];
	bool said = false;
	int err = ENOENT;

	*l = (struct lake_lock){ .fd = -1, .made = access(lake, F_OK) };
	if (!lock_path(path, lake))
		return say_error(EXIT_USAGE, "%s: the name of the lake is too long", lake);
	for (int i = 0; i < TRIES && err == ENOENT; i++) {
		err = lake_make(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, &l->fd);
		if (err)
			break;
		lock_wait(l->fd, lake, &said);
		if (is_there(l->fd, path))
			return 0;
		close(l->fd);
		l->fd = -1;
		err = ENOENT;
	}
	return say_error(EXIT_UNREADABLE, "%s: nothing can be written there: %s", lake,
			 strerror(err));
}

void lake_unlock(struct lake_lock *l, const char *lake)
{
	char path[PATH_MAX];

	if (l->fd < 0)
		return;
	if (lock_path(path, lake))
		unlink(path);
	lake_finish(lake);
	if (l->made)
		rmdir(lake);
	close(l->fd);
	l->fd = -1;
}

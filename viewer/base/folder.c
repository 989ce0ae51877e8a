/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_file.h"

#include <dirent.h>
#include <unistd.h>

int folder_make(char path[PATH_MAX], const char *word)
{
	const char *place = getenv("TMPDIR");

	snprintf(path, PATH_MAX, "%.200s/gpumemtrace-%s-XXXXXX", place && *place ? place : "/tmp",
		 word);
	if (mkdtemp(path))
		return 0;
	say_unreadable("%s cannot be made: %s", path, strerror(errno));
	path[0] = 0;
	return EXIT_UNREADABLE;
}

void folder_remove(const char *path)
{
	DIR *d = opendir(path);
	char file[2 * PATH_MAX];
	struct dirent *e;

	while (d && (e = readdir(d))) {
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		unlink(file);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

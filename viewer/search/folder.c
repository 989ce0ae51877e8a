/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/say.h"

int folder_make(char path[PATH_MAX], const char *word, bool *temporary)
{
	const char *place = getenv("TMPDIR");
	struct stat st;
	bool made;

	*temporary = !path[0];
	if (*temporary)
		snprintf(path, PATH_MAX, "%.200s/gpumemtrace-%s-XXXXXX",
			 place && *place ? place : "/tmp", word);
	if (!*temporary && !stat(path, &st) && !S_ISDIR(st.st_mode))
		return say_error(EXIT_UNREADABLE, "%s is no folder", path);
	made = *temporary ? mkdtemp(path) != NULL : !mkdir(path, 0777) || errno == EEXIST;
	return made ? 0
		    : say_error(EXIT_UNREADABLE, "%s cannot be made: %s", path, strerror(errno));
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

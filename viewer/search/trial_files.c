/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a trial, by its name in the folder of the search. What a process that was ended
 * here had recorded becomes a whole recording, which says so. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/need.h"
#include "../recording/copying.h"
#include "../recording/running.h"
#include "trial.h"

/* ---- files ---- */

void trial_path(const struct trial *t, const struct plan *p, const char *ending,
		char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s/%s%s", p->folder, t->name, ending) >= PATH_MAX)
		path[0] = 0;
}

/* "NAME.gmt", and "NAME.4711.gmt" of further processes. */
static bool is_recording(const char *file, const char *name)
{
	size_t len = strlen(name), digits;

	if (strncmp(file, name, len))
		return false;
	digits = file[len] == '.' ? strspn(file + len + 1, "0123456789") : 0;
	return !strcmp(file + len + (digits ? digits + 1 : 0), ".gmt");
}

char **trial_recordings(const struct trial *t, const struct plan *p)
{
	DIR *d = opendir(p->folder);
	char **paths = need_new(sizeof(*paths)), path[2 * PATH_MAX];
	size_t n = 0, room = 1;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (!is_recording(e->d_name, t->name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", p->folder, e->d_name);
		paths = need_grow(paths, &room, n + 1, sizeof(*paths));
		paths[n++] = need_copy(path, strlen(path));
		paths[n] = NULL;
	}
	if (d)
		closedir(d);
	return paths;
}

char **trial_living(const struct trial *t, const struct plan *p)
{
	char **paths = trial_recordings(t, p);
	size_t n = 0;
	int err;

	for (char **at = paths; *at; at++) {
		struct gmt_reader *r = gmt_reader_open(*at, &err);
		bool lives = r && running_maps((long)gmt_reader_info(r)->pid, *at);

		gmt_reader_close(r);
		if (lives)
			paths[n++] = *at;
		else
			free(*at);
	}
	paths[n] = NULL;
	return paths;
}

static void complete(const char *path)
{
	char whole[PATH_MAX + 8], live[PATH_MAX + 8];
	struct recording r;
	uint64_t events;
	int rc;

	snprintf(whole, sizeof(whole), "%s.whole", path);
	snprintf(live, sizeof(live), "%s.live", path);
	if (access(live, F_OK) || recording_open(&r, path))
		return;
	rc = copying_write(&r, whole, COPYING_SEARCH, &events);
	recording_close(&r);
	if (!rc && !rename(whole, path))
		unlink(live);
}

void trial_complete(char **living)
{
	for (char **path = living; *path; path++)
		complete(*path);
	vary_command_free(living);
}

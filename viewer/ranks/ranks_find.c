/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks_find.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/outfile.h"
#include "../base/plain_file.h"
#include "../base/ending.h"
#include "../base/sorted.h"
#include "../recording/import.h"
#include "../recording/owners.h"

#define LIVE ".live"

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool ranks_is_run(char *const *paths)
{
	return paths[0] && (paths[1] || is_folder(paths[0]));
}

static char *path_in(const char *folder, const char *name)
{
	size_t n = strlen(folder), room = n + strlen(name) + 2;
	char *path = need_new(room);

	while (n > 1 && folder[n - 1] == '/')
		n--;
	snprintf(path, room, "%.*s/%s", (int)n, folder, name);
	return path;
}

/* Whether it is the live file of a recording beside it, which is read with that. */
static bool is_beside(const char *path)
{
	char base[PATH_MAX];
	size_t n = strlen(path) - strlen(LIVE);

	if (!ending_is(path, LIVE) || n >= sizeof(base))
		return false;
	snprintf(base, sizeof(base), "%.*s", (int)n, path);
	return !access(base, F_OK);
}

/* Adds a file to the run or to those left out. A damaged *.gmt is a recording, too. Owns path. */
static void sort_out(struct ranks_run *run, char *path, bool snapshots)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || is_beside(path))
		free(path);
	else if (ending_is(path, ".gmt") ||
		 (snapshots ? import_recognises(path) : outfile_holds_recording(path)))
		ranks_look(need_item(run->items, run->count, run->room), path);
	else
		ranks_leave(run, path);
}

/* The error message for a folder without recordings, which may be in folders below it. */
static int nothing_here(const char *folder)
{
	char *below = path_in(folder, "*/*.gmt"), *snapshots = path_in(folder, "*/*.pickle");
	glob_t found = { 0 };

	if (glob(below, 0, NULL, &found) && glob(snapshots, 0, NULL, &found)) {
		say_unreadable("%s: no recording (*.gmt) in this folder", folder);
	} else {
		*strrchr(found.gl_pathv[0], '/') = 0;
		say_unreadable("%s: no recording (*.gmt) in this folder, but in a folder in it: "
			       "name %s, or several of them",
			       folder, found.gl_pathv[0]);
	}
	globfree(&found);
	free(below);
	free(snapshots);
	return EXIT_UNREADABLE;
}

/* PyTorch's snapshots count only if the folder has no recording. */
static int list_folder(struct ranks_run *run, const char *folder)
{
	size_t first = run->count, left = run->left_count;

	for (int snapshots = 0; snapshots < 2 && run->count == first; snapshots++) {
		DIR *d = opendir(folder);
		struct dirent *e;

		if (!d)
			return say_unreadable("%s: %s", folder, strerror(errno));
		while (run->left_count > left)
			free(run->left[--run->left_count]);
		while ((e = readdir(d)))
			if (e->d_name[0] != '.')
				sort_out(run, path_in(folder, e->d_name), snapshots);
		closedir(d);
	}
	return run->count == first ? nothing_here(folder) : 0;
}

/* A file without a rank (-1) stands last. */
COMPARE(by_rank, struct rank_file,
	(x->of && y->of ? ORDER(x->operand, y->operand) : 0) ?:
	ORDER((unsigned long)x->rank, (unsigned long)y->rank) ?: strverscmp(x->path, y->path))

static int list_operand(struct ranks_run *run, char *const *paths, size_t i)
{
	size_t first = run->count;
	int rc = 0;

	if (!is_folder(paths[i]))
		ranks_look(need_item(run->items, run->count, run->room), need_text(paths[i]));
	else if (!ANY_OF(x, paths, i, file_same(*x, paths[i]))) /* not a repeated folder */
		rc = list_folder(run, paths[i]);
	for (; first < run->count; first++)
		run->items[first].operand = i;
	return rc;
}

int ranks_find(struct ranks_run *out, char *const *paths, enum ranks_meant meant)
{
	bool folders = true;
	int rc = 0;

	*out = (struct ranks_run){ .runs = 1 };
	for (size_t i = 0; paths[i] && !rc; i++) {
		if (!is_folder(paths[i]))
			folders = false;
		rc = list_operand(out, paths, i);
	}
	if (!rc)
		qsort(out->items, out->count, sizeof(*out->items), by_rank);
	if (!rc)
		rc = ranks_one_run(out, paths, folders, meant);
	if (rc) {
		ranks_free(out);
		return rc;
	}
	qsort(out->items, out->count, sizeof(*out->items), by_rank);
	FOR_EACH (const struct rank_file, f, out->items, out->count) {
		out->readable += f->readable;
		out->world = f->world > out->world ? f->world : out->world;
	}
	return 0;
}

void ranks_free(struct ranks_run *r)
{
	for (size_t i = 0; i < r->count; i++)
		ranks_look_free(&r->items[i]);
	for (size_t i = 0; i < r->left_count; i++)
		free(r->left[i]);
	free(r->items);
	free(r->left);
	*r = (struct ranks_run){ 0 };
}

static size_t one_range(const struct ranks_run *r, size_t first, size_t last, char *buf,
			size_t room)
{
	const struct rank_file *a = &r->items[first], *b = &r->items[last];
	const char *of = a->of && a->of_is_folder ? a->of : "", *word = *of ? " of " : "";

	if (a->of && !a->of_is_folder)
		return (size_t)snprintf(buf, room, "%s", a->of);
	if (a->rank < 0)
		return (size_t)snprintf(buf, room, "%s%s%s", owners_base(a->path), word, of);
	if (first == last)
		return (size_t)snprintf(buf, room, "%ld%s%s", a->rank, word, of);
	return (size_t)snprintf(buf, room, "%ld-%ld%s%s", a->rank, b->rank, word, of);
}

const char *ranks_words(const struct ranks_run *r, const bool *marked, char *buf, size_t room)
{
	size_t n = 0, last;
	char one[PATH_MAX + 64];

	buf[0] = 0;
	for (size_t i = 0; i < r->count; i = last + 1) {
		last = i;
		if (!marked[i])
			continue;
		while (last + 1 < r->count && marked[last + 1] && r->items[i].rank >= 0 &&
		       r->items[last + 1].of == r->items[i].of &&
		       r->items[last + 1].rank == r->items[last].rank + 1)
			last++;
		if (n + one_range(r, i, last, one, sizeof(one)) + 8 > room) {
			snprintf(buf + n, room - n, ", ..");
			break;
		}
		n += (size_t)snprintf(buf + n, room - n, "%s%s", n ? ", " : "", one);
	}
	return buf;
}

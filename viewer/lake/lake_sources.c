/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_sources.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/plain_file.h"
#include "../base/map.h"
#include "../base/need.h"
#include "../base/say.h"
#include "../ranks/ranks_runs.h"
#include "../stacks/owners.h"
#include "lake_index.h"
#include "lake_runs.h"
#include "lake_worth.h"

/* ---- files ---- */

static void add_path(struct lake_sources *s, const char *path)
{
	ranks_look(need_item(s->files, s->file_count, s->file_room), need_copy(path, strlen(path)));
}

static bool is_recording_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ".gmt");
}

/* Adds all recordings below a folder. Links to folders are not followed, because they may form a
 * loop. */
static int walk(struct lake_sources *s, const char *folder)
{
	char path[PATH_MAX];
	struct dirent *e;
	struct stat st;
	DIR *d = opendir(folder);
	int rc = 0;

	if (!d)
		return say_error(EXIT_UNREADABLE, "%s: %s", folder, strerror(errno));
	while (!rc && (e = readdir(d))) {
		if (e->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= PATH_MAX ||
		    lstat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode))
			rc = walk(s, path);
		else if (is_recording_name(e->d_name) && !stat(path, &st) && S_ISREG(st.st_mode))
			add_path(s, path);
	}
	closedir(d);
	return rc;
}

static int find_files(struct lake_sources *s, char *const *paths)
{
	struct stat st;
	int rc = 0;

	for (; !rc && *paths; paths++) {
		size_t before = s->file_count;

		if (stat(*paths, &st))
			rc = say_error(EXIT_UNREADABLE, "%s: %s", *paths, strerror(errno));
		else if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
			rc = say_error(EXIT_UNREADABLE, "%s: %s", *paths, file_trouble(EINVAL));
		else if (!S_ISDIR(st.st_mode))
			add_path(s, *paths);
		else if (!(rc = walk(s, *paths)) && s->file_count == before)
			rc = say_error(EXIT_UNREADABLE,
				       "%s: no recording (*.gmt) in this folder or below", *paths);
	}
	return rc;
}

/* ---- names ---- */

bool lake_name_is_good(const char *name)
{
	if (!*name || name[0] == '.' || strlen(name) > 100)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	return true;
}

/* Replaces other characters by "_". */
static void tame(char *to, size_t room, const char *name, const char *otherwise)
{
	size_t n = 0;

	for (; *name && n + 1 < room && n < 100; name++)
		to[n++] = isalnum((unsigned char)*name) || strchr("._-", *name) ? *name : '_';
	to[n] = 0;
	if (to[0] == '.')
		to[0] = '_';
	if (!n)
		snprintf(to, room, "%s", otherwise);
}

/* A PyTorch memory snapshot has neither process nor time. */
static int64_t start_of(const struct rank_file *f)
{
	struct stat st;

	return f->pid || stat(f->path, &st) ? f->start_ns : (int64_t)st.st_mtime * 1000000000;
}

/* Holes are passed over: anything may be named here, also a disk image of terabytes. */
static uint64_t hash_file(const char *path)
{
	int fd = file_open(path);
	char buf[1 << 16];
	uint64_t h = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0) {
		off_t at = lseek(fd, 0, SEEK_CUR);

		if (lseek(fd, at, SEEK_DATA) < 0 && errno == ENXIO)
			break;
		n = read(fd, buf, sizeof(buf));
		h = n > 0 ? map_hash(h, buf, (size_t)n) : h;
	}
	if (fd >= 0)
		close(fd);
	return h;
}

/* A snapshot is identified by its contents, because many have the same name, and some the same
 * size. */
static void name_recording(struct lake_place *p, const struct rank_file *f)
{
	char host[100];

	p->rank = f->rank < 0 ? 0 : f->rank;
	tame(host, sizeof(host), f->host, "host");
	if (f->pid) { /* containers reuse process ids, but not ranks */
		snprintf(p->id, sizeof(p->id), "%.60s-%u-%llx-%ld", host, f->pid,
			 (unsigned long long)f->start_ns, p->rank);
		return;
	}
	snprintf(p->id, sizeof(p->id), "snapshot-%016llx", (unsigned long long)hash_file(f->path));
}

/* Named by its first rank: files[from] began first. The job's hash lets ranks that are collected
 * later find it. */
static void name_run(struct lake_place *p, const struct rank_file *first, const char *sign,
		     const char *project)
{
	time_t when = start_of(first) / 1000000000;
	char host[100], clock[32] = "";
	struct tm tm;

	tame(p->project, sizeof(p->project), project ? project : owners_base(first->folder),
	     "unknown");
	if (gmtime_r(&when, &tm)) {
		strftime(p->day, sizeof(p->day), "%Y-%m-%d", &tm);
		strftime(clock, sizeof(clock), "%Y%m%d-%H%M%S", &tm);
	}
	tame(host, sizeof(host), first->host, "host");
	if (first->pid)
		snprintf(p->run, sizeof(p->run), "%s-%.60s-%u%s", clock, host, first->pid, sign);
	else
		snprintf(p->run, sizeof(p->run), "%s-%s", clock, p->id);
}

/* ---- all ---- */

static struct lake_source *same_process(struct lake_sources *s, const char *id)
{
	for (size_t i = s->count; i-- > 0;)
		if (!strcmp(s->items[i].place.id, id))
			return &s->items[i];
	return NULL;
}

/* Keeps the more complete one of two recordings of one process. */
static void add_source(struct lake_sources *s, const struct lake_source *x)
{
	struct lake_source *same = same_process(s, x->place.id);

	if (same) {
		struct lake_worth has = lake_worth_of_file(same->file->path);
		struct lake_worth other = lake_worth_of_file(x->file->path);

		if (lake_worth_more(&other, &has))
			*same = *x;
		return;
	}
	*need_item(s->items, s->count, s->room) = *x;
}

/* A run keeps the name that it has in the lake, and its project if none was given. */
static void add_run(struct lake_sources *s, size_t from, size_t to, bool alone, const char *project)
{
	struct lake_place run = s->names[from];
	char sign[LAKE_SIGN] = "";
	const struct lake_place *old = NULL;

	for (size_t i = from; i < to && !old; i++)
		old = lake_index_find(s, s->names[i].id);
	if (!alone)
		lake_job_sign(sign, &s->files[from]);
	if (!old && !alone)
		old = lake_run_known(s, from, to, sign);
	name_run(&run, &s->files[from], sign, project);
	if (old) {
		memcpy(run.run, old->run, sizeof(run.run));
		memcpy(run.day, old->day, sizeof(run.day));
		if (!project)
			memcpy(run.project, old->project, sizeof(run.project));
	}
	for (size_t i = from; i < to; i++) {
		struct lake_source x = { .place = run, .file = &s->files[i] };

		x.place.rank = s->names[i].rank;
		memcpy(x.place.id, s->names[i].id, sizeof(x.place.id));
		old = lake_index_find(s, x.place.id);
		if (old)
			x.old = *old;
		add_source(s, &x);
	}
}

int lake_sources_find(struct lake_sources *out, char *const *paths)
{
	int rc;

	*out = (struct lake_sources){ 0 };
	rc = find_files(out, paths);
	if (rc) {
		lake_sources_free(out);
		return rc;
	}
	ranks_join_worlds(out->files, out->file_count);
	qsort(out->files, out->file_count, sizeof(*out->files), lake_by_job);
	out->names = need_new((out->file_count + 1) * sizeof(*out->names));
	for (size_t i = 0; i < out->file_count; i++)
		name_recording(&out->names[i], &out->files[i]);
	return 0;
}

void lake_sources_place(struct lake_sources *s, const char *lake, const char *project)
{
	bool *alone = need_new(s->file_count + 1);

	lake_index_read(s, lake);
	for (size_t i = 0; i < s->file_count; i++) {
		const struct rank_file *f = &s->files[i];

		alone[i] =
			f->rank < 0 || f->world == 1 || ranks_is_child(s->files, s->file_count, f);
	}
	for (size_t i = 0, end; i < s->file_count; i = end) {
		end = lake_run_end(s, alone, i);
		add_run(s, i, end, alone[i], project);
	}
	free(alone);
}

void lake_sources_free(struct lake_sources *s)
{
	for (size_t i = 0; i < s->file_count; i++)
		ranks_look_free(&s->files[i]);
	free(s->files);
	free(s->names);
	free(s->items);
	free(s->known);
	*s = (struct lake_sources){ 0 };
}

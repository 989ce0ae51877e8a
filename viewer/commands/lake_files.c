/* SPDX-License-Identifier: Apache-2.0 */
#include "lake.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/ending.h"
#include "../base/map.h"
#include "../base/plain_file.h"
#include "../base/sorted.h"
#include "../ranks/ranks_find.h"
#include "../recording/owners.h"

/* ---- files ---- */

static void add_path(struct lake_files *files, const char *path)
{
	ranks_look(need_item(files->items, files->count, files->room), need_text(path));
}

/* Adds all recordings below a folder. Links to folders are not followed, because they may form a
 * loop. */
static int walk(struct lake_files *files, const char *folder)
{
	char path[PATH_MAX];
	struct dirent *e;
	struct stat st;
	DIR *d = opendir(folder);
	int rc = 0;

	if (!d)
		return say_unreadable("%s: %s", folder, strerror(errno));
	while (!rc && (e = readdir(d))) {
		if (e->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= PATH_MAX ||
		    lstat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode))
			rc = walk(files, path);
		else if (ending_is(e->d_name, ".gmt") && !stat(path, &st) && S_ISREG(st.st_mode))
			add_path(files, path);
	}
	closedir(d);
	return rc;
}

static int add_operand(struct lake_files *files, const char *path)
{
	size_t before = files->count;
	struct stat st;
	int rc = 0;

	if (stat(path, &st))
		return say_unreadable("%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return say_unreadable("%s: %s", path, file_trouble(EINVAL));
	if (!S_ISDIR(st.st_mode))
		add_path(files, path);
	else if (!(rc = walk(files, path)) && files->count == before)
		rc = say_unreadable("%s: no recording (*.gmt) in this folder or below", path);
	return rc;
}

/* ---- runs ---- */

/* Whether two recordings are of one job. If its address is local, the hosts must be the same. */
static bool same_job(const struct rank_file *a, const struct rank_file *b)
{
	return !strcmp(a->job, b->job) && (!a->job_is_local || !strcmp(a->host, b->host));
}

COMPARE(by_job, struct rank_file,
	strcmp(x->job, y->job) ?: strcmp(x->host, y->host) * !same_job(x, y) ?:
	ORDER(x->start_ns, y->start_ns) ?: strcmp(x->path, y->path))

int lake_files_find(struct lake_files *files, char *const *paths)
{
	int rc = 0;

	*files = (struct lake_files){ 0 };
	for (; !rc && *paths; paths++)
		rc = add_operand(files, *paths);
	if (rc)
		return rc;
	ranks_join_worlds(files->items, files->count);
	qsort(files->items, files->count, sizeof(*files->items), by_job);
	return 0;
}

void lake_files_free(struct lake_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		ranks_look_free(&files->items[i]);
	free(files->items);
	*files = (struct lake_files){ 0 };
}

/* Whether recording i is a run by itself, not a rank of a run. */
static bool is_alone(const struct lake_files *files, size_t i)
{
	const struct rank_file *f = &files->items[i];

	return f->rank < 0 || f->world == 1 || ranks_is_child(files->items, files->count, f);
}

/* End (exclusive) of the run that begins with `from`. */
static size_t run_end(const struct lake_files *files, const bool *alone, size_t from)
{
	const struct rank_file *f = files->items;
	size_t to = from + 1;

	while (!alone[from] && to < files->count && !alone[to] && same_job(&f[from], &f[to]))
		to++;
	return ranks_run_end(f, from, to);
}

/* ---- for Python ---- */

/* Skips holes, because the operand might be a sparse file, such as a disk image of terabytes. */
static uint64_t hash_contents(const char *path)
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

/* A snapshot of PyTorch has neither process nor time. A hash of its contents identifies it, because
 * many have the same name and size. */
static void emit_process(struct emit *e, const struct rank_file *f)
{
	struct stat st;
	int64_t start = f->start_ns;
	char contents[24];

	if (!f->pid && !stat(f->path, &st))
		start = (int64_t)st.st_mtime * 1000000000;
	emit_number(e, "pid", f->pid);
	emit_signed(e, "start_ns", f->start_ns);
	emit_signed(e, "started_ns", start);
	if (f->pid)
		return;
	snprintf(contents, sizeof(contents), "%016" PRIx64, hash_contents(f->path));
	emit_text(e, "contents", contents);
}

static void emit_file(struct emit *e, const struct rank_file *f, size_t run, bool alone)
{
	emit_object(e, NULL);
	emit_text(e, "path", f->path);
	emit_number(e, "run", run);
	emit_flag(e, "alone", alone);
	emit_signed(e, "rank", f->rank);
	emit_flag(e, "job_is_local", f->job_is_local);
	emit_process(e, f);
	emit_text(e, "host", f->host);
	emit_text(e, "job", f->job);
	emit_text(e, "folder", owners_base(f->folder));
	emit_end(e);
}

void lake_files_emit(const struct lake_files *files, struct emit *e)
{
	bool *alone = need_new(files->count + 1);

	for (size_t i = 0; i < files->count; i++)
		alone[i] = is_alone(files, i);
	emit_array(e, "files");
	for (size_t i = 0, end = 0, run = 0; i < files->count; i++) {
		if (i == end) {
			end = run_end(files, alone, i);
			run = i;
		}
		emit_file(e, &files->items[i], run, alone[i]);
	}
	emit_end(e);
	free(alone);
}

/* ---- the lake ---- */

bool lake_is_one(const char *path)
{
	char table[PATH_MAX];
	struct stat st;

	return snprintf(table, sizeof(table), "%s/ranks", path) < PATH_MAX && !stat(table, &st) &&
	       S_ISDIR(st.st_mode);
}

bool lake_may_be(const char *path)
{
	return strstr(path, "://") || lake_is_one(path) ||
	       !say_unreadable("%s is no lake: gpumemtrace collect RUNS -o LAKE makes one", path);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/now.h"
#include "../base/say.h"
#include "../base/unfinished.h"
#include "../../format/version.h"
#include "lake.h"
#include "parquet_column.h"

#define TRIES 100 /* another process may remove an empty folder that was just made */

bool lake_path(char path[PATH_MAX], const char *lake, const char *table, const struct lake_place *p)
{
	return snprintf(path, PATH_MAX, "%s/%s/project=%s/day=%s/run=%s/rank=%ld/%s.parquet", lake,
			table, p->project, p->day, p->run, p->rank, p->id) < PATH_MAX;
}

/* A path for an unfinished file, where no reader looks, in the same file system. Processes on
 * different hosts may have the same id, so the name contains the time. */
static bool part_path(const struct lake_writer *w, char path[PATH_MAX], int t)
{
	return snprintf(path, PATH_MAX, "%s/.new/%s.%s.%d-%llx", w->lake, w->place->id,
			lake_tables[t].name, (int)getpid(),
			(unsigned long long)w->began_ns) < PATH_MAX;
}

/* Makes the folders in front of the path's last part. Returns 0 or an errno. */
static int make_folders(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		int rc;

		*at = 0;
		rc = mkdir(path, 0777) && errno != EEXIST ? errno : 0;
		*at = '/';
		if (rc)
			return rc;
	}
	return 0;
}

int lake_make(char *path, int flags, int *fd)
{
	int err = 0;

	for (int i = 0; i < TRIES; i++) {
		err = make_folders(path);
		if (err && err != ENOENT)
			return err;
		*fd = open(path, flags, 0666);
		if (*fd >= 0)
			return 0;
		err = errno;
		if (err != ENOENT)
			break;
	}
	return err;
}

static int open_part(char *path, FILE **f)
{
	int fd, err = lake_make(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, &fd);

	return err ? err : (*f = fdopen(fd, "w")) ? 0 : errno;
}

int lake_rename(const char *from, char *to)
{
	int err = 0;

	for (int i = 0; i < TRIES; i++) {
		err = make_folders(to);
		if (!err && !rename(from, to))
			return 0;
		err = err ? err : errno;
		if (err != ENOENT || access(from, F_OK))
			break;
	}
	return err;
}

/* Selects the requested columns, in the table's order. */
static unsigned choose_columns(struct lake_writer *w, int t)
{
	unsigned n = 0;

	for (unsigned c = 0; c < lake_tables[t].count; c++) {
		if (w->wanted[t] && !(w->wanted[t] >> c & 1))
			continue;
		w->columns[t][n] = (struct parquet_column){ lake_tables[t].columns[c].name,
							    lake_tables[t].columns[c].type };
		w->at[t][c] = (uint8_t)++n;
	}
	return n;
}

static int open_table(struct lake_writer *w, int t, int level)
{
	char path[PATH_MAX];
	int err;

	if (!part_path(w, path, t) || !lake_path(path, w->lake, lake_tables[t].name, w->place))
		return say_error(EXIT_USAGE, "%s: the name of the lake is too long", w->lake);
	part_path(w, path, t);
	unfinished_begin(path);
	err = open_part(path, &w->files[t]);
	if (err) {
		unfinished_end(path);
		return say_error(EXIT_UNREADABLE, "%s: nothing can be written there: %s", w->lake,
				 strerror(err));
	}
	w->tables[t] = parquet_open(w->files[t], w->columns[t], choose_columns(w, t), level);
	parquet_fact(w->tables[t], "gpumemtrace.schema", LAKE_SCHEMA);
	parquet_fact(w->tables[t], "gpumemtrace.version", GMT_TOOL_VERSION);
	return 0;
}

int lake_begin(struct lake_writer *w, unsigned tables, int level)
{
	int rc = 0;

	w->began_ns = now_ns();
	for (int t = 0; t < LAKE_TABLES && !rc; t++)
		if (tables >> t & 1)
			rc = open_table(w, t, level);
	if (rc)
		lake_drop(w);
	return rc;
}

static int close_table(struct lake_writer *w, int t)
{
	bool bad;

	w->empty[t] = t != LAKE_ranks && !parquet_rows(w->tables[t]);
	parquet_close(w->tables[t]);
	w->tables[t] = NULL;
	bad = ferror(w->files[t]);
	bad |= fclose(w->files[t]) != 0;
	w->files[t] = NULL;
	return bad ? say_error(EXIT_UNREADABLE, "%s/%s cannot be written: %s", w->lake,
			       lake_tables[t].name, strerror(errno))
		   : 0;
}

void lake_tidy(char *path)
{
	unlink(path);
	for (unsigned i = 0; i < LAKE_PARTITIONS; i++) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return;
		*slash = 0;
		if (rmdir(path))
			return;
	}
}

/* A table without rows gets no file, and an older file is removed. */
static int give_name(struct lake_writer *w, int t)
{
	char part[PATH_MAX], path[PATH_MAX];
	int err;

	part_path(w, part, t);
	lake_path(path, w->lake, lake_tables[t].name, w->place);
	if (w->empty[t]) {
		unlink(part);
		unfinished_end(part);
		if (!access(path, F_OK))
			lake_tidy(path);
		return 0;
	}
	err = lake_rename(part, path);
	if (!err)
		unfinished_end(part);
	return err ? say_error(EXIT_UNREADABLE, "%s cannot be written: %s", path, strerror(err))
		   : 0;
}

static void remove_part(struct lake_writer *w, int t)
{
	char part[PATH_MAX];

	if (!part_path(w, part, t))
		return;
	unlink(part);
	unfinished_end(part);
}

/* The table of recordings is written last, so that everything it refers to exists. */
int lake_commit(struct lake_writer *w)
{
	unsigned mine = 0;
	int rc = 0;

	for (int t = 0; t < LAKE_TABLES; t++) {
		if (!w->tables[t])
			continue;
		mine |= 1u << t;
		rc = close_table(w, t) ? EXIT_UNREADABLE : rc;
	}
	for (int t = LAKE_TABLES - 1; t >= 0; t--) {
		if (!(mine >> t & 1))
			continue;
		if (!rc)
			rc = give_name(w, t);
		if (rc)
			remove_part(w, t);
	}
	return rc;
}

void lake_drop(struct lake_writer *w)
{
	for (int t = 0; t < LAKE_TABLES; t++) {
		if (w->tables[t])
			parquet_close(w->tables[t]);
		if (w->files[t])
			fclose(w->files[t]);
		if (w->tables[t] || w->files[t])
			remove_part(w, t);
		w->tables[t] = NULL;
		w->files[t] = NULL;
	}
}

/* NULL: the file lacks that column. */
static struct column_values *cell(struct lake_writer *w, enum lake_table_id t, unsigned column)
{
	return w->at[t][column] ? parquet_column(w->tables[t], w->at[t][column] - 1u) : NULL;
}

void lake_int(struct lake_writer *w, enum lake_table_id t, unsigned column, int64_t n)
{
	struct column_values *c = cell(w, t, column);

	if (c)
		column_number(c, n);
}

void lake_flag(struct lake_writer *w, enum lake_table_id t, unsigned column, bool yes)
{
	struct column_values *c = cell(w, t, column);

	if (c)
		column_flag(c, yes);
}

void lake_bytes(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s,
		size_t len)
{
	struct column_values *c = cell(w, t, column);

	if (c && len)
		column_text(c, s, len);
}

void lake_text(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s)
{
	if (s)
		lake_bytes(w, t, column, s, strlen(s));
}

void lake_row(struct lake_writer *w, enum lake_table_id t)
{
	parquet_row(w->tables[t]);
}

void lake_finish(const char *lake)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/.new", lake) < PATH_MAX)
		rmdir(path);
}

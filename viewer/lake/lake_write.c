/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/say.h"
#include "../base/version.h"
#include "lake.h"

static bool name(char *path, const char *lake, const char *table, const struct lake_place *p,
		 const char *before, const char *after)
{
	return snprintf(path, PATH_MAX, "%s/%s/project=%s/day=%s/run=%s/rank=%ld/%s%s%s", lake,
			table, p->project, p->day, p->run, p->rank, before, p->id,
			after) < PATH_MAX;
}

bool lake_path(char path[PATH_MAX], const char *lake, const char *table,
	       const struct lake_place *place)
{
	return name(path, lake, table, place, "", ".parquet");
}

/* No reader takes a file whose name begins with a dot. */
static bool part_path(const struct lake_writer *w, char path[PATH_MAX], int t)
{
	char after[32];

	snprintf(after, sizeof(after), ".%d.new", (int)getpid());
	return name(path, w->lake, lake_tables[t].name, w->place, ".", after);
}

int lake_make_folders(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			return say_error(EXIT_UNREADABLE, "%s: the folder cannot be made: %s", path,
					 strerror(errno));
		*at = '/';
	}
	return 0;
}

/* The file has the columns that are wanted, in the table's order. */
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
	int fd, rc;

	if (!part_path(w, path, t))
		return say_error(EXIT_USAGE, "%s: the name of the lake is too long", w->lake);
	rc = lake_make_folders(path);
	if (rc)
		return rc;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	w->files[t] = fd < 0 ? NULL : fdopen(fd, "w");
	if (!w->files[t])
		return say_error(EXIT_UNREADABLE, "%s cannot be written: %s", path,
				 strerror(errno));
	w->tables[t] = parquet_open(w->files[t], w->columns[t], choose_columns(w, t), level);
	parquet_fact(w->tables[t], "gpumemtrace.schema", LAKE_SCHEMA);
	parquet_fact(w->tables[t], "gpumemtrace.version", VIEWER_VERSION);
	return 0;
}

int lake_begin(struct lake_writer *w, const char *lake, const struct lake_place *place,
	       unsigned tables, int level)
{
	int rc = 0;

	w->lake = lake;
	w->place = place;
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

/* A table without rows has no file, nor one of before. */
static int give_name(struct lake_writer *w, int t)
{
	char part[PATH_MAX], path[PATH_MAX];

	part_path(w, part, t);
	lake_path(path, w->lake, lake_tables[t].name, w->place);
	if (w->empty[t]) {
		unlink(path);
		lake_tidy(part);
		return 0;
	}
	if (!rename(part, path))
		return 0;
	return say_error(EXIT_UNREADABLE, "%s cannot be written: %s", path, strerror(errno));
}

static void remove_part(struct lake_writer *w, int t)
{
	char part[PATH_MAX];

	if (part_path(w, part, t))
		lake_tidy(part);
}

/* The table of recordings comes last: what it names is there. */
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

void lake_int(struct lake_writer *w, enum lake_table_id t, unsigned column, int64_t n)
{
	if (w->at[t][column])
		parquet_int(w->tables[t], w->at[t][column] - 1u, n);
}

void lake_flag(struct lake_writer *w, enum lake_table_id t, unsigned column, bool yes)
{
	if (w->at[t][column])
		parquet_flag(w->tables[t], w->at[t][column] - 1u, yes);
}

void lake_bytes(struct lake_writer *w, enum lake_table_id t, unsigned column, const char *s,
		size_t len)
{
	if (w->at[t][column] && len)
		parquet_text(w->tables[t], w->at[t][column] - 1u, s, len);
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

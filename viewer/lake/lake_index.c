/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_index.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/need.h"

/* Calls a function for each file of a table; false ends the walk. */
struct walk {
	bool (*file)(void *ctx, const struct lake_place *p);
	void *ctx;
	struct lake_place place;
};

static bool read_part(char *to, size_t room, const char *name, const char *key)
{
	size_t n = strlen(key);

	return !strncmp(name, key, n) && name[n] == '=' &&
	       snprintf(to, room, "%s", name + n + 1) < (int)room;
}

/* Reads the part of the place that one folder name holds. */
static bool take_part(struct lake_place *p, unsigned depth, const char *name)
{
	char rank[24];

	switch (depth) {
	case 0:
		return read_part(p->project, sizeof(p->project), name, "project");
	case 1:
		return read_part(p->day, sizeof(p->day), name, "day");
	case 2:
		return read_part(p->run, sizeof(p->run), name, "run");
	default:
		if (!read_part(rank, sizeof(rank), name, "rank"))
			return false;
		p->rank = strtol(rank, NULL, 10);
		return true;
	}
}

static bool take_file(struct lake_place *p, const char *name)
{
	size_t n = strlen(name), end = strlen(".parquet");

	return name[0] != '.' && n > end && !strcmp(name + n - end, ".parquet") &&
	       snprintf(p->id, sizeof(p->id), "%.*s", (int)(n - end), name) < (int)sizeof(p->id);
}

static bool walk(struct walk *w, const char *folder, unsigned depth)
{
	DIR *d = opendir(folder);
	bool more = true;
	struct dirent *e;
	char path[PATH_MAX];

	while (d && more && (e = readdir(d))) {
		if (depth == LAKE_PARTITIONS) {
			if (take_file(&w->place, e->d_name))
				more = w->file(w->ctx, &w->place);
		} else if (take_part(&w->place, depth, e->d_name) &&
			   snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < PATH_MAX) {
			more = walk(w, path, depth + 1);
		}
	}
	if (d)
		closedir(d);
	return more;
}

static bool walk_table(struct walk *w, const char *lake, const char *table)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", lake, table) >= PATH_MAX || walk(w, path, 0);
}

static bool keep(void *ctx, const struct lake_place *p)
{
	struct lake_sources *s = ctx;

	*need_item(s->known, s->known_count, s->known_room) = *p;
	return true;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct lake_place *)a)->id, ((const struct lake_place *)b)->id);
}

void lake_index_read(struct lake_sources *s, const char *lake)
{
	struct walk w = { .file = keep, .ctx = s };

	walk_table(&w, lake, "ranks");
	if (s->known_count)
		qsort(s->known, s->known_count, sizeof(*s->known), by_id);
}

const struct lake_place *lake_index_find(const struct lake_sources *s, const char *id)
{
	struct lake_place key;

	snprintf(key.id, sizeof(key.id), "%s", id);
	return s->known_count ? bsearch(&key, s->known, s->known_count, sizeof(*s->known), by_id)
			      : NULL;
}

static bool stop(void *ctx, const struct lake_place *p)
{
	(void)ctx;
	(void)p;
	return false;
}

bool lake_has(const char *lake, const char *table)
{
	struct walk w = { .file = stop };

	return !walk_table(&w, lake, table);
}

bool lake_is_one(const char *path)
{
	char table[PATH_MAX];
	struct stat st;

	return snprintf(table, sizeof(table), "%s/ranks", path) < PATH_MAX && !stat(table, &st) &&
	       S_ISDIR(st.st_mode);
}

/* ---- moved recordings ---- */

static bool same_place(const struct lake_place *a, const struct lake_place *b)
{
	return !strcmp(a->project, b->project) && !strcmp(a->day, b->day) &&
	       !strcmp(a->run, b->run) && a->rank == b->rank;
}

void lake_move(const char *lake, const struct lake_source *s)
{
	char old[PATH_MAX], new[PATH_MAX];

	if (!s->old.id[0] || same_place(&s->old, &s->place))
		return;
	for (int t = 0; t < LAKE_TABLES; t++) {
		if (!lake_path(old, lake, lake_tables[t].name, &s->old) ||
		    !lake_path(new, lake, lake_tables[t].name, &s->place) || access(old, F_OK))
			continue;
		if (access(new, F_OK))
			lake_rename(old, new);
		lake_tidy(old); /* it has moved, or there is a newer one */
	}
}

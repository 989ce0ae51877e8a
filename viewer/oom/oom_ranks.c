/* SPDX-License-Identifier: Apache-2.0 */
#include "oom_ranks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/need.h"
#include "../base/say.h"

static struct rank *add(struct ranks *all, char *path)
{
	all->items = need_grow(all->items, &all->room, all->count, sizeof(*all->items));
	all->items[all->count] = (struct rank){ .path = path };
	return &all->items[all->count++];
}

static bool ends_with(const char *s, const char *end)
{
	size_t a = strlen(s), b = strlen(end);

	return a > b && !strcmp(s + a - b, end);
}

static char *join(const char *folder, const char *name)
{
	size_t n = strlen(folder) + strlen(name) + 2;
	char *path = need_new(n);

	snprintf(path, n, "%s/%s", folder, name);
	return path;
}

static int list(struct ranks *all, const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	if (!d)
		return say_error(EXIT_UNREADABLE, "%s: %s", folder, strerror(errno));
	while ((e = readdir(d)))
		if (ends_with(e->d_name, ".gmt"))
			add(all, join(folder, e->d_name));
	closedir(d);
	if (!all->count)
		return say_error(EXIT_UNREADABLE, "%s: no recording (*.gmt) in this folder",
				 folder);
	return 0;
}

static void name_rank(struct rank *x, const struct recording *r)
{
	static const char *const keys[] = { "env.RANK", "env.OMPI_COMM_WORLD_RANK",
					    "env.SLURM_PROCID" };

	snprintf(x->name, sizeof(x->name), "process %u", r->info->pid);
	for (size_t i = sizeof(keys) / sizeof(keys[0]); i-- > 0;) {
		struct defs_text t = defs_meta(&r->defs, keys[i]);

		if (t.len)
			snprintf(x->name, sizeof(x->name), "rank %.10s", t.s);
	}
}

static int look(struct rank *x, uint64_t nth)
{
	struct recording r;
	int rc = recording_open(&r, x->path);

	if (rc)
		return rc;
	x->failed = oom_find(&x->refusal, &r, nth, &rc);
	x->wall_ns = (int64_t)x->refusal.event.time_ns + r.info->realtime_minus_monotonic_ns;
	name_rank(x, &r);
	recording_close(&r);
	return rc;
}

static int by_time(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->failed != y->failed)
		return x->failed ? -1 : 1;
	if (x->failed && x->wall_ns != y->wall_ns)
		return x->wall_ns < y->wall_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

int ranks_find(struct ranks *out, const char *path, uint64_t nth)
{
	struct stat st;
	size_t bad = 0;
	int rc = 0;

	*out = (struct ranks){ 0 };
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		rc = list(out, path);
	else
		add(out, need_copy(path, strlen(path)));
	for (size_t i = 0; i < out->count; i++) {
		int err = look(&out->items[i], nth);

		out->failed += out->items[i].failed;
		bad += err != 0;
		rc = err ? err : rc;
	}
	/* Of a rank that was killed early nothing may be left; the others still tell. */
	if (bad < out->count)
		rc = 0;
	if (!rc)
		qsort(out->items, out->count, sizeof(*out->items), by_time);
	else
		ranks_free(out);
	return rc;
}

void ranks_free(struct ranks *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->items[i].path);
	free(r->items);
	*r = (struct ranks){ 0 };
}

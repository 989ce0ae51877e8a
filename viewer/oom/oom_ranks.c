/* SPDX-License-Identifier: Apache-2.0 */
#include "oom_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../ranks/ranks_look.h"

static void add(struct oom_ranks *all, char *path)
{
	all->items = need_grow(all->items, &all->room, all->count, sizeof(*all->items));
	all->items[all->count++] = (struct oom_rank){ .path = path };
}

static void name_rank(struct oom_rank *x, const struct recording *r)
{
	struct rank_file f;

	ranks_look(&f, need_copy(x->path, strlen(x->path)));
	if (f.rank >= 0)
		snprintf(x->name, sizeof(x->name), "%s", f.name);
	else
		snprintf(x->name, sizeof(x->name), "process %u", r->info->pid);
	ranks_look_free(&f);
}

static int look(struct oom_rank *x, uint64_t nth)
{
	struct recording r;
	int rc = recording_open(&r, x->path);

	if (rc)
		return rc;
	x->failed = oom_find(&x->refusal, &r, nth, &x->values, &rc);
	x->wall_ns = (int64_t)x->refusal.event.time_ns + r.info->realtime_minus_monotonic_ns;
	name_rank(x, &r);
	recording_close(&r);
	return rc;
}

static int by_time(const void *a, const void *b)
{
	const struct oom_rank *x = a, *y = b;

	if (x->failed != y->failed)
		return x->failed ? -1 : 1;
	if (x->failed && x->wall_ns != y->wall_ns)
		return x->wall_ns < y->wall_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

int oom_ranks_find(struct oom_ranks *out, char *const *paths, uint64_t nth)
{
	size_t bad = 0;
	int rc = 0;

	*out = (struct oom_ranks){ 0 };
	for (; *paths; paths++)
		add(out, need_copy(*paths, strlen(*paths)));
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
		oom_ranks_free(out);
	return rc;
}

void oom_ranks_free(struct oom_ranks *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->items[i].path);
		values_free(&r->items[i].values);
	}
	free(r->items);
	*r = (struct oom_ranks){ 0 };
}

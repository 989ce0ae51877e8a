/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/ending.h"
#include "../ranks/ranks_differ.h"
#include "../ranks/ranks_runs.h"

/* ---- recordings of one call ---- */

/* Whether two recordings are of one job, where many runs lie together. If the job's address is
 * local, recordings of other hosts are of other jobs. */
static bool same_job(const struct rank_file *a, const struct rank_file *b)
{
	return !strcmp(a->job, b->job) && (!a->job_is_local || !strcmp(a->host, b->host));
}

int lake_by_job(const void *a, const void *b)
{
	const struct rank_file *x = a, *y = b;
	int n = strcmp(x->job, y->job);

	n = n ? n : strcmp(x->host, y->host) * (same_job(x, y) ? 0 : 1);
	if (n)
		return n;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

size_t lake_run_end(const struct lake_sources *s, const bool *alone, size_t from)
{
	size_t to = from + 1;

	while (!alone[from] && to < s->file_count && !alone[to] &&
	       same_job(&s->files[from], &s->files[to]))
		to++;
	return ranks_run_end(s->files, from, to);
}

/* ---- recordings of an earlier call ---- */

static uint32_t hash(uint32_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

void lake_job_sign(char sign[LAKE_SIGN], const struct rank_file *f)
{
	uint32_t h = hash(2166136261u, f->job);

	snprintf(sign, LAKE_SIGN, "-%08x", f->job_is_local ? hash(h, f->host) : h);
}

/* A recording's name ends with its start and its rank. */
static int64_t start_of(const struct lake_place *p)
{
	const char *end = strrchr(p->id, '-'), *from = end;

	while (from && from > p->id && from[-1] != '-')
		from--;
	return from && from > p->id ? (int64_t)strtoull(from, NULL, 16) : INT64_MIN / 2;
}

static bool rank_is_free(const struct lake_sources *s, const struct lake_place *run, size_t from,
			 size_t to)
{
	for (size_t k = 0; k < s->known_count; k++)
		for (size_t i = from; i < to; i++)
			if (s->known[k].rank == s->files[i].rank &&
			    !strcmp(s->known[k].run, run->run) &&
			    !strcmp(s->known[k].project, run->project))
				return false;
	return true;
}

const struct lake_place *lake_run_known(const struct lake_sources *s, size_t from, size_t to,
					const char *sign)
{
	const struct lake_place *best = NULL;
	int64_t least = RANKS_LONGEST_START;

	for (size_t k = 0; k < s->known_count; k++) {
		const struct lake_place *p = &s->known[k];
		int64_t away = ending_is(p->run, sign)
				       ? llabs(s->files[from].start_ns - start_of(p))
				       : least;

		if (away < least && rank_is_free(s, p, from, to)) {
			least = away;
			best = p;
		}
	}
	return best;
}

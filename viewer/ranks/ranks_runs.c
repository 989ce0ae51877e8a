/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks_runs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/need.h"
#include "../base/say.h"
#include "../stacks/owners.h"

void ranks_leave(struct ranks_run *run, char *path)
{
	*need_item(run->left, run->left_count, run->left_room) = path;
}

#define SHOWN 3 /* runs and files that a note names */

static void add_note(struct ranks_run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_note(struct ranks_run *run, const char *format, ...)
{
	size_t n = strlen(run->note);
	va_list args;

	va_start(args, format);
	vsnprintf(run->note + n, sizeof(run->note) - n, format, args);
	va_end(args);
}

static void take_out(struct ranks_run *run, size_t i)
{
	struct rank_file *f = &run->items[i];

	ranks_leave(run, f->path);
	f->path = NULL;
	ranks_look_free(f);
	memmove(f, f + 1, (--run->count - i) * sizeof(*f));
}

static bool same_host(const struct rank_file *a, const struct rank_file *b)
{
	return !strcmp(a->host, b->host);
}

/* A launcher that gives all processes one number numbers something else: a batch script's number of
 * its only task stands in everything that the script starts. */
static void drop_equal_numbers(struct ranks_run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		struct rank_file *f = &run->items[i];
		bool equal = false;

		for (size_t k = i + 1; k < run->count && run->items[k].rank == f->rank; k++) {
			struct rank_file *g = &run->items[k];

			if (f->rank < 0 || f->by_script || g->by_script || g->parent != f->parent ||
			    !same_host(f, g))
				continue;
			equal = true;
			g->rank = -1;
			ranks_name(g);
		}
		if (equal) {
			f->rank = -1;
			ranks_name(f);
		}
	}
}

/* What a rank starts inherits its number: an evaluation in a process of its own, for instance. */
bool ranks_is_child(const struct rank_file *items, size_t count, const struct rank_file *f)
{
	for (size_t i = 0; i < count; i++) {
		const struct rank_file *g = &items[i];

		if (g != f && f->rank >= 0 && g->rank == f->rank && g->pid == f->parent &&
		    same_host(f, g))
			return true;
	}
	return false;
}

static void leave_children(struct ranks_run *run)
{
	for (size_t i = 0; i < run->count;) {
		struct rank_file *f = &run->items[i];

		if (!ranks_is_child(run->items, run->count, f)) {
			i++;
			continue;
		}
		add_note(run, "%s is of a process that rank %ld started, and is left out. ",
			 owners_base(f->path), f->rank);
		take_out(run, i);
	}
}

static bool any_rank(const struct ranks_run *run)
{
	for (size_t i = 0; i < run->count; i++)
		if (run->items[i].rank >= 0)
			return true;
	return false;
}

static void leave_unranked(struct ranks_run *run)
{
	size_t out = 0;
	char first[200] = "";

	for (size_t i = 0; i < run->count;) {
		struct rank_file *f = &run->items[i];

		if (f->rank >= 0 || !f->readable) {
			i++;
			continue;
		}
		if (!out++)
			snprintf(first, sizeof(first), "%.190s", owners_base(f->path));
		take_out(run, i);
	}
	if (out == 1)
		add_note(run, "%s has no rank and is left out. ", first);
	else if (out)
		add_note(run, "%zu recordings without a rank are left out, %s first. ", out, first);
}

/* ---- several runs in one folder ---- */

static int by_job_and_start(const void *a, const void *b)
{
	const struct rank_file *x = a, *y = b;
	int jobs;

	if (x->readable != y->readable)
		return x->readable ? -1 : 1;
	jobs = strcmp(x->job, y->job);
	if (jobs)
		return jobs;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* At a port that two ranks have they met. */
void ranks_join_worlds(struct rank_file *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rank_file *f = &items[i];
		bool single = f->world_job;

		for (size_t k = 0; k < count && single; k++)
			single = items[k].rank == f->rank || strcmp(items[k].job, f->job) != 0;
		if (!single)
			continue;
		free(f->job);
		f->job = f->world_job;
		f->world_job = NULL;
		f->by_itself = true;
	}
}

/* Of the items from..to the end (not in it) of the first run: where the job ends, or, if a rank
 * comes twice before that, at the longest pause between the two. */
size_t ranks_run_end(const struct rank_file *items, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (strcmp(items[i].job, items[from].job))
			return i;
		for (size_t k = from; k < i; k++) {
			size_t cut = k + 1;

			if (items[k].rank != items[i].rank)
				continue;
			for (size_t c = k + 1; c <= i; c++)
				if (items[c].start_ns - items[c - 1].start_ns >
				    items[cut].start_ns - items[cut - 1].start_ns)
					cut = c;
			return cut;
		}
	}
	return to;
}

struct part {
	size_t from, to;
};

static void say_run(struct ranks_run *run, const struct part *p)
{
	const struct rank_file *f = &run->items[p->from];
	time_t when = f->start_ns / 1000000000;
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&when, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	add_note(run, "%zu recording%s of %s UTC (%.60s)", p->to - p->from,
		 p->to - p->from == 1 ? "" : "s", text, f->command);
}

/* The runs by their beginning; the last one stays. */
static void keep_last(struct ranks_run *run, const struct part *parts, size_t count)
{
	size_t last = 0, to;

	for (size_t i = 1; i < count; i++)
		if (run->items[parts[i].from].start_ns > run->items[parts[last].from].start_ns)
			last = i;
	add_note(run, "%zu runs are in this folder: ", count);
	for (size_t i = 0; i < count && i < SHOWN; i++) {
		add_note(run, "%s", i ? ", " : "");
		say_run(run, &parts[i]);
	}
	add_note(run, "%s. The last one is taken: ", count > SHOWN ? ", .." : "");
	say_run(run, &parts[last]);
	add_note(run, "; for another one name its files. ");
	to = parts[count - 1].to;
	for (size_t i = to; i-- > 0;)
		if (i < parts[last].from || i >= parts[last].to)
			take_out(run, i);
}

static void keep_one_run(struct ranks_run *run)
{
	struct part *parts = need_new((run->count + 1) * sizeof(*parts));
	size_t count = 0, at = 0, to = 0;

	qsort(run->items, run->count, sizeof(*run->items), by_job_and_start);
	while (to < run->count && run->items[to].readable)
		to++;
	while (at < to) {
		parts[count].from = at;
		parts[count].to = at = ranks_run_end(run->items, at, to);
		count++;
	}
	if (count > 1)
		keep_last(run, parts, count);
	free(parts);
}

static int two_of_one_rank(const struct ranks_run *run)
{
	for (size_t i = 1; i < run->count; i++) {
		const struct rank_file *a = &run->items[i - 1], *b = &run->items[i];

		if (a->rank >= 0 && a->rank == b->rank)
			return say_error(EXIT_USAGE,
					 "%s and %s are both of rank %ld: two runs. Name the files "
					 "of one, or compare them: gpumemtrace diff OLD NEW",
					 a->path, b->path, a->rank);
	}
	return 0;
}

/* ---- files that cannot be read ---- */

static bool is_taken(const struct ranks_run *run, long rank)
{
	for (size_t i = 0; i < run->count; i++)
		if (run->items[i].rank == rank)
			return true;
	return false;
}

/* The number in the name of `of` where `like` has its rank, or -1. */
static long number_like(const struct rank_file *like, const char *of)
{
	const char *name = owners_base(like->path), *at;
	char rank[24], *end;
	long n;

	snprintf(rank, sizeof(rank), "%ld", like->rank);
	for (at = strstr(name, rank); at; at = strstr(at + 1, rank)) {
		if (strncmp(name, of, (size_t)(at - name)))
			return -1;
		n = strtol(of + (at - name), &end, 10);
		if (end > of + (at - name) && n >= 0 && !strcmp(end, at + strlen(rank)))
			return n;
	}
	return -1;
}

static void rank_by_name(struct ranks_run *run, struct rank_file *f)
{
	for (size_t i = 0; i < run->count && f->rank < 0; i++) {
		const struct rank_file *like = &run->items[i];
		long n = like->readable && like->rank >= 0 ? number_like(like, owners_base(f->path))
							   : -1;

		if (n >= 0 && !is_taken(run, n))
			f->rank = n;
	}
	ranks_name(f);
}

int ranks_one_run(struct ranks_run *run, bool folders)
{
	int rc = 0;

	drop_equal_numbers(run);
	if (folders && any_rank(run)) {
		leave_children(run);
		leave_unranked(run);
		ranks_join_worlds(run->items, run->count);
		keep_one_run(run);
	} else if (!folders) {
		rc = two_of_one_rank(run);
	}
	for (size_t i = 0; i < run->count && !rc; i++)
		if (!run->items[i].readable)
			rank_by_name(run, &run->items[i]);
	return rc;
}

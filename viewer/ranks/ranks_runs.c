/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks_find.h"

#include <time.h>

#include "../base/sorted.h"
#include "../recording/owners.h"
#include "ranks_look.h"

void ranks_leave(struct ranks_run *run, char *path)
{
	*need_item(run->left, run->left_count, run->left_room) = path;
}

#define SHOWN 3 /* runs and files that a note names */

#define add_note(run, ...) text_add((run)->note, sizeof((run)->note), __VA_ARGS__)

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

/* Ignores rank numbers if all processes have the same one. Such a number is not a rank: a batch
 * script's only task has a number too, which everything that it starts inherits. */
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

/* Whether the process was started by a rank, whose number it inherits: an evaluation in its own
 * process, for instance. */
bool ranks_is_child(const struct rank_file *items, size_t count, const struct rank_file *f)
{
	return ANY_OF(g, items, count,
		      g != f && f->rank >= 0 && g->rank == f->rank && g->pid == f->parent &&
			      same_host(f, g));
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

static bool has_rank(const struct ranks_run *run, size_t operand)
{
	return ANY_OF(x, run->items, run->count, x->rank >= 0 && x->operand == operand);
}

/* Leaves out recordings without a rank. each: only those whose path has one with a rank. */
static void leave_unranked(struct ranks_run *run, bool each)
{
	size_t out = 0;
	char first[200] = "";

	for (size_t i = 0; i < run->count;) {
		struct rank_file *f = &run->items[i];

		if (f->rank >= 0 || !f->readable || (each && !has_rank(run, f->operand))) {
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

/* ---- several runs in the given folders ---- */

static bool met_at_home(const struct rank_file *f)
{
	return f->job_is_local && !f->by_itself && ranks_is_local(f->facts[JOB_MASTER_ADDR]);
}

/* Whether two recordings are of one job. A job with a local address is on one host. */
static bool same_job(const struct rank_file *a, const struct rank_file *b)
{
	return !strcmp(a->job, b->job) && (!met_at_home(a) || !met_at_home(b) || same_host(a, b));
}

COMPARE(by_job_and_start, struct rank_file,
	ORDER(y->readable, x->readable) ?: ORDER(x->rank < 0, y->rank < 0) ?:
	strcmp(x->job, y->job) ?: (same_job(x, y) ? 0 : strcmp(x->host, y->host)) ?:
	ORDER(x->start_ns, y->start_ns))

/* Recordings without a known start stand last. */
COMPARE(by_start, struct rank_file,
	ORDER(!x->start_ns, !y->start_ns) ?: ORDER(x->start_ns, y->start_ns) ?:
	strverscmp(x->path, y->path))

/* Ranks that share a port ran together and keep their job. A rank that shares its port with no
 * other was simulated alone, so the port is removed from its job. */
void ranks_join_worlds(struct rank_file *items, size_t count)
{
	FOR_EACH (struct rank_file, f, items, count) {
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

/* A run ends where the job changes or the next rank began much later. If a rank occurs twice before
 * that, the run ends at the longest pause between the two. */
size_t ranks_run_end(const struct rank_file *items, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (i > from && (!same_job(&items[i], &items[from]) ||
				 ranks_began_apart(&items[i - 1], &items[i])))
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
	bool kept;
};

static void say_run(struct ranks_run *run, const struct part *p)
{
	const struct rank_file *f = &run->items[p->from];
	time_t when = f->start_ns / 1000000000;
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&when, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	add_note(run, "%zu recording%s of %s UTC", p->to - p->from, p->to - p->from == 1 ? "" : "s",
		 text);
	if (f->command[0])
		add_note(run, " (%.60s)", f->command);
}

#define ANY_PATH SIZE_MAX

/* The run that began last, among those with a recording of this path. */
static struct part *last_of(const struct ranks_run *run, struct part *parts, size_t count,
			    size_t operand)
{
	return GREATEST_OF(x, parts, count,
			   operand == ANY_PATH || ANY_OF(f, &run->items[x->from], x->to - x->from,
							 f->operand == operand),
			   (uint64_t)run->items[x->from].start_ns);
}

/* Marks the run that began last in each path; returns how many those are. */
static size_t mark_last(const struct ranks_run *run, struct part *parts, size_t count, size_t paths)
{
	size_t kept = 0;

	for (size_t k = 0; k < paths; k++) {
		struct part *last = last_of(run, parts, count, k);

		if (last && !last->kept)
			kept++;
		if (last)
			last->kept = true;
	}
	return kept;
}

static void note_runs(struct ranks_run *run, struct part *parts, size_t count, size_t kept,
		      size_t paths)
{
	add_note(run, "%zu runs are in %s: ", count, paths > 1 ? "these folders" : "this folder");
	for (size_t i = 0; i < count && i < SHOWN; i++) {
		add_note(run, "%s", i ? ", " : "");
		say_run(run, &parts[i]);
	}
	if (kept > 1) {
		add_note(run, "%s. Of each folder the last one is taken",
			 count > SHOWN ? ", .." : "");
	} else {
		add_note(run, "%s. The last one is taken: ", count > SHOWN ? ", .." : "");
		say_run(run, last_of(run, parts, count, ANY_PATH));
	}
	add_note(run, "; for another one name its files. ");
}

/* Keeps the run that began last, or the last one of each path. */
static void keep_last(struct ranks_run *run, struct part *parts, size_t count, size_t paths,
		      enum ranks_meant meant)
{
	size_t kept = 1;

	if (meant == RANKS_EVERY)
		kept = mark_last(run, parts, count, paths);
	else
		last_of(run, parts, count, ANY_PATH)->kept = true;
	if (kept < count)
		note_runs(run, parts, count, kept, paths);
	for (size_t i = count; i-- > 0;)
		for (size_t k = parts[i].to; !parts[i].kept && k-- > parts[i].from;)
			take_out(run, k);
	run->runs = kept;
}

/* Splits the recordings into runs and keeps the wanted ones. Recordings without a rank stand at the
 * end, each by itself. */
static void keep_runs(struct ranks_run *run, size_t paths, enum ranks_meant meant)
{
	struct part *parts = need_new((run->count + 1) * sizeof(*parts));
	size_t count = 0, at = 0, to = 0;

	qsort(run->items, run->count, sizeof(*run->items), by_job_and_start);
	while (to < run->count && run->items[to].readable && run->items[to].rank >= 0)
		to++;
	while (at < to) {
		parts[count].from = at;
		parts[count].to = at = ranks_run_end(run->items, at, to);
		count++;
	}
	if (count > 1)
		keep_last(run, parts, count, paths, meant);
	free(parts);
	for (size_t k = 0; k < paths && meant == RANKS_EVERY; k++)
		for (size_t i = 0; i < run->count; i++)
			if (run->items[i].operand == k && run->items[i].readable &&
			    !has_rank(run, k)) {
				run->runs++;
				break;
			}
}

/* Joins run `from` to run `to`. */
static void join_runs(size_t *number, size_t count, size_t from, size_t to)
{
	for (size_t i = 0; i < count; i++)
		number[i] = number[i] == from ? to : number[i];
}

/* Gives each recording the number of its run. Recordings that do not differ are of one run. */
static void number_runs(const struct rank_file *items, size_t count, size_t *number)
{
	char why[768];

	for (size_t i = 0; i < count; i++) {
		number[i] = i;
		for (size_t k = 0; k < i; k++)
			if (number[k] != number[i] &&
			    !ranks_differ(&items[k], &items[i], why, sizeof(why)))
				join_runs(number, i + 1, number[i], number[k]);
	}
}

/* Puts the recordings of each run next to each other. Returns the number of runs. */
static size_t gather_runs(struct ranks_run *run, size_t count, struct part *parts)
{
	struct rank_file *sorted = need_new((count + 1) * sizeof(*sorted));
	size_t *number = need_new((count + 1) * sizeof(*number));
	size_t at = 0, found = 0;

	number_runs(run->items, count, number);
	for (size_t n = 0; n < count; n++) {
		size_t from = at;

		for (size_t i = 0; i < count; i++)
			if (number[i] == n)
				sorted[at++] = run->items[i];
		if (at > from)
			parts[found++] = (struct part){ .from = from, .to = at };
	}
	memcpy(run->items, sorted, count * sizeof(*sorted));
	free(number);
	free(sorted);
	return found;
}

/* Keeps the wanted runs of recordings without a rank: processes of one program, and their child
 * processes. Files without a known start might be of any run and are kept. */
static void keep_runs_of_processes(struct ranks_run *run, size_t paths, enum ranks_meant meant)
{
	struct part *parts = need_new((run->count + 1) * sizeof(*parts));
	size_t known = 0, count;

	qsort(run->items, run->count, sizeof(*run->items), by_start);
	while (known < run->count && run->items[known].start_ns)
		known++;
	count = gather_runs(run, known, parts);
	if (count > 1)
		keep_last(run, parts, count, paths, meant);
	free(parts);
}

/* Two neighbours with the same rank; NULL: none. */
static const struct rank_file *two_of_one_rank(const struct ranks_run *run)
{
	for (size_t i = 1; i < run->count; i++)
		if (run->items[i - 1].rank >= 0 && run->items[i - 1].rank == run->items[i].rank)
			return &run->items[i - 1];
	return NULL;
}

/* For files given by name: notes the first difference between runs. */
static void note_different(struct ranks_run *run)
{
	ranks_join_worlds(run->items, run->count);
	for (size_t i = 1; i < run->count && !run->differ[0]; i++)
		if (!ranks_differ(&run->items[0], &run->items[i], run->differ, sizeof(run->differ)))
			run->differ[0] = 0;
	if (run->differ[0])
		add_note(run, "These files are of different runs: %s. ", run->differ);
}

static int look_at_files(struct ranks_run *run, enum ranks_meant meant)
{
	const struct rank_file *two = two_of_one_rank(run);

	if (!two) {
		note_different(run);
	} else if (meant == RANKS_EVERY) {
		add_note(run, "%s and %s are both of rank %ld: two runs. ", two[0].path,
			 two[1].path, two[0].rank);
		run->runs = 2;
	} else {
		return say_usage("%s and %s are both of rank %ld: two runs. Name the files of one, "
				 "or compare them: gpumemtrace diff OLD NEW",
				 two[0].path, two[1].path, two[0].rank);
	}
	return 0;
}

/* With several runs each row names its run: the given path without the folders that all paths
 * share. */
static void name_runs(struct ranks_run *run, char *const *paths)
{
	size_t common = strlen(paths[0]), slash = 0;

	for (size_t k = 1; paths[k]; k++) {
		size_t n = 0;

		while (n < common && paths[k][n] == paths[0][n])
			n++;
		common = n;
	}
	for (size_t i = 0; i < common; i++)
		if (paths[0][i] == '/' && i + 1 < strlen(paths[0]))
			slash = i + 1;
	FOR_EACH (struct rank_file, f, run->items, run->count) {
		f->of = paths[f->operand] + (slash < strlen(paths[f->operand]) ? slash : 0);
		f->of_is_folder = strcmp(f->path, paths[f->operand]) != 0;
	}
}

/* ---- files that cannot be read ---- */

static bool is_taken(const struct ranks_run *run, long rank, size_t operand)
{
	return ANY_OF(x, run->items, run->count,
		      x->rank == rank && (run->runs == 1 || x->operand == operand));
}

/* The number in the name `of` at the position where `like` has its rank, or -1. */
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

		if (n >= 0 && !is_taken(run, n, f->operand))
			f->rank = n;
	}
	ranks_name(f);
}

int ranks_one_run(struct ranks_run *run, char *const *paths, bool folders, enum ranks_meant meant)
{
	size_t given = need_count(paths);
	int rc = 0;

	drop_equal_numbers(run);
	if (folders && ANY_OF(x, run->items, run->count, x->rank >= 0)) {
		leave_children(run);
		leave_unranked(run, meant == RANKS_EVERY);
		ranks_join_worlds(run->items, run->count);
		keep_runs(run, given, meant);
	} else if (folders) {
		keep_runs_of_processes(run, given, meant);
	} else {
		rc = look_at_files(run, meant);
	}
	for (size_t i = 0; i < run->count && !rc; i++)
		if (!run->items[i].readable)
			rank_by_name(run, &run->items[i]);
	if (run->runs > 1)
		name_runs(run, paths);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "of_ranks.h"

#include <sys/stat.h>

#include "../base/shell.h"
#include "../classes/classify.h"
#include "../ranks/ranks_find.h"
#include "../ranks/ranks_print.h"
#include "../recording/owners.h"

/* The names of the files that a command writes into a folder, one for each recording: no two are
 * alike, so that none is written over. */

/* State while names are made: each contains this many folders of its path. */
struct naming {
	const struct ranks_run *run;
	char **names;
	unsigned *folders;
};

/* "run.4711.gmt" and "run.4711.gmt.live" -> the length of "run.4711"; "x.pickle" -> of "x". */
static size_t without_ending(const char *name, size_t len)
{
	static const char live[] = ".live";
	const size_t n = sizeof(live) - 1;
	const char *dot;

	if (len > n && !memcmp(name + len - n, live, n))
		len -= n;
	dot = memrchr(name, '.', len);
	return dot && dot > name ? (size_t)(dot - name) : len;
}

/* The part of the path from its last `count` folders on; fewer if it has fewer. */
static const char *last_folders(const char *path, unsigned count)
{
	const char *at = owners_base(path);

	for (; count && at > path; count--) {
		const char *end = at - 1;

		while (end > path && end[-1] == '/')
			end--;
		while (end > path && end[-1] != '/')
			end--;
		if (*end == '/' || *end == '.')
			break;
		at = end;
	}
	return at;
}

static char *file_name_of(const struct rank_file *f, unsigned folders)
{
	const char *from = last_folders(f->path, folders), *base = owners_base(f->path);
	size_t before = (size_t)(base - from), room = strlen(from) + 32;
	char *name = need_new(room);

	snprintf(name, room, "%.*s", (int)before, from);
	for (char *slash = name; (slash = strchr(slash, '/'));)
		*slash = '-';
	if (f->rank >= 0)
		snprintf(name + before, room - before, "rank-%ld", f->rank);
	else
		snprintf(name + before, room - before, "%.*s",
			 (int)without_ending(base, strlen(base)), base);
	return name;
}

static bool is_alone(const struct naming *n, size_t i)
{
	for (size_t k = 0; k < n->run->count; k++)
		if (k != i && !strcmp(n->names[k], n->names[i]))
			return false;
	return true;
}

/* Adds one more folder to names that are not unique. False: there is none left to add. */
static bool widen(struct naming *n)
{
	size_t count = n->run->count;
	bool *twice = need_new(count + 1), more = false;

	for (size_t i = 0; i < count; i++)
		twice[i] = !is_alone(n, i);
	for (size_t i = 0; i < count; i++) {
		char *name = twice[i] ? file_name_of(&n->run->items[i], ++n->folders[i]) : NULL;

		if (!name)
			continue;
		more |= strcmp(name, n->names[i]) != 0;
		free(n->names[i]);
		n->names[i] = name;
	}
	free(twice);
	return more;
}

/* Numbers equal names ("run", "run-2"), for instance of a file that was given twice. */
static void number_equal_names(struct naming *n)
{
	for (size_t i = 0; i < n->run->count; i++) {
		size_t room = strlen(n->names[i]) + 24;
		char *first = n->names[i];

		for (unsigned k = 2; i && !is_alone(n, i); k++) {
			char *name = need_new(room);

			snprintf(name, room, "%s-%u", first, k);
			if (n->names[i] != first)
				free(n->names[i]);
			n->names[i] = name;
		}
		if (n->names[i] != first)
			free(first);
	}
}

/* "out/rank-3.csv"; of a recording that says no rank its own name, "out/run.csv", and with the
 * folders that it lies in where several would be alike: "out/node1-run.csv". As many as the run has
 * recordings. */
static char **output_names(const struct ranks_run *run, const char *folder, const char *ending)
{
	struct naming n = { run, need_new((run->count + 1) * sizeof(*n.names)),
			    need_new((run->count + 1) * sizeof(*n.folders)) };
	size_t len = strlen(folder);

	len -= len > 1 && folder[len - 1] == '/';
	for (size_t i = 0; i < run->count; i++)
		n.names[i] = file_name_of(&run->items[i], 0);
	while (widen(&n))
		;
	number_equal_names(&n);
	for (size_t i = 0; i < run->count; i++) {
		size_t room = len + strlen(n.names[i]) + strlen(ending) + 3;
		char *path = need_new(room);

		snprintf(path, room, "%.*s/%s.%s", (int)len, folder, n.names[i], ending);
		free(n.names[i]);
		n.names[i] = path;
	}
	free(n.folders);
	return n.names;
}

static void output_names_free(char **names, size_t count)
{
	for (size_t i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}

/* ---- a row for each ---- */

struct rows {
	const struct command *command;
	void *options;
	struct emit *out;
	struct ranks_table table;
	char **outputs; /* one file name per rank, for a command that writes files */
};

/* The output folder of a command that writes one file per rank; made if its name ends with a
 * slash. */
static bool has_folder(const struct command *c, void *options)
{
	const char *output = c->output ? *options_text(options, c->output) : NULL;
	struct stat st;
	size_t len = output ? strlen(output) : 0;

	if (len && output[len - 1] == '/')
		mkdir(output, 0777);
	return len && *options_text(options, c->format) && !stat(output, &st) &&
	       S_ISDIR(st.st_mode);
}

static int answer_rank(void *ctx, size_t i, FILE *f)
{
	struct rows *r = ctx;
	const char *path = r->table.run->items[i].path;
	struct emit *out = emit_open(f, true);
	int rc;

	*options_text(r->options, r->command->file) = path;
	if (r->outputs)
		*options_text(r->options, r->command->output) = r->outputs[i];
	if (r->command->with_peak)
		*(bool *)((char *)r->options + r->command->with_peak) = true;
	rc = command_perform(r->command, r->options, out);
	emit_close(out);
	return rc;
}

static void note_rank(void *ctx, size_t i, const struct ranks_result *result)
{
	struct rows *r = ctx;

	ranks_table_add(&r->table, i, result);
	if (emit_json(r->out))
		ranks_print_row(r->out, &r->table.rows[i], result);
}

/* The worst exit code of all rows; without rows, the first recording's. For verify, an unreadable
 * recording counts as a failed check. */
static int worst_code(const struct rows *r, bool *any)
{
	const struct ranks_table *t = &r->table;
	bool check = r->command == &command_verify;
	int rc = EXIT_OK;

	*any = false;
	FOR_EACH (const struct ranks_row, row, t->rows, t->run->count) {
		*any |= row->fine;
		if (row->fine ? row->rc > rc : check && !rc)
			rc = row->fine ? row->rc : EXIT_CHECK;
	}
	if (*any)
		return rc;
	return say_error(t->rows[0].rc, "of %zu recordings none gives an answer; the first: %s",
			 t->run->count, t->rows[0].error);
}

/* Suggests the rank to look at: the greatest outlier, or the one with the worst exit code. */
static void where_next(const struct rows *r, const struct ranks_strays *strays)
{
	const struct ranks_table *t = &r->table;
	size_t best = t->run->count, stray = ranks_furthest(strays, t);
	char word[SHELL_WORD];
	const struct rank_file *f;

	for (size_t i = 0; i < t->run->count; i++)
		if (t->rows[i].fine && (best == t->run->count || t->rows[i].rc > t->rows[best].rc))
			best = i;
	best = stray < t->run->count ? stray : best;
	f = t->rows[best].file;
	emit_line(r->out, "%s", "");
	emit_line(r->out, "%s%s: gpumemtrace %s %s", best == stray && f->name[0] ? "Look at " : "",
		  best == stray && f->name[0] ? f->name : "One of them", r->command->name,
		  shell_word(f->path, word));
}

static int each_rank(const struct command *c, void *options, const struct ranks_run *run,
		     struct emit *out)
{
	struct rows r = { .command = c, .options = options, .out = out };
	const struct ranks_work job = { run->count, answer_rank, note_rank, &r };
	struct ranks_strays strays;
	struct ranks_answer document = { .table = &r.table, .strays = &strays };
	struct row_ranks row;
	bool any;
	int rc;

	ranks_table_init(&r.table, run, c->name);
	if (c->output)
		r.outputs = output_names(run, *options_text(options, c->output),
					 *options_text(options, c->format));
	emit_object(out, NULL);
	emit_array(out, "ranks");
	ranks_work(&job);
	emit_end(out);
	ranks_strays(&strays, &r.table);
	row = ranks_answer(&document);
	emit_rest(out, ranks, &row, "totals");
	rc = worst_code(&r, &any);
	if (!emit_json(out) && any) {
		ranks_print_text(out, &r.table, &strays);
		if (c->ranks == COMMAND_ROWS)
			where_next(&r, &strays);
	}
	emit_end(out);
	ranks_answer_free(&document);
	ranks_strays_free(&strays);
	ranks_table_free(&r.table);
	output_names_free(r.outputs, run->count);
	return rc;
}

/* ---- one of them ---- */

static void say_run_note(const struct ranks_run *run)
{
	size_t n = strlen(run->note);

	if (n)
		say_note("%.*s", (int)(n - (run->note[n - 1] == ' ')), run->note);
}

static int one_rank(const struct command *c, void *options, const struct ranks_run *run,
		    const struct options_common *common, const char *where, struct emit *out)
{
	size_t row = 0;
	int rc = 0;

	if (common->rank)
		rc = rank_choose_one(run, common->rank, where, &row);
	else if (run->count > 1)
		rc = rank_needed(c, run, where);
	if (rc)
		return rc;
	say_run_note(run);
	*options_text(options, c->file) = run->items[row].path;
	return command_perform(c, options, out);
}

/* ---- the list of them ---- */

static int whole_list(const struct command *c, void *options, const struct ranks_run *run,
		      const struct options_common *common, const char *where, struct emit *out)
{
	char **paths = need_new((run->count + 1) * sizeof(*paths)), **given;
	void *at = (char *)options + c->file;
	size_t row = 0, n = 0;
	int rc = 0;

	memcpy(&given, at, sizeof(given));
	say_run_note(run);
	if (common->rank)
		rc = rank_choose(run, common->rank, where, &row);
	for (size_t i = 0; i < run->count && !rc; i++) {
		if (common->rank && run->items[i].rank != run->items[row].rank)
			continue;
		if (common->rank || run->items[i].readable || !run->readable || c == &command_check)
			paths[n++] = run->items[i].path;
		else
			say_note("%s cannot be read and is left out", run->items[i].path);
	}
	if (!rc) {
		memcpy(at, &paths, sizeof(paths));
		rc = command_perform(c, options, out);
		memcpy(at, &given, sizeof(given));
	}
	free(paths);
	return rc;
}

static int refuse_runs(const struct command *c, const struct ranks_run *run, char *const *paths)
{
	return say_usage("%s explains one run, and %zu are named (%s, %s%s): name one of them",
			 c->name, run->runs, paths[0], paths[1], paths[2] ? ", .." : "");
}

static int with_run(const struct command *c, void *options, const struct options_common *common,
		    char *const *paths, struct emit *out)
{
	struct ranks_run run;
	int rc = ranks_find(&run, paths, c->runs == COMMAND_LAST_RUN ? RANKS_LAST : RANKS_EVERY);

	if (rc)
		return rc;
	if (run.runs > 1 && c->runs == COMMAND_REFUSE_RUNS)
		rc = refuse_runs(c, &run, paths);
	else if (c->ranks == COMMAND_ALL)
		rc = whole_list(c, options, &run, common, paths[0], out);
	else if (c->ranks == COMMAND_FILES && !common->rank && has_folder(c, options))
		rc = each_rank(c, options, &run, out);
	else if (c->ranks != COMMAND_ROWS || common->rank)
		rc = one_rank(c, options, &run, common, paths[0], out);
	else
		rc = each_rank(c, options, &run, out);
	ranks_free(&run);
	return rc;
}

/* Files named one by one for a command that explains one run. */
static int check_files(const struct command *c, char *const *paths)
{
	struct ranks_run run;
	int rc = ranks_find(&run, paths, RANKS_LAST);

	if (rc)
		return rc;
	if (run.differ[0])
		rc = say_usage("%s explains one run. These files are of different runs: %s. Name "
			       "the files of one, or compare two: gpumemtrace diff OLD NEW",
			       c->name, run.differ);
	else
		say_run_note(&run);
	ranks_free(&run);
	return rc;
}

/* Recordings that are named one by one are all used, whatever run they belong to. */
static bool any_folder(char *const *paths)
{
	for (; *paths; paths++) {
		char *one[] = { *paths, NULL };

		if (ranks_is_run(one))
			return true;
	}
	return false;
}

int of_ranks(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out)
{
	void *at = (char *)options + c->file;
	char *one[] = { c->ranks == COMMAND_ALL ? NULL : *(char **)at, NULL };
	char *const *paths = c->ranks == COMMAND_ALL ? *(char ***)at
			     : common->files	     ? common->files
						     : one;
	int rc = 0;

	if (c->ranks == COMMAND_PAIRS)
		return of_pairs(c, options, common, out);
	if (common->rank || (c->ranks == COMMAND_ALL ? any_folder(paths) : ranks_is_run(paths)))
		return with_run(c, options, common, paths, out);
	if (c->ranks == COMMAND_ALL && c->runs != COMMAND_EACH_RUN && paths[1])
		rc = check_files(c, paths);
	return rc ? rc : command_perform(c, options, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "of_ranks.h"

#include <sys/stat.h>

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

/* ---- one recording ---- */

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

/* ---- a list of recordings ---- */

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

static int with_run(const struct command *c, void *options, const struct options_common *common,
		    char *const *paths, struct emit *out)
{
	struct ranks_run run;
	int rc = ranks_find(&run, paths, c->runs == COMMAND_LAST_RUN ? RANKS_LAST : RANKS_EVERY);

	if (rc)
		return rc;
	if (run.runs > 1 && c->runs == COMMAND_REFUSE_RUNS)
		rc = say_usage("%s explains one run, and %zu are named (%s, %s%s): name one of "
			       "them",
			       c->name, run.runs, paths[0], paths[1], paths[2] ? ", .." : "");
	else if (c->ranks == COMMAND_ALL)
		rc = whole_list(c, options, &run, common, paths[0], out);
	else if (c->ranks == COMMAND_FILES && !common->rank && has_folder(c, options))
		rc = ranks_rows(c, options, common, &run, out);
	else if (c->ranks != COMMAND_ROWS || common->rank)
		rc = one_rank(c, options, &run, common, paths[0], out);
	else
		rc = ranks_rows(c, options, common, &run, out);
	ranks_free(&run);
	return rc;
}

/* Checks that files that are named one by one are of one run. */
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

/* ---- two runs ---- */

static int one_pair(struct diff_options *o, const char *rank, const struct ranks_run *old,
		    const struct ranks_run *new, struct emit *out)
{
	struct diff_options pair = *o;
	size_t a = 0, b = 0;
	int rc = rank_choose(old, rank, o->old, &a);

	if (!rc)
		rc = rank_choose(new, rank, o->new, &b);
	if (rc)
		return rc;
	pair.old = old->items[a].path;
	pair.new = new->items[b].path;
	return command_perform(&command_diff, &pair, out);
}

static int of_pairs(struct diff_options *o, const struct options_common *common, struct emit *out)
{
	char *old[] = { (char *)o->old, NULL }, *new[] = { (char *)o->new, NULL };
	struct ranks_run before = { 0 }, after = { 0 };
	int rc;

	if (!common->rank && !ranks_is_run(old) && !ranks_is_run(new))
		return command_perform(&command_diff, o, out);
	if (!common->rank && ranks_is_run(old) != ranks_is_run(new))
		return say_usage("%s is a folder and %s is not: name two folders, two recordings, "
				 "or a rank with --rank N",
				 ranks_is_run(old) ? old[0] : new[0],
				 ranks_is_run(old) ? new[0] : old[0]);
	rc = ranks_find(&before, old, RANKS_LAST);
	if (!rc)
		rc = ranks_find(&after, new, RANKS_LAST);
	if (!rc && before.note[0])
		say_note("%s: %s", old[0], before.note);
	if (!rc)
		rc = common->rank ? one_pair(o, common->rank, &before, &after, out)
				  : ranks_pairs(o, common, &before, &after, out);
	ranks_free(&before);
	ranks_free(&after);
	return rc;
}

/* Whether a path is a folder. Recordings that are named one by one may be of different runs. */
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
		return of_pairs(options, common, out);
	if (common->rank || (c->ranks == COMMAND_ALL ? any_folder(paths) : ranks_is_run(paths)))
		return with_run(c, options, common, paths, out);
	if (c->ranks == COMMAND_ALL && c->runs != COMMAND_EACH_RUN && paths[1])
		rc = check_files(c, paths);
	return rc ? rc : command_perform(c, options, out);
}

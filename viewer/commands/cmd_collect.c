/* SPDX-License-Identifier: Apache-2.0 */
/* collect: recordings of many runs become tables that queries ask together. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/need.h"
#include "../base/shell.h"
#include "../lake/lake_engine.h"
#include "../ask/command.h"

/* A process: where its rows are, or why they are not. */
struct outcome {
	const char *file;
	char *project, *day, *run, *error; /* error NULL: it is in the lake */
	int64_t rank;
	uint64_t peak;
	bool known;
	bool less; /* the lake has more of this process */
};

struct job {
	const struct collect_options *options;
	struct lake_files files;
	struct outcome *outcomes;
	size_t count, room;
	size_t kept, skipped, runs;
};

static char *copy_of(struct json text)
{
	size_t room = text.s ? (size_t)(text.end - text.s) + 8 : 1;
	char *copy = need_new(room);

	json_string(text, copy, room);
	return copy;
}

static bool is_there(struct json v)
{
	return v.s && *v.s != 'n';
}

/* A row of python/gpumemtrace/lake/lake_perform.py. */
static void take_outcome(void *ctx, struct json cells)
{
	struct job *j = ctx;
	struct outcome *o = need_item(j->outcomes, j->count, j->room);
	uint64_t file = json_unsigned(json_at(cells, "0"));
	struct json peak = json_at(cells, "5"), error = json_at(cells, "7");

	*o = (struct outcome){ .file = file < j->files.count ? j->files.items[file].path : "",
			       .project = copy_of(json_at(cells, "1")),
			       .day = copy_of(json_at(cells, "2")),
			       .run = copy_of(json_at(cells, "3")),
			       .rank = json_signed(json_at(cells, "4")),
			       .known = is_there(peak),
			       .peak = json_unsigned(peak),
			       .less = json_number(json_at(cells, "6")) != 0,
			       .error = is_there(error) ? copy_of(error) : NULL };
	if (o->error)
		j->skipped++;
	else
		j->kept++;
}

static bool recording_row(void *ctx, size_t i, struct row_collect_recording *row)
{
	const struct outcome *o = &((const struct job *)ctx)->outcomes[i];

	*row = (struct row_collect_recording){ .file = o->file,
					       .project = o->project,
					       .day = o->day,
					       .run = o->run,
					       .rank = o->rank,
					       .has_peak_bytes = o->known,
					       .peak_bytes = o->peak,
					       .kept_earlier = o->less,
					       .has_error = o->error,
					       .error = o->error };
	return true;
}

static void count_runs(struct job *j)
{
	const struct outcome *o = j->outcomes;

	for (size_t i = 0; i < j->count; i++)
		j->runs += !o[i].error && (!i || strcmp(o[i].run, o[i - 1].run));
}

static void print_collected(struct emit *out, struct job *j)
{
	const struct row_collect row = { .lake = j->options->output,
					 .collected = j->kept,
					 .skipped = j->skipped,
					 .recordings = { j->count, recording_row, j } };
	char kept[HUMAN_MAX], runs[HUMAN_MAX], lake[SHELL_WORD];

	emit_document(out, collect, &row);
	if (!j->kept)
		return;
	emit_line(out, "%s: %s recording%s of %s run%s collected", j->options->output,
		  human_count(kept, j->kept), j->kept == 1 ? "" : "s", human_count(runs, j->runs),
		  j->runs == 1 ? "" : "s");
	emit_line(out, "%s", "");
	shell_word(j->options->output, lake);
	emit_line(out,
		  "Where next: gpumemtrace sql \"from peak_by_commit\" %s   |   "
		  "gpumemtrace dashboard %s -o lake.html",
		  lake, lake);
}

/* An address: what lies in a store is not a folder. */
static const char *elsewhere(const struct collect_options *o)
{
	if (strstr(o->output, "://"))
		return o->output;
	for (char **file = o->files; *file; file++)
		if (strstr(*file, "://"))
			return *file;
	return NULL;
}

/* Letters, digits, and . _ - */
static bool is_good_name(const char *name)
{
	if (!*name || name[0] == '.' || strlen(name) > 100)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	return true;
}

static int check_places(const struct collect_options *o)
{
	struct stat st;

	if (elsewhere(o))
		return say_error(EXIT_USAGE,
				 "%s: collect reads and writes folders of this machine; copy "
				 "recordings here, and the lake there (aws s3 sync, for instance)",
				 elsewhere(o));
	if (o->project && !is_good_name(o->project))
		return say_error(EXIT_USAGE,
				 "--project needs a name of letters, digits, . _ and -, not \"%s\"",
				 o->project);
	if (!stat(o->output, &st) && !S_ISDIR(st.st_mode))
		return say_error(EXIT_USAGE, "%s exists and is no folder; choose another name",
				 o->output);
	return 0;
}

static int exit_code_of(const struct job *j)
{
	if (!j->skipped)
		return EXIT_OK;
	if (j->kept)
		return EXIT_UNREADABLE;
	if (j->count == 1)
		return say_error(EXIT_UNREADABLE, "%s", j->outcomes[0].error);
	return say_error(EXIT_UNREADABLE, "none of %zu recordings can be read", j->skipped);
}

static void free_job(struct job *j)
{
	for (size_t i = 0; i < j->count; i++) {
		free(j->outcomes[i].project);
		free(j->outcomes[i].day);
		free(j->outcomes[i].run);
		free(j->outcomes[i].error);
	}
	free(j->outcomes);
	lake_files_free(&j->files);
}

int run_collect(const struct collect_options *o, struct emit *out)
{
	struct job j = { .options = o };
	const struct lake_question q = { .what = "collect",
					 .lake = o->output,
					 .text = o->project,
					 .large = o->tables != 0,
					 .files = &j.files,
					 .row = take_outcome,
					 .ctx = &j };
	int rc = check_places(o);

	if (!rc)
		rc = lake_files_find(&j.files, o->files);
	if (!rc)
		rc = lake_ask(&q);
	if (!rc) {
		count_runs(&j);
		print_collected(out, &j);
		rc = exit_code_of(&j);
	}
	free_job(&j);
	return rc;
}

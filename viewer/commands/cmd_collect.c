/* SPDX-License-Identifier: Apache-2.0 */
/* collect: recordings of many runs become tables that queries ask together. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/need.h"
#include "../base/shell.h"
#include "../lake/lake_lock.h"
#include "../lake/lake_recording.h"
#include "../lake/lake_sources.h"
#include "../ranks/ranks_work.h"
#include "command.h"

#define SMALL ((1u << LAKE_allocations) - 1) /* every table before the large ones */

struct outcome {
	char *error; /* NULL: it is in the lake */
	uint64_t peak;
	bool known;
	bool less; /* the lake has more of this process */
};

struct job {
	const struct collect_options *options;
	struct lake_sources sources;
	struct outcome *outcomes;
	size_t kept, skipped, runs;
};

#define LESS "less"

static int collect_one(void *ctx, size_t i, FILE *out)
{
	const struct job *j = ctx;
	const struct lake_source *s = &j->sources.items[i];
	struct lake_writer *w = need_new(sizeof(*w));
	unsigned tables = SMALL | (j->options->tables ? 1u << LAKE_allocations : 0);
	struct lake_said said;
	int rc;

	*w = (struct lake_writer){ .lake = j->options->output, .place = &s->place, .old = &s->old };
	rc = lake_collect(w, s->file->path, tables, PARQUET_SMALL, &said);
	if (!rc && said.less)
		fputs(LESS, out);
	else if (!rc && said.device >= 0)
		fprintf(out, "%" PRIu64, said.peak_bytes);
	return rc;
}

static void note_collected(void *ctx, size_t i, const struct ranks_result *result)
{
	struct job *j = ctx;
	struct outcome *o = &j->outcomes[i];
	const struct lake_source *s = &j->sources.items[i];
	size_t name = strlen(s->file->path);

	if (!result->rc) {
		lake_move(j->options->output, s);
		o->less = !strcmp(result->text, LESS);
		if (o->less)
			say_note("%s: the lake has a recording of this process with more in it, "
				 "and keeps that one",
				 s->file->path);
		o->known = result->len && !o->less;
		o->peak = o->known ? strtoull(result->text, NULL, 10) : 0;
		j->kept++;
		return;
	}
	j->skipped++;
	o->error = need_copy(result->error, strlen(result->error));
	if (j->sources.count == 1)
		return; /* exit_code_of() says it */
	if (!strncmp(o->error, s->file->path, name) && o->error[name] == ':')
		say_note("%s: skipped", o->error);
	else
		say_note("%s: %s: skipped", s->file->path, o->error);
}

static bool recording_row(void *ctx, size_t i, struct row_collect_recording *row)
{
	const struct job *j = ctx;
	const struct lake_source *s = &j->sources.items[i];
	const struct outcome *o = &j->outcomes[i];

	*row = (struct row_collect_recording){ .file = s->file->path,
					       .project = s->place.project,
					       .day = s->place.day,
					       .run = s->place.run,
					       .rank = s->place.rank,
					       .has_peak_bytes = o->known,
					       .peak_bytes = o->peak,
					       .kept_earlier = o->less,
					       .has_error = o->error,
					       .error = o->error };
	return true;
}

static void count_runs(struct job *j)
{
	const struct lake_source *items = j->sources.items;

	for (size_t i = 0; i < j->sources.count; i++)
		j->runs += !j->outcomes[i].error &&
			   (!i || strcmp(items[i].place.run, items[i - 1].place.run));
}

static void print_collected(struct emit *out, struct job *j)
{
	const struct row_collect row = { .lake = j->options->output,
					 .collected = j->kept,
					 .skipped = j->skipped,
					 .recordings = { j->sources.count, recording_row, j } };
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

static int check_places(const struct collect_options *o)
{
	struct stat st;

	if (elsewhere(o))
		return say_error(EXIT_USAGE,
				 "%s: collect reads and writes folders of this machine; copy "
				 "recordings here, and the lake there (aws s3 sync, for instance)",
				 elsewhere(o));
	if (o->project && !lake_name_is_good(o->project))
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
	if (j->sources.count == 1)
		return say_error(EXIT_UNREADABLE, "%s", j->outcomes[0].error);
	return say_error(EXIT_UNREADABLE, "none of %zu recordings can be read", j->skipped);
}

static void collect_all(struct job *j)
{
	struct ranks_work w = { .work = collect_one, .done = note_collected, .ctx = j };

	lake_sources_place(&j->sources, j->options->output, j->options->project);
	j->outcomes = need_new((j->sources.count + 1) * sizeof(*j->outcomes));
	w.count = j->sources.count;
	ranks_work(&w);
}

int run_collect(const struct collect_options *o, struct emit *out)
{
	struct job j = { .options = o };
	struct lake_lock lock;
	int rc = check_places(o);

	if (!rc)
		rc = lake_sources_find(&j.sources, o->files);
	if (rc)
		return rc;
	rc = lake_lock(&lock, o->output);
	if (!rc) {
		collect_all(&j);
		lake_unlock(&lock, o->output);
		count_runs(&j);
		print_collected(out, &j);
		rc = exit_code_of(&j);
	}
	for (size_t i = 0; i < j.sources.count; i++)
		free(j.outcomes[i].error);
	free(j.outcomes);
	lake_sources_free(&j.sources);
	return rc;
}

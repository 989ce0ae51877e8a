/* SPDX-License-Identifier: Apache-2.0 */
/* Hands the recordings of a run over to Python (python/gpumemtrace/ranks), which asks the library
 * for the command's answer about each. */
#include "../base/shell.h"
#include "../classes/classify.h"
#include "of_ranks.h"
#include "question.h"

static void put_file(struct question *q, const struct rank_file *f)
{
	char word[SHELL_WORD];

	emit_object(q->request, NULL);
	question_text(q, "path", f->path);
	question_text(q, "shell", shell_word(f->path, word));
	question_text(q, "name", f->name);
	question_text(q, "host", f->host);
	question_text(q, "command", f->command);
	question_text(q, "of", f->of);
	question_number(q, "of_folder", f->of_is_folder);
	question_number(q, "rank", (double)f->rank);
	question_number(q, "process", f->pid);
	question_number(q, "part", f->a_part);
	question_number(q, "alone", f->by_itself);
	emit_end(q->request);
}

static void put_run(struct question *q, const char *key, const struct ranks_run *run)
{
	emit_object(q->request, key);
	emit_array(q->request, "files");
	FOR_EACH (const struct rank_file, f, run->items, run->count)
		put_file(q, f);
	emit_end(q->request);
	emit_array(q->request, "left");
	for (size_t i = 0; i < run->left_count; i++)
		emit_text(q->request, NULL, run->left[i]);
	emit_end(q->request);
	question_number(q, "world", (double)run->world);
	question_number(q, "runs", (double)run->runs);
	question_text(q, "note", run->note);
	question_number(q, "differ", run->differ[0] != 0);
	emit_end(q->request);
}

static void begin_question(struct question *q, const char *what,
			   const struct options_common *common)
{
	question_begin(q, QUESTION_RANKS, what);
	question_list(q, "options", common->given);
	question_number(q, "json", common->json);
	question_number(q, "screen", (double)emit_screen());
	emit_object(q->request, "classes");
	for (unsigned c = 0; c < CATEGORIES; c++)
		question_text(q, categories[c].name, categories[c].words);
	emit_end(q->request);
}

int ranks_rows(const struct command *c, const void *options, const struct options_common *common,
	       const struct ranks_run *run, struct emit *out)
{
	struct question q = { .out = out };

	begin_question(&q, c->name, common);
	put_run(&q, "run", run);
	question_number(&q, "with_peak", c->with_peak != 0);
	question_text(&q, "output", c->output ? *options_text((void *)options, c->output) : "");
	question_text(&q, "format", c->output ? *options_text((void *)options, c->format) : "");
	return question_ask(&q);
}

/* ---- pairs ---- */

static void take_pair(void *ctx, struct json v)
{
	struct diff_options *pair = ctx;
	char path[PATH_MAX];

	pair->old = need_text(json_string(json_member(v, "old"), path, sizeof(path)));
	pair->new = need_text(json_string(json_member(v, "new"), path, sizeof(path)));
}

/* Prints a pair's comparison. With JSON, which has all pairs already, only writes its page. */
static int show_pair(const struct diff_options *pair, struct emit *out)
{
	FILE *nowhere = emit_json(out) ? fopen("/dev/null", "w") : NULL;
	struct emit *to = nowhere ? emit_open(nowhere, true) : out;
	int rc;

	if (emit_json(out) && !nowhere)
		return say_unreadable("/dev/null: %s", strerror(errno));
	rc = command_perform(&command_diff, pair, to);
	if (nowhere) {
		emit_close(to);
		fclose(nowhere);
	}
	return rc;
}

int ranks_pairs(const struct diff_options *o, const struct options_common *common,
		const struct ranks_run *old, const struct ranks_run *new, struct emit *out)
{
	struct diff_options pair = *o;
	struct question q = { .out = out, .result = take_pair, .ctx = &pair };
	int rc;

	begin_question(&q, "diff", common);
	put_run(&q, "old", old);
	put_run(&q, "run", new);
	question_number(&q, "markdown", o->markdown);
	question_number(&q, "besides", o->output != NULL);
	rc = question_ask(&q);
	if (pair.old == o->old)
		return rc;
	if (!rc)
		rc = show_pair(&pair, out);
	free((char *)pair.old);
	free((char *)pair.new);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "question.h"

#include "../advise/advise.h"
#include "../base/plain_file.h"
#include "run_program.h"

#define CARD  "h100-80g" /* default */
#define STEPS 2		 /* to observe for `advise` */
#define SETS  12	 /* runs of `--make-it-fit` */

/* fit: finds the cards and settings that a program fits, by running it on simulated cards. */

int check_fit(struct fit_options *o)
{
	if (o->output && (!*o->output || strlen(o->output) > 3000))
		return say_usage("-o takes a folder");
	if (o->max_runs && !o->make_it_fit)
		return say_usage("--max-runs is for --make-it-fit");
	if (o->make_it_fit && !o->cards)
		return say_usage("--make-it-fit needs the card that the program is to fit: --cards "
				 "NAME");
	return 0;
}

int run_fit(const struct fit_options *o, struct emit *out)
{
	struct question q = { .out = out, .command = run_program_python(o->command) };
	char why[PATH_MAX + 256];

	search_begin(&q, "fit", o->cards ? o->cards : "all");
	question_list(&q, "vary", o->vary);
	question_text(&q, "folder", o->output);
	question_number(&q, "steps", (double)o->steps);
	question_number(&q, "to_end", o->to_end);
	question_number(&q, "max_time", (double)o->max_time);
	question_number(&q, "jobs", (double)o->jobs);
	question_number(&q, "sets", (double)(o->make_it_fit ? (o->max_runs ?: SETS) : 0));
	if (o->ranks)
		question_text(&q, "ranks", o->ranks);
	if (run_program_fails(q.command[0], why, sizeof(why)))
		question_text(&q, "obstacle", why);
	return question_ask(&q);
}

/* bisect: finds the commit that raised the peak. */

static int check_limits(const struct bisect_options *o)
{
	if (o->max_peak.given && o->fail_above.given)
		return say_usage("--max-peak and --fail-above exclude each other");
	if (strlen(o->sim ? o->sim : "") > 90 || (o->sim && strchr(o->sim, ',')))
		return say_usage("--sim takes one card, such as h100-80g");
	return 0;
}

int run_bisect(const struct bisect_options *o, struct emit *out)
{
	bool absolute = o->max_peak.text;
	const struct amount *limit = absolute ? &o->max_peak.amount : &o->fail_above.amount;
	struct question q = { .out = out, .command = run_program_python(o->command) };
	char value[32];
	int rc = check_limits(o);

	if (rc)
		return rc;
	search_begin(&q, "bisect", o->sim ? o->sim : CARD);
	question_text(&q, "good", o->good);
	question_text(&q, "bad", o->bad);
	question_text(&q, "folder", o->output);
	question_number(&q, "steps", (double)o->steps);
	snprintf(value, sizeof(value), "%.17g", limit->value);
	question_text(&q, "limit", value);
	question_number(&q, "percent", limit->percent);
	question_number(&q, "absolute", absolute);
	return question_ask(&q);
}

/* `advise` and `oom` with --try: runs the program with each suggestion that needs no edit of it, on
 * the recording's card. */

struct suggestions {
	const char *of; /* the command that makes them */
	char **files, **command;
	const char *card; /* NULL: the recording's */
	long which, top, steps;
};

static int try_suggestions(const struct suggestions *s, struct emit *out)
{
	struct question q = { .out = out, .command = run_program_python(s->command) };
	char why[PATH_MAX + 256];

	if (run_program_fails(q.command[0], why, sizeof(why)))
		return say_usage("%s", why);
	search_begin(&q, "try", s->card);
	question_text(&q, "of", s->of);
	question_list(&q, "files", s->files);
	question_number(&q, "which", (double)s->which);
	question_number(&q, "top", (double)s->top);
	question_number(&q, "steps", (double)s->steps);
	return question_ask(&q);
}

int oom_try(const struct oom_options *o, struct emit *out)
{
	return try_suggestions(
		&(struct suggestions){ "oom", o->files, o->command, NULL, o->nth, 0, 0 }, out);
}

/* `advise -- COMMAND`: runs the program on a simulated card, unchanged and with each change that
 * needs no edit of it. */

#define ALLOCATOR "PYTORCH_CUDA_ALLOC_CONF"

/* Settings that are tried with every program. */
static char *const always[] = { (char *)"env:CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8" };
#define ALWAYS (sizeof(always) / sizeof(*always))

struct advise_runs {
	char **command, **tries; /* tries: each NAME=VALUE or env:NAME=VALUE, or NULL */
	const char *card;
	long steps;
	/* Set by run_unchanged: */
	char folder[PATH_MAX];
	char *recording; /* of the program as it is */
};

/* ---- runs ---- */

/* Runs the program with each of `tries`; NULL: unchanged, with its recordings in `folder`. */
static int perform_runs(const struct advise_runs *r, char *const *tries, const char *folder,
			void (*run)(void *ctx, struct json run), void *ctx)
{
	struct question q = { .result = run, .ctx = ctx, .command = r->command };

	search_begin(&q, "runs", r->card ? r->card : CARD);
	question_list(&q, "tries", tries);
	question_text(&q, "folder", folder);
	question_number(&q, "steps", (double)r->steps);
	return question_ask(&q);
}

static void take_recording(void *ctx, struct json run)
{
	struct advise_runs *r = ctx;
	char path[PATH_MAX];

	json_string(json_member(run, "recording"), path, sizeof(path));
	r->recording = need_text(path);
}

static int run_unchanged(struct advise_runs *r)
{
	char why[PATH_MAX + 256];
	int rc;

	r->command = run_program_python(r->command);
	if (run_program_fails(r->command[0], why, sizeof(why)))
		return say_usage("%s", why);
	rc = folder_make(r->folder, "advise");
	return rc ? rc : perform_runs(r, NULL, r->folder, take_recording, r);
}

/* ---- changes ---- */

struct tries {
	const struct advise_runs *runs;
	struct advise *advise;
	char **texts; /* ending with NULL */
	size_t count, room;
	size_t found; /* the first `found` texts are of findings, */
	size_t *of;   /* with these indices */
	size_t of_room;
	size_t done;
};

static void note_run(struct tries *t, struct finding *f, struct json run)
{
	uint64_t before = f->reserved ? t->advise->reserved : t->advise->peak;
	uint64_t after =
		json_unsigned(json_member(run, f->reserved ? "peak_reserved_bytes" : "peak_bytes"));

	f->known = KNOWN_run;
	f->saves = f->least = before > after ? before - after : 0;
	f->peak = after;
	advise_put(f->how, "Run on a simulated %s: %s with it, %s without",
		   t->runs->card ? t->runs->card : CARD, B(after), B(before));
}

static void note_new(struct tries *t, const char *text, struct json run)
{
	struct finding f = { .kind = "option", .order = t->advise->count };

	advise_put(f.what, "Run it with %s", strncmp(text, "env:", 4) ? text : text + 4);
	note_run(t, &f, run);
	*advise_add(t->advise, f.kind) = f;
}

static void take_try(void *ctx, struct json run)
{
	struct tries *t = ctx;
	size_t i = t->done++;

	if (!json_number(json_member(run, "finished")))
		say_note("With %s the program did not finish: nothing is known of that change.",
			 t->texts[i]);
	else if (i < t->found)
		note_run(t, &t->advise->items[t->of[i]], run);
	else
		note_new(t, t->texts[i], run);
}

static void add_try(struct tries *t, const char *text)
{
	t->texts = need_grow(t->texts, &t->room, t->count + 1, sizeof(*t->texts));
	t->texts[t->count++] = need_text(text);
	t->texts[t->count] = NULL;
}

static void add_findings(struct tries *t)
{
	char text[ADVISE_TEXT + 40];

	for (size_t i = 0; i < t->advise->count; i++) {
		if (!t->advise->items[i].setting[0])
			continue;
		snprintf(text, sizeof(text), "env:" ALLOCATOR "=%s", t->advise->items[i].setting);
		*need_item(t->of, t->found, t->of_room) = i;
		add_try(t, text);
	}
}

/* Runs each requested change and each environment setting of a finding; the findings get the
 * measured savings. */
static int try_changes(void *ctx, struct advise *a)
{
	struct advise_runs *r = ctx;
	struct tries t = { .runs = r, .advise = a };
	int rc;

	add_findings(&t);
	for (size_t i = 0; i < ALWAYS; i++)
		add_try(&t, always[i]);
	for (char **text = r->tries; text && *text; text++)
		add_try(&t, *text);
	rc = perform_runs(r, t.texts, "", take_try, &t);
	advise_choose(a);
	while (t.count)
		free(t.texts[--t.count]);
	free(t.texts);
	free(t.of);
	return rc;
}

static int advise_try(const struct advise_options *o, struct emit *out)
{
	char *files[] = { (char *)o->file, NULL };

	return try_suggestions(&(struct suggestions){ "advise", files, o->command, o->card,
						      o->device, o->top, o->steps },
			       out);
}

int advise_runs(const struct advise_options *o, struct emit *out)
{
	struct advise_runs runs = {
		.command = o->command, .tries = o->tries, .card = o->card, .steps = o->steps
	};
	int rc;

	if (o->tries && !o->tries[0][0])
		return advise_try(o, out);
	runs.steps = o->steps ? o->steps : STEPS;
	rc = run_unchanged(&runs);

	if (!rc)
		rc = advise_recording(o, runs.recording, try_changes, &runs, out);
	free(runs.recording);
	if (runs.folder[0])
		folder_remove(runs.folder);
	return rc;
}

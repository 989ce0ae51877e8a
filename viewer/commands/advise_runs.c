/* SPDX-License-Identifier: Apache-2.0 */
#include "advise_runs.h"

#include <stdio.h>
#include <string.h>

#include "../base/need.h"
#include "../base/say.h"
#include "../search/folder.h"
#include "run_program.h"
#include "simcards.h"

#define ALLOCATOR "PYTORCH_CUDA_ALLOC_CONF"

/* Settings that are tried with every program. */
static const char *const always[] = { "env:CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8" };

/* One run; s->plan.varied has one value of each name. */
static int run_once(const struct advise_runs *r, struct search *s, struct trial **out)
{
	int rc = simcards_find(r->card ? r->card : "h100-80g", &s->cards, &s->card_count);
	struct setting setting;

	s->plan.command = r->command;
	s->plan.steps = r->steps;
	s->plan.seconds = TRIAL_SECONDS;
	if (!rc)
		rc = folder_make(s->plan.folder, "advise", &s->temporary);
	if (rc)
		return rc;
	setting = vary_setting(&s->plan.varied, 0);
	*out = search_trial(s, s->cards, &setting);
	rc = search_run(s, out, 1);
	say_progress_end();
	return rc;
}

int advise_runs_begin(struct advise_runs *r)
{
	char why[PATH_MAX + 256];
	struct trial *t;
	int rc;

	r->command = run_program_python(r->command);
	if (run_program_missing(r->command[0], why, sizeof(why)) ||
	    run_program_obstacle(r->command[0], why, sizeof(why)))
		return say_error(EXIT_USAGE, "%s", why);
	rc = run_once(r, &r->base, &t);
	if (rc)
		return rc;
	r->recordings = trial_recordings(t, &r->base.plan);
	if (t->verdict == ENDING_FAILED || !r->recordings[0])
		return trial_say_failure(t, &r->base.plan);
	return 0;
}

/* One value per name; a comma belongs to the value. */
static void set_one(struct varied *v, const char *text)
{
	bool environment = !strncmp(text, "env:", 4);
	const char *name = text + (environment ? 4 : strspn(text, "-"));
	const char *equals = strchr(name, '=');
	struct vary *one = &v->items[0];

	one->environment = environment;
	one->name = need_copy(name, (size_t)(equals - name));
	one->values = need_new(2 * sizeof(*one->values));
	one->values[0] = need_copy(equals + 1, strlen(equals + 1));
	one->count = 1;
	v->count = 1;
}

static void note_run(struct advise *a, struct finding *f, const struct trial *t)
{
	uint64_t before = f->reserved ? a->reserved : a->peak;
	uint64_t after = f->reserved ? t->reserved : t->peak;

	f->known = KNOWN_run;
	f->saves = f->least = before > after ? before - after : 0;
	f->peak = after;
	advise_put(f->how, "Run on a simulated %s: %s with it, %s without", t->card->name,
		   human_bytes((char[HUMAN_MAX]){ 0 }, after),
		   human_bytes((char[HUMAN_MAX]){ 0 }, before));
}

/* Measures a run with the change; *ran is false if the run fails. */
static int measure_with(struct advise_runs *r, struct advise *a, struct finding *f,
			const char *text, bool *ran)
{
	struct search s = { 0 };
	struct trial *t;
	int rc;

	set_one(&s.plan.varied, text);
	rc = run_once(r, &s, &t);
	*ran = !rc && (t->verdict == ENDING_FITS || t->verdict == ENDING_UNSTABLE);
	if (*ran)
		note_run(a, f, t);
	else if (!rc)
		say_note("With %s the program did not finish: nothing is known of that change.",
			 text);
	search_free(&s);
	return rc;
}

static int try_new(struct advise_runs *r, struct advise *a, const char *text)
{
	struct finding f = { .kind = "option", .order = a->count };
	bool ran;
	int rc;

	advise_put(f.what, "Run it with %s", strncmp(text, "env:", 4) ? text : text + 4);
	rc = measure_with(r, a, &f, text, &ran);
	if (!rc && ran)
		*advise_add(a, f.kind) = f;
	return rc;
}

static int confirm(struct advise_runs *r, struct advise *a, struct finding *f)
{
	char text[ADVISE_TEXT + 40];
	bool ran;

	snprintf(text, sizeof(text), "env:" ALLOCATOR "=%s", f->setting);
	return measure_with(r, a, f, text, &ran);
}

int advise_runs_try(struct advise_runs *r, struct advise *a)
{
	size_t found = a->count;
	int rc = 0;

	for (size_t i = 0; i < found && !rc; i++)
		if (a->items[i].setting[0])
			rc = confirm(r, a, &a->items[i]);
	for (size_t i = 0; i < sizeof(always) / sizeof(*always) && !rc; i++)
		rc = try_new(r, a, always[i]);
	for (char **t = r->tries; t && *t && !rc; t++)
		rc = try_new(r, a, *t);
	advise_choose(a);
	return rc;
}

void advise_runs_free(struct advise_runs *r)
{
	if (r->recordings)
		vary_command_free(r->recordings);
	search_free(&r->base);
}

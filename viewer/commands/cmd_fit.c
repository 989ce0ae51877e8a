/* SPDX-License-Identifier: Apache-2.0 */
/* fit: which cards a program fits, with which settings, by running it on simulated ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../search/search.h"
#include "command.h"
#include "run_program.h"
#include "simcards.h"

struct fit_options {
	const char *cards, *output, *ranks;
	char **vary, **command;
	long steps, jobs;
};

static int check(void *options)
{
	const struct fit_options *o = options;

	if (o->steps < 1 || o->steps > 100000)
		return say_error(EXIT_USAGE, "--steps takes 1 to 100000");
	if (o->jobs < 0 || o->jobs > 64)
		return say_error(EXIT_USAGE, "--jobs takes 1 to 64");
	if (o->output && (!*o->output || strlen(o->output) > 3000))
		return say_error(EXIT_USAGE, "-o takes a folder");
	return 0;
}

static int perform(struct search *s, struct emit *out)
{
	int rc = search_perform(s);

	if (rc)
		return rc;
	search_document(s, out, NULL);
	search_text(s, out);
	for (size_t i = 0; i < s->cell_count; i++)
		if (s->cells[i].fits)
			return EXIT_OK;
	return EXIT_CHECK;
}

static int run_fit(const void *options, struct emit *out)
{
	const struct fit_options *o = options;
	struct search s = { .jobs = o->jobs };
	char why[PATH_MAX + 256];
	char **command = run_program_python(o->command);
	int rc = simcards_find(o->cards, &s.cards, &s.card_count);

	if (!rc && run_program_obstacle(command[0], why, sizeof(why)))
		rc = say_error(EXIT_USAGE, "%s", why);
	if (!rc)
		rc = world_parse(&s.plan.world, o->ranks);
	if (!rc && s.plan.world.count && trial_launcher(command))
		rc = say_error(EXIT_USAGE,
			       "the ranks of a world of %ld are started here: give the program "
			       "without its launcher (%s)",
			       s.plan.world.size, trial_launcher(command));
	if (!rc)
		rc = vary_parse(&s.plan.varied, o->vary);
	if (!rc) {
		s.plan.command = command;
		s.plan.steps = o->steps;
		s.plan.pages = o->output;
		if (o->output)
			snprintf(s.plan.folder, sizeof(s.plan.folder), "%s", o->output);
		rc = perform(&s, out);
	}
	search_free(&s);
	return rc;
}

static const struct option_row options[] = {
	OPTION(struct fit_options, cards, "cards", 0, TEXT, "NAME,..",
	       "cards to try (h100-80g, my=24GiB); default all"),
	OPTION(struct fit_options, vary, "vary", 0, MANY, "NAME=V,..",
	       "values of an option or of env:NAME; may be repeated"),
	OPTION(struct fit_options, steps, "steps", 0, NUMBER, "N",
	       "steps to go on after the first; default 2", .initial = 2),
	OPTION(struct fit_options, ranks, "ranks", 0, TEXT, "N[:R,..]",
	       "run N ranks; above 16 three of them, or R"),
	OPTION(struct fit_options, jobs, "jobs", 'j', NUMBER, "N",
	       "runs at once; default as cores and memory allow"),
	OPTION(struct fit_options, output, "output", 'o', TEXT, "DIR",
	       "folder for recordings, their pages, index.html"),
	{ 0 },
};

const struct command command_fit = {
	.name = "fit",
	.summary = "which cards a program fits, and with which settings",
	.text = "Runs COMMAND on simulated cards until its peak has settled, and says of each card "
		"whether it fits, what it needs, and what is in the way. With --vary it does so "
		"for each setting, and finds the largest value that fits. Exit code 1 if none "
		"fits.",
	.options = options,
	COMMAND_TAKES(struct fit_options, OPERAND(struct fit_options, command, "COMMAND", REST)),
	.check = check,
	.run = run_fit,
};

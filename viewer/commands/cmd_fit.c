/* SPDX-License-Identifier: Apache-2.0 */
/* fit: which cards a program fits, with which settings, by running it on simulated ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/interpreter.h"
#include "../search/search.h"
#include "../stacks/owners.h"
#include "command.h"
#include "run_program.h"
#include "simcards.h"

int check_fit(struct fit_options *o)
{
	if (o->output && (!*o->output || strlen(o->output) > 3000))
		return say_error(EXIT_USAGE, "-o takes a folder");
	return 0;
}

static int perform_search(struct search *s, struct emit *out)
{
	int rc = search_perform(s);

	if (rc)
		return rc;
	search_document(s, out, NULL);
	if (!search_failed(s))
		search_text(s, out);
	return search_code(s);
}

/* Finds the Python that simulates ranks that do not run; the program's own is the last choice. */
static int find_python(struct plan *p, const char *program)
{
	bool is_python = !strncmp(owners_base(program), "python", 6);

	p->python = p->world.count ? python_find(is_python ? program : NULL) : NULL;
	if (!p->world.count || p->python)
		return 0;
	return say_error(EXIT_USAGE,
			 "--ranks: the ranks that do not run are simulated by Python " PYTHON_LEAST
			 " or later, and neither python3 nor python on the PATH is that (name "
			 "another: GPUMEMTRACE_PYTHON=PATH)");
}

int run_fit(const struct fit_options *o, struct emit *out)
{
	struct search s = { .jobs = o->jobs };
	char why[PATH_MAX + 256];
	char **command = run_program_python(o->command);
	int rc = simcards_find(o->cards, &s.cards, &s.card_count);

	if (!rc)
		rc = world_parse(&s.plan.world, o->ranks);
	if (!rc && s.plan.world.count && trial_launcher(command))
		rc = say_error(EXIT_USAGE,
			       "the ranks of a world of %ld are started here: give the program "
			       "without its launcher (%s)",
			       s.plan.world.size, trial_launcher(command));
	if (!rc && (run_program_missing(command[0], why, sizeof(why)) ||
		    run_program_obstacle(command[0], why, sizeof(why))))
		rc = say_error(EXIT_USAGE, "%s", why);
	if (!rc)
		rc = find_python(&s.plan, command[0]);
	if (!rc)
		rc = vary_parse(&s.plan.varied, o->vary);
	if (!rc) {
		s.plan.command = command;
		s.plan.steps = o->steps ? o->steps : TRIAL_STEPS;
		s.plan.look = o->steps ? 0 : TRIAL_LOOK;
		s.plan.to_end = o->to_end;
		s.plan.seconds = o->max_time < 0 ? (o->to_end ? 0 : TRIAL_SECONDS) : o->max_time;
		s.plan.patient = o->to_end || o->max_time >= 0;
		s.plan.pages = o->output;
		if (o->output)
			snprintf(s.plan.folder, sizeof(s.plan.folder), "%s", o->output);
		rc = perform_search(&s, out);
	}
	search_free(&s);
	return rc;
}

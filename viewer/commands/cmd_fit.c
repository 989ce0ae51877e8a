/* SPDX-License-Identifier: Apache-2.0 */
/* fit: which cards a program fits, with which settings, by running it on simulated ones. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../handover/search_engine.h"
#include "../ask/command.h"
#include "run_program.h"
#include "simcards.h"

int check_fit(struct fit_options *o)
{
	if (o->output && (!*o->output || strlen(o->output) > 3000))
		return say_error(EXIT_USAGE, "-o takes a folder");
	return 0;
}

int run_fit(const struct fit_options *o, struct emit *out)
{
	struct search s = { .out = out, .command = run_program_python(o->command) };
	char why[PATH_MAX + 256];
	struct card *cards = NULL;
	size_t count;
	int rc = simcards_find(o->cards, &cards, &count);

	if (!rc) {
		search_begin(&s, "fit");
		search_cards(&s, cards, count);
		search_list(&s, "vary", o->vary);
		search_text(&s, "folder", o->output ? o->output : "");
		search_number(&s, "steps", (double)o->steps);
		search_number(&s, "to_end", o->to_end);
		search_number(&s, "max_time", (double)o->max_time);
		search_number(&s, "jobs", (double)o->jobs);
		if (o->ranks)
			search_text(&s, "ranks", o->ranks);
		if (run_program_fails(s.command[0], why, sizeof(why)))
			search_text(&s, "obstacle", why);
		rc = search_perform(&s);
	}
	free(cards);
	return rc;
}

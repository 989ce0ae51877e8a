/* SPDX-License-Identifier: Apache-2.0 */
/* fit: which cards a program fits, with which settings, by running it on simulated ones. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

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
	struct question q = { .out = out, .command = run_program_python(o->command) };
	char why[PATH_MAX + 256];
	struct card *cards = NULL;
	size_t count;
	int rc = simcards_find(o->cards, &cards, &count);

	if (!rc) {
		search_begin(&q, "fit", cards, count);
		question_list(&q, "vary", o->vary);
		question_text(&q, "folder", o->output);
		question_number(&q, "steps", (double)o->steps);
		question_number(&q, "to_end", o->to_end);
		question_number(&q, "max_time", (double)o->max_time);
		question_number(&q, "jobs", (double)o->jobs);
		if (o->ranks)
			question_text(&q, "ranks", o->ranks);
		if (run_program_fails(q.command[0], why, sizeof(why)))
			question_text(&q, "obstacle", why);
		rc = question_ask(&q);
	}
	free(cards);
	return rc;
}

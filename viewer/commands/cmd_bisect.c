/* SPDX-License-Identifier: Apache-2.0 */
/* bisect: the commit that raised the peak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ask/command.h"
#include "run_program.h"
#include "simcards.h"

static int check_limits(const struct bisect_options *o)
{
	if (o->max_peak.given && o->fail_above.given)
		return say_error(EXIT_USAGE, "--max-peak and --fail-above exclude each other");
	if (strlen(o->sim ? o->sim : "") > 90 || (o->sim && strchr(o->sim, ',')))
		return say_error(EXIT_USAGE, "--sim takes one card, such as h100-80g");
	return 0;
}

int run_bisect(const struct bisect_options *o, struct emit *out)
{
	bool absolute = o->max_peak.text;
	const struct amount *limit = absolute ? &o->max_peak.amount : &o->fail_above.amount;
	struct question q = { .out = out, .command = run_program_python(o->command) };
	char value[32];
	struct card *cards = NULL;
	size_t count;
	int rc = check_limits(o);

	if (!rc)
		rc = simcards_find(o->sim ? o->sim : "h100-80g", &cards, &count);
	if (!rc) {
		search_begin(&q, "bisect", cards, 1);
		question_text(&q, "good", o->good);
		question_text(&q, "bad", o->bad);
		question_text(&q, "folder", o->output);
		question_number(&q, "steps", (double)o->steps);
		snprintf(value, sizeof(value), "%.17g", limit->value);
		question_text(&q, "limit", value);
		question_number(&q, "percent", limit->percent);
		question_number(&q, "absolute", absolute);
		rc = question_ask(&q);
	}
	free(cards);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* bisect: the commit that raised the peak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../handover/search_engine.h"
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
	struct search s = { .out = out, .command = run_program_python(o->command) };
	char value[32];
	struct card *cards = NULL;
	size_t count;
	int rc = check_limits(o);

	if (!rc)
		rc = simcards_find(o->sim ? o->sim : "h100-80g", &cards, &count);
	if (!rc) {
		search_begin(&s, "bisect");
		search_cards(&s, cards, 1);
		search_text(&s, "good", o->good);
		search_text(&s, "bad", o->bad);
		search_text(&s, "folder", o->output ? o->output : "");
		search_number(&s, "steps", (double)o->steps);
		snprintf(value, sizeof(value), "%.17g", limit->value);
		search_text(&s, "limit", value);
		search_number(&s, "percent", limit->percent);
		search_number(&s, "absolute", absolute);
		rc = search_perform(&s);
	}
	free(cards);
	return rc;
}

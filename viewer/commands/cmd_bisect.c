/* SPDX-License-Identifier: Apache-2.0 */
/* bisect: the commit that raised the peak. */
#include <stdlib.h>
#include <string.h>

#include "../search/search_engine.h"
#include "command.h"
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
	struct card *cards = NULL;
	size_t count;
	int rc = check_limits(o);

	if (!rc)
		rc = simcards_find(o->sim ? o->sim : "h100-80g", &cards, &count);
	if (!rc) {
		search_begin(&s, "bisect");
		search_cards(&s, cards, 1);
		emit_text(s.request, "good", o->good);
		emit_text(s.request, "bad", o->bad);
		emit_text(s.request, "folder", o->output ? o->output : "");
		emit_signed(s.request, "steps", o->steps);
		emit_decimal(s.request, "limit", limit->value);
		emit_flag(s.request, "percent", limit->percent);
		emit_flag(s.request, "absolute", absolute);
		rc = search_perform(&s);
	}
	free(cards);
	return rc;
}

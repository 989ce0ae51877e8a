/* SPDX-License-Identifier: Apache-2.0 */
/* bisect: the commit that raised the peak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../search/bisect.h"
#include "command.h"
#include "run_program.h"
#include "simcards.h"

static int parse_limits(const struct bisect_options *o, struct bisect *b)
{
	b->max_peak = o->max_peak.text;
	b->limit = b->max_peak ? o->max_peak.amount : o->fail_above.amount;
	if (o->max_peak.given && o->fail_above.given)
		return say_error(EXIT_USAGE, "--max-peak and --fail-above exclude each other");
	if (strlen(o->sim ? o->sim : "") > 90 || (o->sim && strchr(o->sim, ',')))
		return say_error(EXIT_USAGE, "--sim takes one card, such as h100-80g");
	return 0;
}

/* The command line that git runs on each commit. */
static char **words_for_git(const struct bisect_options *o, const char *card)
{
	size_t n = 0, count = need_count(o->command);
	char steps[24], **words;

	words = need_new((count + 12) * sizeof(*words));
	snprintf(steps, sizeof(steps), "%ld", o->steps);
	words[n++] = (char *)"--sim";
	words[n++] = (char *)card;
	words[n++] = (char *)"--steps";
	words[n++] = need_copy(steps, strlen(steps));
	words[n++] = (char *)"--";
	words[n++] = (char *)o->good;
	words[n++] = (char *)o->bad;
	memcpy(words + n, o->command, count * sizeof(*words));
	return words;
}

int run_bisect(const struct bisect_options *o, struct emit *out)
{
	struct bisect b = { .good = o->good, .bad = o->bad };
	const char *card = o->sim ? o->sim : "h100-80g";
	struct card *cards = NULL;
	size_t count;
	int rc = parse_limits(o, &b);

	if (!rc)
		rc = simcards_find(card, &cards, &count);
	if (rc)
		return rc;
	b.card = cards[0];
	b.plan.steps = o->steps;
	b.plan.seconds = TRIAL_SECONDS;
	b.plan.command = run_program_python(o->command);
	b.self = words_for_git(o, card);
	if (o->output)
		snprintf(b.plan.folder, sizeof(b.plan.folder), "%.3000s", o->output);
	rc = bisect_is_step() ? bisect_step(&b) : bisect_perform(&b, out);
	free(cards);
	return rc;
}

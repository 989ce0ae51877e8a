/* SPDX-License-Identifier: Apache-2.0 */
/* regressions: commits of a lake whose peak is higher than before. */
#include "../handover/lake_files.h"
#include "../handover/question.h"
#include "../ask/command.h"

int run_regressions(const struct regressions_options *o, struct emit *out)
{
	struct question q = { .out = out };
	char limit[32];

	if (!lake_may_be(o->lake))
		return EXIT_UNREADABLE;
	question_begin(&q, QUESTION_LAKE, "regressions");
	question_text(&q, "lake", o->lake);
	question_text(&q, "against", o->against);
	question_text(&q, "since", o->since);
	snprintf(limit, sizeof(limit), "%.17g", o->fail_above.amount.value);
	question_text(&q, "limit", limit);
	question_number(&q, "percent", o->fail_above.amount.percent);
	question_number(&q, "fail", o->fail_above.given);
	return question_ask(&q);
}

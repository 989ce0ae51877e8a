/* SPDX-License-Identifier: Apache-2.0 */
/* regressions: commits of a lake whose peak is higher than before. */
#include "../handover/lake_engine.h"
#include "../ask/command.h"

int run_regressions(const struct regressions_options *o, struct emit *out)
{
	const struct lake_question q = { .what = "regressions",
					 .lake = o->lake,
					 .text = o->against,
					 .since = o->since,
					 .limit = o->fail_above.amount.value,
					 .percent = o->fail_above.amount.percent,
					 .fail = o->fail_above.given,
					 .out = out };

	return lake_may_be(o->lake) ? lake_ask(&q) : EXIT_UNREADABLE;
}

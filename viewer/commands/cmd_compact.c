/* SPDX-License-Identifier: Apache-2.0 */
/* compact: a lake's many files become one a table and month. */
#include "../handover/lake_engine.h"
#include "../ask/command.h"

int run_compact(const struct compact_options *o, struct emit *out)
{
	const struct lake_question q = { .what = "compact", .lake = o->lake, .out = out };

	return lake_may_be(o->lake) ? lake_ask(&q) : EXIT_UNREADABLE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* compact: a lake's many files become one a table and month. */
#include "../handover/lake_files.h"
#include "../handover/question.h"
#include "../ask/command.h"

int run_compact(const struct compact_options *o, struct emit *out)
{
	struct question q = { .out = out };

	if (!lake_may_be(o->lake))
		return EXIT_UNREADABLE;
	question_begin(&q, QUESTION_LAKE, "compact");
	question_text(&q, "lake", o->lake);
	return question_ask(&q);
}

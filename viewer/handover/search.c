/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"

#include <unistd.h>

#include "../base/asset.h"

ASSET_FILE(world, "python/gpumemtrace/_world.py");

void search_begin(struct question *q, const char *what, const struct card *cards, size_t count)
{
	question_begin(q, QUESTION_SEARCH, what);
	question_text(q, "world", asset_world);
	question_list(q, "environment", environ);
	question_list(q, "command", q->command);
	emit_array(q->request, "cards");
	for (size_t i = 0; i < count; i++) {
		emit_object(q->request, NULL);
		emit_text(q->request, "name", cards[i].name);
		emit_number(q->request, "memory", cards[i].memory);
		emit_number(q->request, "context", cards[i].context);
		emit_signed(q->request, "major", cards[i].major);
		emit_signed(q->request, "minor", cards[i].minor);
		emit_signed(q->request, "code", cards[i].code);
		emit_signed(q->request, "processors", cards[i].processors);
		emit_end(q->request);
	}
	emit_end(q->request);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/need.h"
#include "replay.h"

/* Reserved bytes at that event; lowers *next to the next event that changes them. */
static uint64_t reserved_at(const struct replay_outcome *o, size_t *at, uint64_t event,
			    uint64_t *next)
{
	while (*at < o->level_count && o->levels[*at].event <= event)
		++*at;
	if (*at < o->level_count && o->levels[*at].event < *next)
		*next = o->levels[*at].event;
	return *at ? o->levels[*at - 1].reserved : 0;
}

void replay_curve(FILE *f, const struct replay_try *tries, size_t count)
{
	size_t *at = need_new((count + 1) * sizeof(*at));

	fputs("request", f);
	for (size_t i = 0; i < count; i++)
		fprintf(f, ",\"%s\"", tries[i].conf);
	for (uint64_t event = 0, next; event != UINT64_MAX; event = next) {
		next = UINT64_MAX;
		fprintf(f, "\n%" PRIu64, event);
		for (size_t i = 0; i < count; i++)
			fprintf(f, ",%" PRIu64,
				reserved_at(&tries[i].outcome, &at[i], event, &next));
	}
	fputc('\n', f);
	free(at);
}

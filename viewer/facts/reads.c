/* SPDX-License-Identifier: Apache-2.0 */
#include "reads.h"

#include <stdlib.h>

#include "../base/need.h"

void reads_note(struct reads *r, const struct gmt_event *e)
{
	uint64_t width = e->size == 1 || e->size == 8 ? e->size : 0;
	bool fresh;
	uint32_t *at = map_put(&r->known, (uint64_t)e->stack << 4 | width, &fresh);

	if (fresh) {
		*at = (uint32_t)r->count;
		r->items = need_grow(r->items, &r->room, r->count, sizeof(*r->items));
		r->items[r->count++] =
			(struct read_place){ .stack = e->stack, .seq = e->seq, .size = e->size };
	}
	r->items[*at].states[e->arg0 < READ_STATES ? e->arg0 : 0]++;
}

void reads_free(struct reads *r)
{
	free(r->items);
	map_free(&r->known);
	*r = (struct reads){ 0 };
}

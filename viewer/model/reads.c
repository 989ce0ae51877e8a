/* SPDX-License-Identifier: Apache-2.0 */
#include "reads.h"

#include <stdlib.h>

void reads_note(struct reads *r, const struct gmt_event *e)
{
	uint64_t width = e->size == 1 || e->size == 8 ? e->size : 0;
	struct read_place *p =
		map_item(&r->known, (uint64_t)e->stack << 4 | width, r->items, r->count, r->room);

	if (!p->seq) {
		p->stack = e->stack;
		p->seq = e->seq;
		p->size = e->size;
	}
	p->states[e->arg0 < READ_STATES ? e->arg0 : 0]++;
}

void reads_free(struct reads *r)
{
	free(r->items);
	map_free(&r->known);
	*r = (struct reads){ 0 };
}

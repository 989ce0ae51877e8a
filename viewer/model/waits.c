/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"

void waits_init(struct waits *w)
{
	*w = (struct waits){ 0 };
	rows_init(&w->rows, sizeof(struct wait_row), NULL);
}

void waits_event(struct waits *w, const struct gmt_event *e, uint64_t freed)
{
	uint32_t *place = map_get(&w->open, e->addr);
	struct wait_row *row = place ? rows_at(&w->rows, *place) : NULL;

	if (e->kind == GMT_REUSE_WAIT && row) {
		row->streams++;
	} else if (e->kind == GMT_REUSE_WAIT) {
		*map_put(&w->open, e->addr, NULL) = w->rows.count;
		*(struct wait_row *)rows_add(&w->rows) =
			(struct wait_row){ e->addr, e->size, freed, 0, e->device, 1 };
	} else if (row && !--row->streams) {
		row->to = e->seq;
		map_remove(&w->open, e->addr);
	}
}

void waits_free(struct waits *w)
{
	rows_free(&w->rows);
	map_free(&w->open);
}

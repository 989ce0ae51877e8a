/* SPDX-License-Identifier: Apache-2.0 */
#include "side_tables.h"

#include "../../format/record.h"

void tensors_note(struct tensors *t, const struct gmt_event *e, bool leaf)
{
	bool fresh;
	uint32_t *at = e->size ? map_put(&t->places, e->addr, &fresh) : NULL;
	struct tensor *before = at && !fresh ? &t->items[*at] : NULL;

	if (!at || (before && before->leaf && !leaf))
		return;
	if (before && before->size == e->size) {
		before->leaf |= leaf;
		before->seq = e->seq;
		return;
	}
	if (before)
		before->latest = false;
	*at = (uint32_t)t->count;
	*need_item(t->items, t->count, t->room) =
		(struct tensor){ e->addr, e->size, e->seq, e->device, leaf, true };
}

void tensors_free(struct tensors *t)
{
	free(t->items);
	map_free(&t->places);
	*t = (struct tensors){ 0 };
}

void waits_event(struct waits *w, const struct gmt_event *e, uint64_t freed)
{
	struct wait_row *row = map_find(w, e->addr);

	if (e->kind == GMT_REUSE_WAIT && row) {
		row->streams++;
	} else if (e->kind == GMT_REUSE_WAIT) {
		*map_item(w, e->addr) =
			(struct wait_row){ e->addr, e->size, freed, 0, e->device, 1 };
	} else if (row && !--row->streams) {
		row->to = e->seq;
		map_remove(&w->ids, e->addr);
	}
}

void reads_note(struct reads *r, const struct gmt_event *e)
{
	uint64_t width = e->size == 1 || e->size == 8 ? e->size : 0;
	struct read_place *p = map_item(r, (uint64_t)e->stack << 4 | width);

	if (!p->seq) {
		p->stack = e->stack;
		p->seq = e->seq;
		p->size = e->size;
	}
	p->states[e->arg0 < READ_STATES ? e->arg0 : 0]++;
}

void reads_free(struct reads *r)
{
	map_items_free(r);
	*r = (struct reads){ 0 };
}

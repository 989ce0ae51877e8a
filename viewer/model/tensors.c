/* SPDX-License-Identifier: Apache-2.0 */
#include "tensors.h"

#include <stdlib.h>

#include "../base/need.h"

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

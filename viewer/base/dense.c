/* SPDX-License-Identifier: Apache-2.0 */
#include "dense.h"

#include <stdlib.h>
#include <string.h>

#include "need.h"

void dense_put(struct dense *d, uint32_t id, uint32_t number)
{
	size_t room = d->room ? d->room : 1024;

	if (id >= DENSE_MOST)
		return;
	while (room <= id)
		room *= 2;
	if (room > d->room) {
		d->items = need_resize(d->items, room * sizeof(*d->items));
		memset(d->items + d->room, 0, (room - d->room) * sizeof(*d->items));
		d->room = room;
	}
	d->items[id] = number;
}

void dense_free(struct dense *d)
{
	free(d->items);
	*d = (struct dense){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The list of requests of each device. */
#include "../base/need.h"
#include "requests_parts.h"

#define MOST_DEVICES 256

struct requests *requests_device(struct requests_all *all, int device)
{
	if (device < 0 || device >= MOST_DEVICES)
		return NULL;
	while (all->count <= (size_t)device) {
		struct requests *r;

		all->devices = need_grow(all->devices, &all->room, all->count, sizeof(*r));
		r = &all->devices[all->count];
		*r = (struct requests){ .device = (int)all->count++,
					.tells_pools = all->tells_pools };
		rows_init(&r->list, sizeof(struct request), NULL);
		rows_init(&r->lives, sizeof(struct request_life), NULL);
	}
	return &all->devices[device];
}

void requests_add(struct requests *r, enum request_kind kind, uint64_t value)
{
	struct request *row = rows_add(&r->list);

	row->kind = kind;
	row->value = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

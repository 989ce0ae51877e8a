/* SPDX-License-Identifier: Apache-2.0 */
/* A number for each id, where ids are assigned in sequence; 0 = none. Ids beyond the maximum have
 * none, and the caller must find theirs in another way. */
#ifndef VIEWER_DENSE_H
#define VIEWER_DENSE_H

#include <stddef.h>
#include <stdint.h>

#define DENSE_MOST (1u << 22)

struct dense {
	uint32_t *items;
	size_t room;
};

static inline uint32_t dense_get(const struct dense *d, uint32_t id)
{
	return id < d->room ? d->items[id] : 0;
}

void dense_put(struct dense *d, uint32_t id, uint32_t number);
void dense_free(struct dense *d);

#endif

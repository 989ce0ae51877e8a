/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks_elsewhere.h"

#include <string.h>

/* The device that a rank works on: the one on which it has most. NULL: it has memory on none. */
static const struct ranks_device *home(const struct ranks_row *row)
{
	const struct ranks_device *best = NULL;

	for (size_t i = 0; i < row->device_count; i++)
		if (!best || row->devices[i].peak > best->peak)
			best = &row->devices[i];
	return best;
}

/* The other rank that works on that device; the number of rows if there is none. UUIDs of
 * simulated devices are the same on every host. */
static size_t who_works_there(const struct ranks_table *t, size_t row, const struct ranks_device *d)
{
	const char *host = t->rows[row].file->host;
	size_t i = 0;

	for (; i < t->run->count; i++) {
		const struct ranks_device *h = home(&t->rows[i]);

		if (i != row && h && d->uuid[0] && !strcmp(h->uuid, d->uuid) &&
		    !strcmp(t->rows[i].file->host, host))
			break;
	}
	return i;
}

/* The least that a rank has where it works: no other rank is there, and contexts are alike. */
uint64_t ranks_elsewhere_context(const struct ranks_table *t)
{
	uint64_t least = 0;

	for (size_t i = 0; i < t->run->count; i++) {
		const struct ranks_device *h = home(&t->rows[i]);

		if (h && h->context && (!least || h->context < least))
			least = h->context;
	}
	return least;
}

uint64_t ranks_elsewhere_sum(const struct ranks_table *t, const struct ranks_elsewhere *e)
{
	const char *host = t->rows[e->row].file->host;
	uint64_t sum = 0, context = ranks_elsewhere_context(t);

	for (size_t i = 0; i < t->run->count; i++)
		for (size_t k = 0; k < t->rows[i].device_count; k++)
			if (!strcmp(t->rows[i].devices[k].uuid, e->device->uuid) &&
			    !strcmp(t->rows[i].file->host, host))
				sum += t->rows[i].devices[k].reserved + context;
	return sum;
}

bool ranks_elsewhere_next(const struct ranks_table *t, struct ranks_elsewhere *e)
{
	size_t k = e->device ? (size_t)(e->device - t->rows[e->row].devices) + 1 : 0;

	for (; e->row < t->run->count; e->row++, k = 0) {
		const struct ranks_row *row = &t->rows[e->row];
		const struct ranks_device *own = home(row);

		for (; k < row->device_count; k++) {
			e->device = &row->devices[k];
			if (!strcmp(e->device->uuid, own->uuid))
				continue;
			e->of = who_works_there(t, e->row, e->device);
			if (e->of < t->run->count)
				return true;
		}
	}
	return false;
}

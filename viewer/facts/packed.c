/* SPDX-License-Identifier: Apache-2.0 */
#include "packed.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "../base/need.h"

#define PIECE (1u << 18)

void packed_free(struct packed *p)
{
	for (size_t i = 0; i < p->count; i++)
		munmap(p->pieces[i], PIECE);
	free(p->pieces);
	*p = (struct packed){ 0 };
}

uint8_t *packed_begin(struct packed *p)
{
	if (!p->count || p->used + PACKED_MOST > PIECE) {
		*need_item(p->pieces, p->count, p->room) = need_pages(PIECE);
		p->used = 0;
	}
	return p->pieces[p->count - 1] + p->used;
}

void packed_end(struct packed *p, const uint8_t *end)
{
	p->used = (size_t)(end - p->pieces[p->count - 1]);
}

const uint8_t *packed_row(const struct packed *p, struct packed_place *place)
{
	while (place->piece < p->count) {
		size_t end = place->piece + 1 == p->count ? p->used : PIECE;

		if (place->at < end && p->pieces[place->piece][place->at])
			return p->pieces[place->piece] + place->at;
		if (place->piece + 1 == p->count)
			break;
		place->piece++;
		place->at = 0;
	}
	return NULL;
}

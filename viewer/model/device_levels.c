/* SPDX-License-Identifier: Apache-2.0 */
#include "device_levels.h"

#ifndef PIECE
#define PIECE (1u << 18)
#endif

void packed_init(struct packed *p, struct chunk_pool *pool)
{
	*p = (struct packed){ .chunks = chunks_new(PIECE, 0, pool) };
}

void packed_free(struct packed *p)
{
	chunks_free(p->chunks);
	*p = (struct packed){ 0 };
}

void packed_add_piece(struct packed *p)
{
	chunks_add(p->chunks);
	p->used = 0;
	p->room = PIECE - PACKED_MOST + 1;
}

const uint8_t *packed_row_further(const struct packed *p, struct packed_place *place)
{
	size_t count = p->chunks->count;

	while (place->piece < count) {
		size_t end = place->piece + 1 == count ? p->used : PIECE;
		const uint8_t *row = chunks_at(p->chunks, place->piece) + place->at;

		if (place->at < end && *row)
			return row;
		if (place->piece + 1 == count)
			break;
		place->piece++;
		place->at = 0;
	}
	return NULL;
}

void levels_init(struct levels *l, struct chunk_pool *pool)
{
	*l = (struct levels){ .last = need_new(LEVEL_DEVICES * sizeof(*l->last)) };
	packed_init(&l->rows, pool);
}

void levels_free(struct levels *l)
{
	packed_free(&l->rows);
	free(l->last);
	l->last = NULL;
}

/* A row begins with 1 + 2 * device, plus 1 if it holds a sample of the device. Event and time are
 * differences to the row before, bytes to the device's last level. */
void levels_add(struct levels *l, const struct device_level *level)
{
	struct device_level *last = &l->last[level->device];
	bool sample = level->context != last->context || level->free_bytes != last->free_bytes ||
		      level->total_bytes != last->total_bytes;
	uint8_t *p = packed_begin(&l->rows);

	p = put_varint(p, 1 + ((uint64_t)level->device << 1 | sample));
	p = put_varint(p, zigzag(level->seq - l->seq));
	p = put_varint(p, zigzag(level->ns - l->ns));
	p = put_varint(p, zigzag(level->reserved - last->reserved));
	if (sample) {
		p = put_varint(p, zigzag(level->context - last->context));
		p = put_varint(p, zigzag(level->free_bytes - last->free_bytes));
		p = put_varint(p, zigzag(level->total_bytes - last->total_bytes));
	}
	packed_end(&l->rows, p);
	l->seq = level->seq;
	l->ns = level->ns;
	*last = *level;
}

void levels_first(struct levels_cursor *c, const struct levels *l)
{
	*c = (struct levels_cursor){ .levels = l };
	levels_next(c);
}

static const uint8_t *get(const uint8_t *p, uint64_t *sum)
{
	uint64_t v;

	p = packed_get(p, &v);
	*sum += unzigzag(v);
	return p;
}

void levels_next(struct levels_cursor *c)
{
	const uint8_t *from = packed_row(&c->levels->rows, &c->place), *p = from;
	struct device_level *level;
	uint64_t head;

	c->now = NULL;
	if (!from)
		return;
	p = packed_get(p, &head);
	level = &c->devices[(head - 1) >> 1];
	level->device = (int32_t)((head - 1) >> 1);
	p = get(p, &c->seq);
	p = get(p, &c->ns);
	p = get(p, &level->reserved);
	if ((head - 1) & 1) {
		p = get(p, &level->context);
		p = get(p, &level->free_bytes);
		p = get(p, &level->total_bytes);
	}
	level->seq = c->seq;
	level->ns = c->ns;
	c->place.at += (size_t)(p - from);
	c->now = level;
}

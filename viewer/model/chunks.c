/* SPDX-License-Identifier: Apache-2.0 */
#include "chunks.h"

#include <sys/mman.h>

#include <zstd.h>

#define LEVEL 1	 /* zstd's compression level */
#define TILE  64 /* rows converted at a time, so that they stay in the CPU's cache */

struct chunk_place {
	struct chunks *table;
	size_t i;
};

struct chunk_pool *chunks_new_pool(void)
{
	return need_new(sizeof(struct chunk_pool));
}

void chunks_free_pool(struct chunk_pool *pool)
{
	if (!pool)
		return;
	ZSTD_freeCCtx(pool->pack);
	ZSTD_freeDCtx(pool->unpack);
	free(pool->queue);
	free(pool->buffer);
	free(pool->out);
	free(pool);
}

struct chunks *chunks_new(size_t bytes, size_t words, struct chunk_pool *pool)
{
	struct chunks *c = need_new(sizeof(*c));

	*c = (struct chunks){ .bytes = bytes, .words = words, .pool = pool };
	return c;
}

void chunks_free(struct chunks *c)
{
	for (size_t i = 0; c && i < c->count; i++) {
		if (c->items[i])
			munmap(c->items[i], c->bytes);
		free(c->kept[i].data);
	}
	if (c) {
		while (c->spare_count)
			munmap(c->spares[--c->spare_count], c->bytes);
		free(c->items);
		free(c->kept);
	}
	free(c);
}

/* Memory of piece i. In a short recording little of a table's first piece is used. Others are used
 * whole, and one call for all of their pages costs less than a fault for each. */
static uint8_t *new_memory(const struct chunks *c, size_t i)
{
	uint8_t *memory = need_pages(c->bytes);

#ifdef MADV_POPULATE_WRITE
	if (i)
		madvise(memory, c->bytes, MADV_POPULATE_WRITE);
#endif
	return memory;
}

/* Gives piece i memory, and appends it to the queue of pieces that can be compressed. */
static uint8_t *enter_chunk(struct chunks *c, size_t i)
{
	struct chunk_pool *pool = c->pool;

	c->items[i] = c->spare_count ? c->spares[--c->spare_count] : new_memory(c, i);
	if (!pool)
		return c->items[i];
	if (pool->count == pool->room && pool->first > pool->room / 2) {
		pool->count -= pool->first;
		memmove(pool->queue, pool->queue + pool->first, pool->count * sizeof(*pool->queue));
		pool->first = 0;
	}
	*need_item(pool->queue, pool->count, pool->room) = (struct chunk_place){ c, i };
	pool->bytes += c->bytes;
	return c->items[i];
}

uint8_t *chunks_add(struct chunks *c)
{
	size_t i = c->count;

	c->kept = need_grow(c->kept, &c->kept_room, i, sizeof(*c->kept));
	c->kept[i] = (struct chunk_kept){ 0 };
	*need_item(c->items, c->count, c->room) = NULL;
	if (c->spare_count)
		memset(c->spares[c->spare_count - 1], 0, c->bytes);
	return enter_chunk(c, i);
}

static void *room_for(uint8_t **buffer, size_t *room, size_t bytes)
{
	if (*room < bytes)
		*buffer = need_resize(*buffer, *room = bytes);
	return *buffer;
}

/* Writes the words column by column, each as its difference to the row before. Rows of one step
 * differ from those of the step before by constants, so their differences are equal. */
static void to_columns(uint32_t *to, const uint32_t *rows, size_t words, size_t count)
{
	for (size_t first = 0; first < count; first += TILE)
		for (size_t w = 0; w < words; w++) {
			const uint32_t *from = rows + first * words + w;
			uint32_t before = first ? *(from - words) : 0;
			size_t end = first + TILE < count ? first + TILE : count;

			for (size_t i = first; i < end; i++, from += words) {
				to[w * count + i] = *from - before;
				before = *from;
			}
		}
}

static void from_columns(uint32_t *rows, const uint32_t *from, size_t words, size_t count)
{
	for (size_t first = 0; first < count; first += TILE)
		for (size_t w = 0; w < words; w++) {
			uint32_t *to = rows + first * words + w;
			uint32_t sum = first ? *(to - words) : 0;
			size_t end = first + TILE < count ? first + TILE : count;

			for (size_t i = first; i < end; i++, to += words)
				*to = sum += from[w * count + i];
		}
}

static size_t rows_of(const struct chunks *c)
{
	return c->bytes / (c->words * sizeof(uint32_t));
}

/* False if zstd fails. */
static bool pack_chunk(struct chunks *c, size_t i)
{
	struct chunk_pool *pool = c->pool;
	size_t most = ZSTD_compressBound(c->bytes);
	void *from = c->items[i], *out = room_for(&pool->out, &pool->out_room, most);

	if (c->words) {
		from = room_for(&pool->buffer, &pool->buffer_room, c->bytes);
		to_columns(from, (uint32_t *)c->items[i], c->words, rows_of(c));
	}
	if (!pool->pack)
		pool->pack = ZSTD_createCCtx();
	most = pool->pack ? ZSTD_compressCCtx(pool->pack, out, most, from, c->bytes, LEVEL) : 0;
	if (!most || ZSTD_isError(most))
		return false;
	c->kept[i] = (struct chunk_kept){ need_copy(out, most), most };
	return true;
}

static void leave_memory(struct chunks *c, size_t i)
{
	if (!c->kept[i].data && !pack_chunk(c, i))
		return;
	if (c->spare_count == CHUNKS_SPARES)
		munmap(c->items[i], c->bytes);
	else
		c->spares[c->spare_count++] = c->items[i];
	c->items[i] = NULL;
}

uint8_t *chunks_unpack(struct chunks *c, size_t i)
{
	struct chunk_pool *pool = c->pool;
	uint8_t *chunk = enter_chunk(c, i), *to = chunk;

	if (c->words)
		to = room_for(&pool->buffer, &pool->buffer_room, c->bytes);
	if (!pool->unpack)
		pool->unpack = ZSTD_createDCtx();
	ZSTD_decompressDCtx(pool->unpack, to, c->bytes, c->kept[i].data, c->kept[i].len);
	if (c->words)
		from_columns((uint32_t *)chunk, (uint32_t *)to, c->words, rows_of(c));
	return chunk;
}

void chunks_pack(struct chunk_pool *pool)
{
	while (pool->bytes > CHUNKS_LIMIT && pool->first < pool->count) {
		struct chunk_place at = pool->queue[pool->first++];

		pool->bytes -= at.table->bytes;
		leave_memory(at.table, at.i);
	}
}

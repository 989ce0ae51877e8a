/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/machine.h"
#include "../base/need.h"

#define IN_MEMORY (1ull << 30) /* bytes of all tables together */

static uint64_t used; /* bytes of all tables */
static int file = -1;
static uint64_t file_end;

/* NULL: there is no such file, or no room in it. */
static void *map_piece(size_t bytes)
{
	void *p;

	if (file < 0)
		file = machine_temporary();
	if (file < 0 || ftruncate(file, (off_t)(file_end + bytes)))
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)file_end);
	if (p == MAP_FAILED)
		return NULL;
	file_end += bytes;
	return p;
}

/* Pages that nothing was written to take no memory. */
static void *new_piece(size_t bytes)
{
	void *p = NULL;

	if (__atomic_add_fetch(&used, bytes, __ATOMIC_RELAXED) > IN_MEMORY)
		p = map_piece(bytes);
	return p ? p : need_pages(bytes);
}

static size_t piece_bytes(const struct row_store *r)
{
	return (r->each * ROWS_PIECE + 4095) & ~(size_t)4095;
}

void rows_init(struct row_store *r, size_t each)
{
	*r = (struct row_store){ .each = each };
}

void rows_free(struct row_store *r)
{
	for (size_t i = 0; i < r->piece_count; i++)
		munmap(r->pieces[i], piece_bytes(r));
	__atomic_sub_fetch(&used, r->piece_count * piece_bytes(r), __ATOMIC_RELAXED);
	free(r->pieces);
	*r = (struct row_store){ .each = r->each };
}

void *rows_add(struct row_store *r)
{
	if (r->count == r->piece_count << ROWS_PIECE_BITS)
		*need_item(r->pieces, r->piece_count, r->piece_room) = new_piece(piece_bytes(r));
	return rows_at(r, r->count++);
}

unsigned rows_hash(const void *bytes, size_t n)
{
	uint64_t h = n, word;

	for (size_t i = 0; i < n; i += sizeof(word)) {
		memcpy(&word, (const uint8_t *)bytes + i, sizeof(word));
		h = (h ^ h >> 29 ^ word) * 0x9e3779b97f4a7c15u;
	}
	return (h ^ h >> 29) * 0x9e3779b97f4a7c15u >> 50;
}

uint32_t rows_share(struct row_store *r, uint32_t recent[ROWS_RECENT], const void *row)
{
	uint32_t *at = &recent[rows_hash(row, r->each)];

	if (!*at || memcmp(rows_at(r, *at), row, r->each)) {
		*at = r->count;
		memcpy(rows_add(r), row, r->each);
	}
	return *at;
}

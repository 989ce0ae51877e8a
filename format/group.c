/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a group are parts of one zstd frame. Columns with different kinds of bytes go into
 * separate zstd blocks, because all bytes of a zstd block share one table of byte frequencies.
 */
#include "group.h"

#include "codec_copies.h"

#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#define ALIGN 64u
#define ROOM  (GMT_BLOCK_RAW_MAX - GMT_COLUMNS_HEAD - GMT_COPIES_KEPT * GMT_EVENT_MAX)

/* A group with so many events ends: whoever wants its last ones reads them all. */
#define GROUP_EVENTS (16 * GMT_GROUP_EVENTS)

struct gmt_group {
	uint8_t *column[GMT_COLUMNS], *at[GMT_COLUMNS];
	size_t room; /* lower bound of the bytes left for the block's payload */
	ZSTD_CCtx *zstd;
	int level;
	uint32_t number, place;
	uint32_t events; /* added since the last pack */
	struct gmt_codec codec;
	struct gmt_copies copies;
};

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* For level 0. The match finder's table leaves the processor's caches between two blocks, so a
 * small table helps more than a better search. Most repeats are long. */
static const ZSTD_compressionParameters by_default = {
	.windowLog = GMT_GROUP_WINDOW,
	.chainLog = 13,
	.hashLog = 15,
	.searchLog = 1,
	.minMatch = 7,
	.strategy = ZSTD_fast,
};

static ZSTD_compressionParameters parameters(int level)
{
	ZSTD_compressionParameters p = ZSTD_getCParams(level, 1u << GMT_GROUP_WINDOW, 0);

	p.windowLog = GMT_GROUP_WINDOW;
	return level ? p : by_default;
}

static size_t zstd_bytes(int level)
{
	return aligned(ZSTD_estimateCStreamSize_usingCParams(parameters(level)));
}

size_t gmt_group_workspace(int level)
{
	return aligned(sizeof(struct gmt_group)) + GMT_COLUMNS * GMT_BLOCK_RAW_MAX +
	       zstd_bytes(level);
}

static void empty(struct gmt_group *g)
{
	memcpy(g->at, g->column, sizeof(g->at));
	g->room = ROOM;
	g->events = 0;
}

struct gmt_group *gmt_group_new(void *workspace, int level)
{
	struct gmt_group *g = workspace;
	uint8_t *p = (uint8_t *)workspace + aligned(sizeof(*g));

	memset(g, 0, sizeof(*g));
	g->level = level;
	for (unsigned i = 0; i < GMT_COLUMNS; i++, p += GMT_BLOCK_RAW_MAX)
		g->column[i] = p;
	g->zstd = ZSTD_initStaticCCtx(p, zstd_bytes(level));
	empty(g);
	return g->zstd ? g : NULL;
}

bool gmt_group_is_full(struct gmt_group *g)
{
	size_t used = 0;

	if (g->events == GMT_GROUP_EVENTS)
		return true;
	if (g->room >= GMT_EVENT_MAX)
		return false;
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		used += (size_t)(g->at[i] - g->column[i]);
	/* Events that copies.c kept come all at once, and may take more than was left of ROOM. */
	g->room = used < ROOM ? ROOM - used : 0;
	return g->room < GMT_EVENT_MAX;
}

void gmt_group_add(struct gmt_group *g, const struct gmt_event *e)
{
	gmt_copies_add(&g->copies, &g->codec, e, g->at);
	g->room -= GMT_EVENT_MAX;
	g->events++;
}

void gmt_group_expect(const struct gmt_group *g, const struct gmt_event *e)
{
	gmt_encode_expect(&g->codec, e);
}

static bool group_begin(struct gmt_group *g)
{
	ZSTD_compressionParameters p = parameters(g->level);
	const int settings[][2] = {
		{ ZSTD_c_windowLog, (int)p.windowLog },
		{ ZSTD_c_hashLog, (int)p.hashLog },
		{ ZSTD_c_chainLog, (int)p.chainLog },
		{ ZSTD_c_searchLog, (int)p.searchLog },
		{ ZSTD_c_minMatch, (int)p.minMatch },
		{ ZSTD_c_strategy, (int)p.strategy },
		{ ZSTD_c_targetLength, (int)p.targetLength },
	};
	bool ok = !ZSTD_isError(ZSTD_CCtx_reset(g->zstd, ZSTD_reset_session_and_parameters));

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(g->zstd, (ZSTD_cParameter)settings[i][0],
							settings[i][1])))
			ok = false;
	return ok;
}

static bool group_compress(struct gmt_group *g, ZSTD_outBuffer *to, const void *data, size_t len,
			   bool last)
{
	ZSTD_inBuffer in = { data, len, 0 };
	size_t left = ZSTD_compressStream2(g->zstd, to, &in, last ? ZSTD_e_flush : ZSTD_e_continue);

	return !ZSTD_isError(left) && in.pos == len && (!last || left == 0);
}

static bool pack(struct gmt_group *g, struct gmt_block_header *h, uint8_t *out)
{
	static const bool last[GMT_COLUMNS] = {
		[GMT_COL_STACK] = true,
		[GMT_COL_NEW] = true,
		[GMT_COL_TIME] = true,
		[GMT_COL_LATER] = true,
	};
	ZSTD_outBuffer to = { out, GMT_BLOCK_STORED_MAX, 0 };
	size_t lengths[GMT_COLUMNS];
	uint8_t head[GMT_COLUMNS_HEAD];
	size_t n;
	bool ok;

	gmt_copies_end(&g->copies, &g->codec, g->at);
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		lengths[i] = (size_t)(g->at[i] - g->column[i]);
	n = gmt_columns_head(lengths, head);
	ok = (g->place || group_begin(g)) && group_compress(g, &to, head, n, false);
	for (unsigned i = 0; i < GMT_COLUMNS; i++) {
		ok = ok && group_compress(g, &to, g->column[i], lengths[i], last[i]);
		n += lengths[i];
	}
	h->raw_bytes = (uint32_t)n;
	h->stored_bytes = (uint32_t)to.pos;
	return ok;
}

void gmt_group_break(struct gmt_group *g)
{
	g->place = 0;
	g->number++;
	memset(&g->codec, 0, sizeof(g->codec));
	gmt_copies_begin(&g->copies);
}

bool gmt_group_pack(struct gmt_group *g, struct gmt_block_header *h, uint8_t *out)
{
	bool ok = pack(g, h, out);

	h->codec = GMT_CODEC_COPIES;
	h->group = (uint16_t)(g->number * GMT_GROUP_BLOCKS + g->place);
	empty(g);
	if (++g->place == GMT_GROUP_BLOCKS || g->copies.past.count >= GROUP_EVENTS || !ok)
		gmt_group_break(g);
	return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to earlier events. The first byte says how the rest is taken: even: the first half are
 * kinds, masks and references, and every other column is the second half; what decodes is a repeat
 * if it is called one, and comes back when it is written again. Odd: each byte is an event of a
 * program that repeats itself; it must come back whatever the blocks it is cut into.
 */
#include <stdlib.h>
#include <string.h>

#include "../../format/codec_copies.h"
#include "../../format/record.h"
#include "../../format/varint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MOST 4096u

static struct gmt_codec in, out, back;
static struct gmt_past past, past_back; /* what is left over from other inputs must not matter */
static struct gmt_copies copies;
static struct gmt_event events[MOST];
static uint32_t count, checked;
static uint8_t room[GMT_COLUMNS][64 * MOST], *at[GMT_COLUMNS];

static void begin_block(void)
{
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		at[i] = room[i];
}

static void begin(void)
{
	memset(&in, 0, sizeof(in));
	memset(&out, 0, sizeof(out));
	memset(&back, 0, sizeof(back));
	past.count = past_back.count = 0;
	past.copy.left = 0;
	gmt_copies_begin(&copies);
	count = checked = 0;
	begin_block();
}

static void put(const struct gmt_event *e)
{
	events[count++] = *e;
	gmt_copies_add(&copies, &out, e, at);
}

/* The block that was written last holds the events since the one before. */
static void check_block(void)
{
	struct cursor columns[GMT_COLUMNS];
	struct gmt_event e;

	gmt_copies_end(&copies, &out, at);
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		columns[i] = (struct cursor){ room[i], at[i], false };
	past_back.copy.left = 0;
	for (; checked < count; checked++)
		if (gmt_decode_copies(&past_back, &back, columns, &e) ||
		    memcmp(&e, &events[checked], sizeof(e)) != 0)
			abort();
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		if (columns[i].p != at[i])
			abort();
	begin_block();
}

static bool is_copy_of(const struct gmt_event *e, const struct gmt_event *of)
{
	return of->kind == e->kind && of->addr == e->addr && of->size == e->size &&
	       of->arg1 == e->arg1 && of->device == e->device;
}

/* A copy names an event that was there (several can claim one seq). */
static void check_copy(const struct gmt_event *e)
{
	uint64_t seq = past.copy.of_seq + past.copy.run - 1;
	uint32_t i = count;

	while (i > 0 && (events[i - 1].seq != seq || !is_copy_of(e, &events[i - 1])))
		i--;
	if (!i || seq >= e->seq)
		abort();
}

/* A known kind that claims more fields than it has: they are not written again. */
static void drop_others(struct gmt_event *e)
{
	unsigned f = gmt_kind_is_known(e->kind) ? gmt_kind_fields(e->kind) : F_ALL;

	e->addr = f & F_ADDR ? e->addr : 0;
	e->size = f & F_SIZE ? e->size : 0;
	e->arg0 = f & F_ARG0 ? e->arg0 : 0;
	e->arg1 = f & F_ARG1 ? e->arg1 : 0;
	e->stream = f & F_STREAM ? e->stream : 0;
	e->name = f & F_NAME ? e->name : 0;
	e->scope = f & F_SCOPE ? e->scope : 0;
	e->device = f & F_DEVICE ? e->device : -1;
	e->stack = f & F_STACK ? e->stack : 0;
}

static void any_references(const uint8_t *data, size_t len)
{
	const uint8_t *half = data + len / 2;
	struct cursor columns[GMT_COLUMNS];
	struct gmt_event e;

	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		columns[i] = (struct cursor){ i ? half : data, i ? data + len : half, false };
	while (count < MOST && gmt_decode_copies(&past, &in, columns, &e) == 0) {
		drop_others(&e);
		if (past.copy.run)
			check_copy(&e);
		put(&e);
	}
	check_block();
}

static uint64_t arg0_of(unsigned kind, uint64_t now, uint64_t step)
{
	if (kind == GMT_TAG_SAVED || kind == GMT_TAG_RELEASED)
		return now;
	return kind == GMT_RANGE_BEGIN ? step * 3 : 8;
}

static void program(const uint8_t *data, size_t len)
{
	static const uint16_t kinds[] = { GMT_BLOCK_ALLOC,  GMT_BLOCK_FREE,  GMT_TAG_SAVED, GMT_USE,
					  GMT_TAG_RELEASED, GMT_RANGE_BEGIN, GMT_MEM_ALLOC, 100 };
	uint64_t seq = 0, now = 0;

	for (size_t i = 0; i < len && count < MOST; i++) {
		uint16_t kind = kinds[data[i] & 7];
		unsigned f = kind == 100 ? F_ADDR : gmt_kind_fields(kind);
		uint64_t step = i / 16; /* numbers of its own for each 16 events */

		if (data[i] == 0xff)
			check_block();
		seq += data[i] == 0xfe ? 5 : 1;
		now += data[i] * 100;
		put(&(struct gmt_event){
			.seq = seq,
			.time_ns = now,
			.addr = f & F_ADDR ? 4096 + (data[i] >> 3) * 512 : 0,
			.size = f & F_SIZE ? 512 : 0,
			.arg0 = f & F_ARG0 ? arg0_of(kind, now, step) : 0,
			.stack = f & F_STACK ? 1 + (data[i] >> 3) : 0,
			.scope = f & F_SCOPE && data[i] & 64 ? (uint32_t)step * (data[i] & 32) + 1
							     : 0,
			.kind = kind,
			.device = f & F_DEVICE ? 0 : -1,
		});
	}
	check_block();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!len)
		return 0;
	begin();
	if (data[0] % 2)
		program(data + 1, len - 1);
	else
		any_references(data + 1, len - 1);
	return 0;
}

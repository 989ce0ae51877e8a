/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the broken recordings of tests/data/bad, some from training.gmt (700 events in 7 blocks, an
 * index, an end), some forged with good checksums:
 *
 *	make build/data/make_bad && build/data/make_bad tests/data/v1/training.gmt \
 *		tests/data/v2/training.gmt tests/data/bad
 *
 * What each must give is in expected.txt there, written by hand.
 */
#include "../unit/recordings.h"

static const char *folder;
static struct bytes good;

static void save(const char *name, const void *data, size_t len)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	write_file(path, data, len);
}

/* Offset of the n-th block's header in the good file. */
static size_t block_at(unsigned n)
{
	size_t at = 64;
	struct gmt_block_header h;

	while (n--) {
		memcpy(&h, good.data + at, sizeof(h));
		at += sizeof(h) + h.stored_bytes;
	}
	return at;
}

static void save_flipped(const char *name, size_t at)
{
	good.data[at] ^= 0x10;
	save(name, good.data, good.len);
	good.data[at] ^= 0x10;
}

/* good[0..upto), `len` bytes of noise, good[from..]. */
static void save_spliced(const char *name, size_t upto, size_t len, size_t from)
{
	uint8_t *copy = malloc(good.len + len);
	struct chance c = { 1 };

	memcpy(copy, good.data, upto);
	for (size_t i = 0; i < len; i++)
		copy[upto + i] = (uint8_t)chance_next(&c);
	memcpy(copy + upto + len, good.data + from, good.len - from);
	save(name, copy, upto + len + good.len - from);
	free(copy);
}

static void make_damaged(void)
{
	save("empty.gmt", "", 0);
	save("text.gmt", "step 1: loss 3.2\nstep 2: loss 2.9\n", 34);
	save("header_cut.gmt", good.data, 40);
	save("block_cut.gmt", good.data, block_at(4) - 5);
	save("block_header_cut.gmt", good.data, block_at(3) + 30);
	save("no_end.gmt", good.data, block_at(7));
	save_flipped("header_flipped.gmt", 9);
	save_flipped("block_flipped.gmt", block_at(3) - 1);
	save_flipped("block_header_flipped.gmt", block_at(2) + 20);
	save_flipped("end_flipped.gmt", good.len - 1);
	save_spliced("half_block.gmt", block_at(3) - 200, 0, block_at(3));
	save_spliced("noise_between.gmt", block_at(3), 5000, block_at(3));
	save_spliced("no_header.gmt", 0, 0, 64);
	save_spliced("noise_behind.gmt", good.len, 5000, good.len);
	good.data[9] ^= 1;
	save("header_only_flipped.gmt", good.data, 64);
	good.data[9] ^= 1;
}

#define NEWER 1000u /* than any that is */

static void make_newer(void)
{
	struct gmt_file_header h = { .version = NEWER, .header_bytes = 64, .pid = 1 };
	struct bytes live = new_live(1, 1);

	gmt_file_header_seal(&h);
	save("newer.gmt", &h, sizeof(h));
	((struct gmt_live_header *)live.data)->version = NEWER;
	save("newer_live.gmt.live", live.data, 4096);
	free(live.data);
}

/* A recording of this one block, whose checksums are good whatever it says. */
static void save_forged(const char *name, struct gmt_block_header h, const void *payload)
{
	struct gmt_file_header file = { .version = GMT_VERSION, .header_bytes = 64, .pid = 1 };
	uint8_t *out = malloc(128 + h.stored_bytes);

	gmt_file_header_seal(&file);
	gmt_block_seal(&h, payload);
	memcpy(out, &file, 64);
	memcpy(out + 64, &h, 64);
	memcpy(out + 128, payload, h.stored_bytes);
	save(name, out, 128 + h.stored_bytes);
	free(out);
}

static void make_forged(void)
{
	static struct gmt_codec codec;
	uint8_t raw[3 * GMT_EVENT_MAX];
	struct gmt_event a = plain_event(1), b = plain_event(2);
	size_t n = gmt_encode_event(&codec, &a, raw), m = gmt_encode_event(&codec, &b, raw + n);
	struct gmt_block_header h = {
		.type = GMT_BLOCK_EVENTS,
		.raw_bytes = (uint32_t)(n + m),
		.stored_bytes = (uint32_t)(n + m),
		.count = 2,
		.first_seq = 1,
		.last_seq = 2,
		.first_ns = 1000,
		.last_ns = 2000,
	};
	struct gmt_block_header x = h;

	save_forged("forged_nothing.gmt", h,
		    raw); /* a good file, so that the rest proves something */
	x.count = UINT32_MAX;
	save_forged("forged_count.gmt", x, raw);
	x = h;
	x.codec = GMT_CODEC_ZSTD;
	save_forged("forged_zstd.gmt", x, raw);
	x.codec = 7;
	save_forged("forged_codec.gmt", x, raw);
	x = h;
	x.raw_bytes = GMT_BLOCK_RAW_MAX;
	save_forged("forged_raw_bytes.gmt", x, raw);
	raw[n] = 127;
	save_forged("forged_record.gmt", h, raw);
	x = h;
	x.type = GMT_BLOCK_DEFS;
	x.count = 1;
	memcpy(raw, "\1\1\xff\xff\xff\xff\xf", 7); /* a string of 4 GiB */
	save_forged("forged_def.gmt", x, raw);
}

/* All events are of one group: behind a block that is lost none can be read. */
static void make_groups(void)
{
	struct gmt_block_header h;

	save_flipped("group_flipped.gmt", block_at(4) - 1);
	save_spliced("group_missing.gmt", block_at(3), 0, block_at(4));
	save_spliced("group_no_start.gmt", block_at(1), 0, block_at(2));
	memcpy(&h, good.data + block_at(2), sizeof(h));
	h.group ^= 1 << 4; /* says that it is of another group */
	gmt_block_seal(&h, good.data + block_at(2) + sizeof(h));
	memcpy(good.data + block_at(2), &h, sizeof(h));
	save("group_other.gmt", good.data, good.len);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: make_bad V1/TRAINING.gmt V2/TRAINING.gmt FOLDER\n");
		return 2;
	}
	good = read_file(argv[1]);
	folder = argv[3];
	make_damaged();
	make_newer();
	make_forged();
	free(good.data);
	good = read_file(argv[2]);
	make_groups();
	free(good.data);
	return 0;
}

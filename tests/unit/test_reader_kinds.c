/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a later version: kinds from 64 to 127 are passed over and change nothing that stands
 * around them; any other kind that this version lacks refuses the file. In every form in which they
 * are written: columns, records, rings, definitions, blocks.
 *
 * links: tests/unit/recordings.c
 */
#include <fcntl.h>
#include <unistd.h>

#include "recordings.h"
#include "../../format/record.h"

#define PID 77

static char path[128], live_path[140];

static void name_files(const char *name)
{
	snprintf(path, sizeof(path), "%s", scratch_path(name));
	snprintf(live_path, sizeof(live_path), "%s.live", path);
}

/* A recording of what `write` writes. */
static void record(void (*write)(struct gmt_writer *w, void *ctx), void *ctx)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct gmt_writer *w = open_writer(fd, PID);

	assert_non_null(w);
	write(w, ctx);
	assert_int_equal(gmt_writer_finish(w), 0);
	close_writer(w);
	close(fd);
}

/* 1,000 plain events by chance mixed with extra ones, in blocks of 150. */
static void write_mixed(struct gmt_writer *w, void *ctx)
{
	struct chance c = { 7 };
	bool extras = *(bool *)ctx;

	for (uint64_t i = 1; i <= 1000; i++) {
		struct gmt_event e = plain_event(2 * i), x = chance_extra(&c);

		assert_int_equal(gmt_writer_event(w, &e), 0);
		x.seq = 2 * i + 1;
		x.time_ns = e.time_ns + 1;
		if (extras && chance_below(&c, 2))
			assert_int_equal(gmt_writer_event(w, &x), 0);
		if (i % 150 == 0)
			assert_int_equal(gmt_writer_flush(w), 0);
	}
}

static size_t check_plain(const struct heard *h)
{
	uint64_t next = 1;
	size_t extras = 0;

	assert_int_equal(h->err, 0);
	assert_int_equal(h->info.damaged_blocks + h->info.skipped_bytes, 0);
	for (size_t i = 0; i < h->events_used; i++) {
		struct gmt_event want = plain_event(2 * next);

		if (gmt_kind_is_extra(h->events[i].kind)) {
			extras++;
			continue;
		}
		assert_true(same_event(&h->events[i], &want));
		next++;
	}
	assert_int_equal(next, 1001);
	return extras;
}

static void extra_events_in_columns(void **state)
{
	(void)state;
	name_files("extra.gmt");
	for (int with = 0; with < 2; with++) {
		struct heard h;

		record(write_mixed, &(bool){ with });
		h = hear(path);
		assert_int_equal(check_plain(&h) > 300, with);
		heard_free(&h);
	}
}

static void copy_events(struct gmt_writer *w, void *ctx)
{
	const struct heard *h = ctx;

	for (size_t i = 0; i < h->events_used; i++)
		assert_int_equal(gmt_writer_event(w, &h->events[i]), 0);
	for (size_t i = 0; i < h->defs_used; i++)
		assert_int_equal(gmt_writer_def(w, &h->defs[i]), 0);
}

/* A copy by this version has the events that it cannot read as they were. */
static void extra_events_are_copied(void **state)
{
	struct heard first, second;

	(void)state;
	name_files("copied.gmt");
	record(write_mixed, &(bool){ true });
	first = hear(path);
	record(copy_events, &first);
	second = hear(path);
	assert_int_equal(first.events_used, second.events_used);
	for (size_t i = 0; i < first.events_used; i++)
		assert_true(same_event(&first.events[i], &second.events[i]));
	heard_free(&first);
	heard_free(&second);
}

/* A file of one block with these bytes, as another writer could have made it. */
static void save_block(struct gmt_block_header h, const void *payload)
{
	struct gmt_file_header file = { .version = GMT_VERSION, .header_bytes = 64, .pid = PID };
	uint8_t out[2048];

	assert_true(128 + h.stored_bytes <= sizeof(out));
	h.raw_bytes = h.stored_bytes;
	gmt_file_header_seal(&file);
	gmt_block_seal(&h, payload);
	memcpy(out, &file, 64);
	memcpy(out + 64, &h, 64);
	memcpy(out + 128, payload, h.stored_bytes);
	write_file(path, out, 128 + h.stored_bytes);
}

/* Two plain events and one of `kind` between them, as records. */
static struct heard hear_records(uint16_t kind)
{
	static struct gmt_codec codec;
	struct gmt_event events[] = { plain_event(1), plain_event(2), plain_event(3) };
	struct gmt_block_header h = {
		.type = GMT_BLOCK_EVENTS,
		.count = 3,
		.first_seq = 1,
		.last_seq = 3,
		.first_ns = 1000,
		.last_ns = 3000,
	};
	uint8_t raw[3 * GMT_EVENT_MAX];

	memset(&codec, 0, sizeof(codec));
	events[1].kind = kind;
	for (int i = 0; i < 3; i++)
		h.stored_bytes +=
			(uint32_t)gmt_encode_event(&codec, &events[i], raw + h.stored_bytes);
	save_block(h, raw);
	return hear(path);
}

static void kinds_in_records(void **state)
{
	static const uint16_t refused[] = { 8, 59, 128, 200, UINT16_MAX };
	struct gmt_event last = plain_event(3);
	struct heard h = { 0 };

	(void)state;
	name_files("records.gmt");
	for (uint16_t kind = 64; kind < 128; kind++) {
		h = hear_records(kind);
		assert_int_equal(h.err, 0);
		assert_int_equal(h.events_used, 3);
		assert_true(same_event(&h.events[2], &last));
		assert_int_equal(h.info.damaged_blocks, 0);
		heard_free(&h);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		h = hear_records(refused[i]);
		assert_int_equal(h.err, -GMT_ERR_UNKNOWN_KIND);
		assert_int_equal(h.info.damaged_blocks, 0);
		heard_free(&h);
	}
}

static void write_one(struct gmt_writer *w, void *ctx)
{
	for (uint64_t i = 1; i <= 900; i++) {
		struct gmt_event e = plain_event(i);

		if (i == 500)
			e.kind = *(uint16_t *)ctx;
		assert_int_equal(gmt_writer_event(w, &e), 0);
		if (i % 100 == 0)
			assert_int_equal(gmt_writer_flush(w), 0);
	}
}

/* Also where the reader begins behind it, and only passes over it on the way. */
static void required_events_in_columns(void **state)
{
	struct heard h;

	(void)state;
	name_files("required.gmt");
	record(write_one, &(uint16_t){ 128 });
	h = hear(path);
	assert_int_equal(h.err, -GMT_ERR_UNKNOWN_KIND);
	assert_int_equal(h.info.damaged_blocks, 0);
	heard_free(&h);
	h = hear_between(path, 0, 400000);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.events_used, 400);
	heard_free(&h);
	h = hear_between(path, 800000, UINT64_MAX);
	assert_int_equal(h.err, -GMT_ERR_UNKNOWN_KIND);
	heard_free(&h);
}

static void write_def(struct gmt_writer *w, void *ctx)
{
	struct gmt_def known = { GMT_DEF_STRING, 1, 3, "one" };
	struct gmt_def d = { *(uint16_t *)ctx, 2, 5, "later" };
	struct gmt_event e = plain_event(1);

	assert_int_equal(gmt_writer_def(w, &d), 0);
	assert_int_equal(gmt_writer_def(w, &known), 0);
	assert_int_equal(gmt_writer_event(w, &e), 0);
}

static void kinds_of_definitions(void **state)
{
	struct heard h;

	(void)state;
	name_files("defs.gmt");
	record(write_def, &(uint16_t){ 64 });
	h = hear(path);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.events_used, 1);
	assert_int_equal(h.defs_used, 2);
	heard_free(&h);
	for (unsigned kind = 10; kind <= 128; kind += 118) {
		record(write_def, &(uint16_t){ (uint16_t)kind });
		h = hear(path);
		assert_int_equal(h.err, -GMT_ERR_UNKNOWN_KIND);
		heard_free(&h);
	}
}

static void types_and_codecs_of_blocks(void **state)
{
	static const struct {
		uint8_t type, codec;
		int err;
	} cases[] = {
		{ 64, GMT_CODEC_STORED, 0 },
		{ 127, GMT_CODEC_STORED, 0 },
		{ 5, GMT_CODEC_STORED, -GMT_ERR_UNKNOWN_KIND },
		{ 128, GMT_CODEC_STORED, -GMT_ERR_UNKNOWN_KIND },
		{ GMT_BLOCK_EVENTS, 4, -GMT_ERR_UNKNOWN_KIND },
	};

	(void)state;
	name_files("blocks.gmt");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gmt_block_header h = { .type = cases[i].type,
					      .codec = cases[i].codec,
					      .count = 1,
					      .stored_bytes = 8 };
		struct heard got;

		save_block(h, "payload");
		got = hear(path);
		assert_int_equal(got.err, cases[i].err);
		assert_int_equal(got.info.damaged_blocks + got.info.skipped_bytes, 0);
		heard_free(&got);
	}
}

static struct heard hear_live(uint16_t kind, uint16_t def_kind)
{
	struct bytes live = new_live(PID, 1);
	struct gmt_def d = { def_kind, 2, 5, "later" };

	for (uint64_t i = 1; i <= 30; i++) {
		struct gmt_event e = plain_event(i);

		if (i == 20)
			e.kind = kind;
		assert_true(gmt_ring_push(live_ring(live, 0), &e));
		if (i == 10)
			assert_true(gmt_ring_push_def(live_ring(live, 0), &d));
	}
	write_file(live_path, live.data, live.len);
	free(live.data);
	return hear(live_path);
}

static void kinds_in_rings(void **state)
{
	struct gmt_event last = plain_event(30);
	struct heard h;

	(void)state;
	name_files("rings.gmt");
	h = hear_live(100, 100);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.events_used, 30);
	assert_true(same_event(&h.events[29], &last));
	heard_free(&h);
	h = hear_live(8, 100);
	assert_int_equal(h.err, -GMT_ERR_UNKNOWN_KIND);
	h = hear_live(100, 128);
	assert_int_equal(h.err, -GMT_ERR_UNKNOWN_KIND);
	heard_free(&h);
}

/* The version of the program that wrote a file is known of files that are refused, too. */
static void says_who_wrote(void **state)
{
	struct gmt_file_header h = { .version = GMT_VERSION + 1, .header_bytes = 64, .pid = PID };
	struct bytes live = new_live(PID, 1);
	char writer[GMT_WRITER_TEXT + 1];
	int err;

	(void)state;
	name_files("writer.gmt");
	memcpy(h.origin.writer, "1.22.333-longest", GMT_WRITER_TEXT);
	gmt_file_header_seal(&h);
	write_file(path, &h, sizeof(h));
	assert_null(gmt_reader_open(path, &err));
	assert_int_equal(err, -GMT_ERR_NEWER_VERSION);
	gmt_reader_writer(path, writer);
	assert_string_equal(writer, "1.22.333-longest");
	unlink(path);
	memcpy(((struct gmt_live_header *)live.data)->origin.writer, "2.0\033[", 5);
	write_file(live_path, live.data, live.len);
	gmt_reader_writer(path, writer);
	assert_string_equal(writer, "2.0?[");
	gmt_reader_writer("tests/data/v2/tiny.gmt", writer);
	assert_string_equal(writer, "");
	gmt_reader_writer("/nonexistent", writer);
	assert_string_equal(writer, "");
	free(live.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extra_events_in_columns),
		cmocka_unit_test(extra_events_are_copied),
		cmocka_unit_test(kinds_in_records),
		cmocka_unit_test(required_events_in_columns),
		cmocka_unit_test(kinds_of_definitions),
		cmocka_unit_test(types_and_codecs_of_blocks),
		cmocka_unit_test(kinds_in_rings),
		cmocka_unit_test(says_who_wrote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

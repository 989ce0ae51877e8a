/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec: what goes in comes out, whatever it is; unknown records are skipped; nothing that is
 * cut or forged is read beyond its end; events of a training take few bytes.
 *
 * links: tests/unit/recordings.c tests/unit/training.c
 */
#include <stdio.h>

#include <zstd.h>

#include "../../format/record.h"
#include "../../format/varint.h"
#include "recordings.h"

static void check_round_trip(struct gmt_codec *out, struct gmt_codec *in, const struct gmt_event *e)
{
	uint8_t buf[GMT_EVENT_MAX];
	struct gmt_event back;
	size_t n = gmt_encode_event(out, e, buf);

	assert_true(n <= GMT_EVENT_MAX);
	assert_int_equal(gmt_decode_event(in, buf, n, &back), (long)n);
	assert_true(same_event(e, &back));
}

static void check_columns(struct gmt_codec *out, struct gmt_codec *in, const struct gmt_event *e)
{
	static uint8_t room[GMT_COLUMNS][GMT_EVENT_MAX];
	uint8_t *at[GMT_COLUMNS];
	struct cursor columns[GMT_COLUMNS];
	struct gmt_event back;

	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		at[i] = room[i];
	gmt_encode_columns(out, e, at);
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		columns[i] = (struct cursor){ room[i], at[i], false };
	assert_int_equal(gmt_decode_columns(in, columns, &back), 0);
	assert_true(same_event(e, &back));
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		assert_ptr_equal(columns[i].p, at[i]);
}

/* The objects of tags: new ones, ones named again near and far, ones that are long forgotten. */
static void any_events_round_trip_in_columns(void **state)
{
	static struct gmt_codec out, in;
	struct chance c = { 3 };

	(void)state;
	for (int i = 0; i < 300000; i++) {
		struct gmt_event e = chance_event(&c);

		if (i % 2)
			e.kind = (uint16_t)(GMT_TAG_LEAF + chance_below(&c, 5));
		e = (struct gmt_event){ .seq = e.seq,
					.kind = e.kind,
					.device = e.device,
					.time_ns = e.time_ns,
					.arg0 = e.arg0 };
		if (i % 2)
			e.arg0 = 0x7f0000000000 + 16 * chance_below(&c, i % 4 == 1 ? 50 : 20000);
		if (!(gmt_kind_fields(e.kind) & F_ARG0))
			e.arg0 = 0;
		if (!(gmt_kind_fields(e.kind) & F_DEVICE))
			e.device = -1;
		check_columns(&out, &in, &e);
	}
}

static void any_events_round_trip(void **state)
{
	static struct gmt_codec out, in, out_columns, in_columns;
	struct chance c = { 1 };

	(void)state;
	for (int i = 0; i < 300000; i++) {
		struct gmt_event e = chance_event(&c);

		check_round_trip(&out, &in, &e);
		check_columns(&out_columns, &in_columns, &e);
	}
}

/* All members at their greatest: the longest record there is still fits. */
static void greatest_values_fit(void **state)
{
	static struct gmt_codec out, in;

	(void)state;
	for (unsigned kind = 1; kind <= 64; kind++) {
		unsigned f = kind < 64 ? gmt_kind_fields(kind) : F_ALL;
		struct gmt_event e = { .kind = (uint16_t)kind, .flags = UINT16_MAX, .device = -1 };

		if (kind < 64 && !gmt_kind_is_known(kind))
			continue;
		e.seq = e.time_ns = 1ULL << 63;
		e.thread = UINT32_MAX;
		e.addr = f & F_ADDR ? 0x7fffffffffffffff : 0;
		e.size = f & F_SIZE ? UINT64_MAX : 0;
		e.arg0 = f & F_ARG0 ? 1ULL << 63 : 0;
		e.arg1 = f & F_ARG1 ? 1ULL << 63 : 0;
		e.stream = f & F_STREAM ? UINT64_MAX : 0;
		e.name = f & F_NAME ? UINT32_MAX : 0;
		e.scope = f & F_SCOPE ? UINT32_MAX : 0;
		e.stack = f & F_STACK ? UINT32_MAX : 0;
		e.device = f & F_DEVICE ? INT32_MIN : -1;
		check_round_trip(&out, &in, &e);
	}
}

/* Members that a kind does not carry are neither written nor read. */
static void other_members_are_left_out(void **state)
{
	static struct gmt_codec out, in;
	struct gmt_event e = { .seq = 1, .kind = GMT_MEMINFO, .addr = 5, .size = 6, .stack = 7 };
	struct gmt_event back;
	uint8_t buf[GMT_EVENT_MAX];
	size_t n;

	(void)state;
	e.arg0 = 8;
	n = gmt_encode_event(&out, &e, buf);
	assert_int_equal(gmt_decode_event(&in, buf, n, &back), (long)n);
	assert_int_equal(back.addr, 0);
	assert_int_equal(back.size, 0);
	assert_int_equal(back.stack, 0);
	assert_int_equal(back.arg0, 8);
	e.kind = GMT_TAG_RELEASED;
	n = gmt_encode_event(&out, &e, buf);
	assert_int_equal(gmt_decode_event(&in, buf, n, &back), (long)n);
	assert_int_equal(back.device, -1);
}

/* Events of kinds that the tables lack come back too, and those behind them, in both forms. */
static void extra_kinds_round_trip(void **state)
{
	static struct gmt_codec out, in, out_columns, in_columns;
	struct chance c = { 5 };

	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct gmt_event e = i % 2 ? chance_event(&c) : chance_extra(&c);

		check_round_trip(&out, &in, &e);
		check_columns(&out_columns, &in_columns, &e);
	}
}

/* Other kinds that the tables lack may change what the known ones mean. */
static void other_kinds_are_refused(void **state)
{
	static struct gmt_codec out, in;
	uint8_t buf[GMT_EVENT_MAX];

	(void)state;
	for (unsigned kind = 1; kind <= UINT16_MAX; kind++) {
		struct gmt_event e = { .kind = (uint16_t)kind, .device = -1 }, back;
		size_t n = gmt_encode_event(&out, &e, buf);
		bool ok = gmt_kind_is_known(kind) || (kind >= 64 && kind < 128);

		assert_int_equal(gmt_decode_event(&in, buf, n, &back),
				 ok ? (long)n : -GMT_ERR_UNKNOWN_KIND);
	}
}

/* Kinds below 64 are written without their fields: a new one would shift all that follows it. */
static void kinds_below_64_stay_as_they_are(void **state)
{
	static const uint64_t given = 0xf01c7f001ffffcfe; /* bit = number */
	uint64_t now = 0;

	(void)state;
	for (unsigned kind = 0; kind < 64; kind++)
		now |= (uint64_t)gmt_kind_is_known(kind) << kind;
	assert_int_equal(now, given);
}

/* A later version may add members behind the known ones of a known kind. */
static void longer_records_are_read(void **state)
{
	static struct gmt_codec out, in;
	struct gmt_event a = plain_event(7), back;
	uint8_t buf[GMT_EVENT_MAX + 8] = { 0 };
	size_t n = gmt_encode_event(&out, &a, buf);

	(void)state;
	buf[0] += 3;
	assert_int_equal(gmt_decode_event(&in, buf, n + 3, &back), (long)n + 3);
	assert_true(same_event(&a, &back));
}

/* Every prefix of a record is refused; the copy ends where the prefix does, so that a sanitizer
 * sees any read beyond it. */
static void cut_records_are_refused(void **state)
{
	struct chance c = { 2 };

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct gmt_event e = chance_event(&c), back;
		struct gmt_codec *codec = calloc(2, sizeof(*codec));
		uint8_t buf[GMT_EVENT_MAX];
		size_t n = gmt_encode_event(codec, &e, buf);

		for (size_t k = 0; k < n; k++) {
			uint8_t *cut = malloc(k + !k);

			memcpy(cut, buf, k);
			assert_int_equal(gmt_decode_event(codec + 1, cut, k, &back),
					 -GMT_ERR_BAD_RECORD);
			free(cut);
		}
		free(codec);
	}
}

static void any_bytes_are_harmless(void **state)
{
	static struct gmt_codec in;
	struct chance c = { 3 };
	unsigned good = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		size_t n = chance_below(&c, 40);
		uint8_t *p = malloc(n + !n);
		struct gmt_event e;
		struct gmt_def d;
		long used;

		for (size_t k = 0; k < n; k++)
			p[k] = (uint8_t)(chance_next(&c) >> (chance_below(&c, 2) * 4)) & 0x7f;
		if (n && chance_below(&c, 2))
			p[0] = (uint8_t)(n - 1);
		used = gmt_decode_event(&in, p, n, &e);
		assert_true(used <= (long)n && used != 0);
		good += used > 0;
		used = gmt_decode_def(p, n, &d);
		assert_true(used <= (long)n && used != 0);
		free(p);
	}
	assert_in_range(good, 1000, 199999);
}

static void definitions_round_trip(void **state)
{
	struct chance c = { 4 };
	static uint8_t payload[70000], buf[70100];

	(void)state;
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)chance_next(&c);
	for (int i = 0; i < 2000; i++) {
		struct gmt_def d = {
			.kind = (uint32_t)chance_wide(&c),
			.id = (uint32_t)chance_wide(&c),
			.len = (uint32_t)chance_below(&c, i % 50 ? 300 : sizeof(payload)),
			.payload = payload + chance_below(&c, 100),
		};
		size_t n;
		struct gmt_def back;

		d.payload = d.len > 69000 ? payload : d.payload;
		n = gmt_encode_def(&d, buf);
		assert_int_equal(n, gmt_encoded_def_size(&d));
		assert_int_equal(gmt_decode_def(buf, n, &back), (long)n);
		assert_int_equal(back.kind, d.kind);
		assert_int_equal(back.id, d.id);
		assert_int_equal(back.len, d.len);
		assert_memory_equal(back.payload, d.payload, d.len);
		assert_int_equal(gmt_decode_def(buf, n - 1, &back), -GMT_ERR_BAD_RECORD);
	}
}

struct size_count {
	struct gmt_codec codec;
	uint8_t raw[GMT_BLOCK_RAW_MAX];
	size_t used;
	uint64_t events, raw_bytes, packed_bytes;
};

static void pack(struct size_count *s)
{
	static uint8_t out[GMT_BLOCK_STORED_MAX];
	size_t n = ZSTD_compress(out, sizeof(out), s->raw, s->used, 3);

	assert_false(ZSTD_isError(n));
	s->raw_bytes += s->used;
	s->packed_bytes += n;
	s->used = 0;
	memset(&s->codec, 0, sizeof(s->codec));
}

static void count_size(void *ctx, const struct gmt_event *e)
{
	struct size_count *s = ctx;

	if (s->used + GMT_EVENT_MAX > sizeof(s->raw))
		pack(s);
	s->used += gmt_encode_event(&s->codec, e, s->raw + s->used);
	s->events++;
}

static void training_takes_few_bytes(void **state)
{
	struct size_count *s = calloc(1, sizeof(*s));
	double raw, packed;

	(void)state;
	train(50, count_size, s);
	pack(s);
	raw = (double)s->raw_bytes / (double)s->events;
	packed = (double)s->packed_bytes / (double)s->events;
	print_message("%u events, %.1f bytes each, %.1f compressed\n", (unsigned)s->events, raw,
		      packed);
	assert_in_range(s->events, 50000, 1000000);
	assert_true(packed < 12);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_events_round_trip),
		cmocka_unit_test(any_events_round_trip_in_columns),
		cmocka_unit_test(greatest_values_fit),
		cmocka_unit_test(other_members_are_left_out),
		cmocka_unit_test(extra_kinds_round_trip),
		cmocka_unit_test(other_kinds_are_refused),
		cmocka_unit_test(kinds_below_64_stay_as_they_are),
		cmocka_unit_test(longer_records_are_read),
		cmocka_unit_test(cut_records_are_refused),
		cmocka_unit_test(any_bytes_are_harmless),
		cmocka_unit_test(definitions_round_trip),
		cmocka_unit_test(training_takes_few_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files made to hurt: good checksums over claims that cost time or memory. Both stay bounded.
 *
 * links: tests/unit/recordings.c
 */
#include <time.h>

#include "recordings.h"

/* Far more blocks that claim to overlap than are kept open: order is lost, events are not. */
static void forged_overlap_is_bounded(void **state)
{
	const char *path = scratch_path("forged.gmt");
	enum { N = 300 };
	static struct gmt_codec codec;
	struct gmt_file_header f = { .version = GMT_VERSION, .header_bytes = 64 };
	uint8_t *out = malloc(64 + N * (64 + GMT_EVENT_MAX)), *p = out + 64;
	bool seen[N + 1] = { false };
	struct heard h;

	(void)state;
	gmt_file_header_seal(&f);
	memcpy(out, &f, 64);
	for (uint32_t i = 0; i < N; i++) {
		struct gmt_event e = plain_event(N - i);
		struct gmt_block_header b = { .type = GMT_BLOCK_EVENTS, .count = 1 };

		memset(&codec, 0, sizeof(codec));
		b.raw_bytes = b.stored_bytes = (uint32_t)gmt_encode_event(&codec, &e, p + 64);
		b.last_seq = b.last_ns = UINT64_MAX;
		gmt_block_seal(&b, p + 64);
		memcpy(p, &b, 64);
		p += 64 + b.stored_bytes;
	}
	write_file(path, out, (size_t)(p - out));
	h = hear(path);
	assert_int_equal(h.events_used, N);
	assert_int_not_equal(h.events[0].seq, 1); /* else all were open at a time */
	for (uint32_t i = 0; i < N; i++)
		seen[h.events[i].seq] = true;
	for (uint32_t i = 1; i <= N; i++)
		assert_true(seen[i]);
	heard_free(&h);
	free(out);
}

/* Headers with good checksums at every 64 bytes, each asking for the longest payload to be checked:
 * takes time as the file's length, not as its square. */
static void forged_headers_are_bounded(void **state)
{
	const char *path = scratch_path("headers.gmt");
	enum { N = 200000 };
	struct gmt_block_header b = { .type = GMT_BLOCK_EVENTS,
				      .count = 1,
				      .stored_bytes = GMT_BLOCK_STORED_MAX - 1 };
	uint8_t *out = calloc(N, 64);
	clock_t start = clock(); /* of the processor: the machine may be busy */
	struct heard h;

	(void)state;
	b.raw_bytes = GMT_BLOCK_RAW_MAX;
	gmt_block_seal(&b, out);
	b.payload_checksum ^= 1;
	b.checksum = gmt_crc32c(&b, 60);
	for (uint32_t i = 0; i + 1 < N; i++)
		memcpy(out + 64 * i + 1, &b,
		       64); /* off by one, so that none follows another's end */
	write_file(path, out, (size_t)N * 64);
	h = hear(path);
	assert_int_equal(h.events_used, 0);
	assert_true((clock() - start) / CLOCKS_PER_SEC < 3);
	heard_free(&h);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_overlap_is_bounded),
		cmocka_unit_test(forged_headers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

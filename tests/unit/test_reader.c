/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader on recordings without a live file: order, time, damage. What must be read of a damaged
 * file is computed from where its blocks lie: all that are whole, nothing else.
 *
 * links: tests/unit/recordings.c
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recordings.h"
#include "../../format/record.h"

#define BLOCKS 5 /* of events, in the small recording */
#define EACH   4 /* events in each */

/* Where a block of the small recording lies. */
struct extent {
	size_t start, end;
	unsigned type;
	uint64_t first_seq; /* EVENTS: EACH from here; DEFS: id of its one definition */
};

struct small {
	const char *path;
	struct bytes file;
	struct extent blocks[2 * BLOCKS + 2];
	unsigned count;
};

static struct small small;

static void note(unsigned type, size_t start, int fd, uint64_t first)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	small.blocks[small.count++] = (struct extent){ start, (size_t)st.st_size, type, first };
}

static struct gmt_event busy_event(uint64_t seq)
{
	struct chance c = { seq };
	struct gmt_event e = chance_event(&c);

	e.seq = seq;
	e.time_ns = 1000 * seq;
	return e;
}

/* A definition and a block of events by turns, then index and end. */
static int make_small(void **state)
{
	int fd;
	struct gmt_writer *w;

	(void)state;
	small.path = strdup(scratch_path("small.gmt"));
	fd = open(small.path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	w = open_writer(fd, 77);
	for (uint32_t b = 0; b < BLOCKS; b++) {
		struct gmt_def d = { GMT_DEF_STRING, b, 40,
				     "a text that says much and much and much." };

		assert_int_equal(gmt_writer_def(w, &d), 0);
		size_t at = gmt_writer_bytes(w);
		assert_int_equal(gmt_writer_flush(w), 0);
		note(GMT_BLOCK_DEFS, at, fd, b);
		at = gmt_writer_bytes(w);
		for (uint32_t i = 0; i < EACH; i++) {
			struct gmt_event e = busy_event(1 + b * EACH + i);

			assert_int_equal(gmt_writer_event(w, &e), 0);
		}
		assert_int_equal(gmt_writer_flush(w), 0);
		note(GMT_BLOCK_EVENTS, at, fd, 1 + b * EACH);
	}
	{
		size_t at = gmt_writer_bytes(w);

		assert_int_equal(gmt_writer_finish(w), 0);
		note(GMT_BLOCK_END, at, fd, 0); /* index and end together */
	}
	close_writer(w);
	close(fd);
	small.file = read_file(small.path);
	return 0;
}

static int drop_small(void **state)
{
	(void)state;
	free(small.file.data);
	free((void *)(uintptr_t)small.path);
	return 0;
}

/* Exactly the blocks that `whole` names were read, in order, and their content is right. All events
 * are of one group: behind the first block of them that is not whole none is read. */
static void check_blocks(const struct heard *h, bool (*whole)(const struct extent *x, size_t at),
			 size_t at)
{
	size_t event = 0, def = 0;
	bool lost = false;

	for (unsigned i = 0; i < small.count; i++) {
		const struct extent *x = &small.blocks[i];

		lost |= x->type == GMT_BLOCK_EVENTS && !whole(x, at);
		if (!whole(x, at) || (lost && x->type == GMT_BLOCK_EVENTS))
			continue;
		if (x->type == GMT_BLOCK_DEFS) {
			assert_true(def < h->defs_used);
			assert_int_equal(h->defs[def++].id, x->first_seq);
		}
		for (unsigned k = 0; k < EACH && x->type == GMT_BLOCK_EVENTS; k++) {
			struct gmt_event want = busy_event(x->first_seq + k);

			assert_true(event < h->events_used);
			assert_true(same_event(&h->events[event++], &want));
		}
	}
	assert_int_equal(event, h->events_used);
	assert_int_equal(def, h->defs_used);
}

static bool ends_before(const struct extent *x, size_t at)
{
	return x->end <= at;
}

static bool lies_elsewhere(const struct extent *x, size_t at)
{
	return at < x->start || at >= x->end;
}

static void truncated_at_every_byte(void **state)
{
	const char *path = scratch_path("cut.gmt");

	(void)state;
	for (size_t n = 0; n <= small.file.len; n++) {
		struct heard h;

		write_file(path, small.file.data, n);
		h = hear(path);
		assert_int_equal(h.err, n == 0	 ? -GMT_ERR_EMPTY
					: n < 64 ? -GMT_ERR_DAMAGED_HEADER
						 : 0);
		check_blocks(&h, ends_before, n);
		assert_int_equal(h.info.truncated, h.err == 0 && n < small.file.len);
		assert_int_equal(h.info.clean_end, n == small.file.len);
		heard_free(&h);
	}
}

/* A sanitizer makes each reader's threads ten times as dear: every fifth bit, which is another one
 * of each byte. */
#ifdef __SANITIZE_ADDRESS__
#define EVERY 5
#else
#define EVERY 1
#endif

static void every_bit_flipped(void **state)
{
	const char *path = scratch_path("flip.gmt");
	int fd;

	(void)state;
	write_file(path, small.file.data, small.file.len);
	fd = open(path, O_WRONLY);
	for (size_t bit = 0; bit < 8 * small.file.len; bit += EVERY) {
		uint8_t byte = small.file.data[bit / 8] ^ (uint8_t)(1 << bit % 8);
		struct heard h;

		assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
		h = hear(path);
		assert_int_equal(h.err, 0);
		check_blocks(&h, lies_elsewhere, bit / 8);
		assert_true(h.info.truncated);
		assert_true(h.info.skipped_bytes || h.info.damaged_blocks);
		assert_int_equal(h.info.version, bit / 8 < 64 ? 0 : GMT_VERSION);
		heard_free(&h);
		assert_int_equal(pwrite(fd, small.file.data + bit / 8, 1, (off_t)(bit / 8)), 1);
	}
	close(fd);
}

/* Bytes [from, from + n) are missing, and yet the block around the gap is as long as it says:
 * whole blocks that came to lie in it count as its own, damaged bytes. */
static bool hides_blocks(size_t from, size_t n)
{
	size_t end = 0;

	for (unsigned i = 0; i < small.count; i++)
		if (small.blocks[i].start < from && from < small.blocks[i].end)
			end = small.blocks[i].end + n;
	for (unsigned i = 0; end && i < small.count; i++)
		if (small.blocks[i].start == end)
			return true;
	return false;
}

static bool starts_block(size_t at)
{
	for (unsigned i = 0; i < small.count; i++)
		if (small.blocks[i].start == at)
			return true;
	return false;
}

/* Where the same bytes around a gap of n leave the same file, it may as well be a gap that begins
 * with a block: two blocks begin alike, or end alike. */
static size_t same_gap(size_t from, size_t n)
{
	const uint8_t *data = small.file.data;
	size_t before = from, behind = from;

	while (before && !starts_block(before) && data[before - 1] == data[before + n - 1])
		before--;
	while (behind + n < small.file.len && !starts_block(behind) &&
	       data[behind] == data[behind + n])
		behind++;
	if (starts_block(before))
		return before;
	return starts_block(behind) ? behind : from;
}

/* Pieces cut out, doubled, or overwritten: blocks that are still in one piece are read. */
static void pieces_missing(void **state)
{
	const char *path = scratch_path("hole.gmt");
	struct chance c = { 5 };
	uint8_t *copy = malloc(2 * small.file.len);

	(void)state;
	for (int round = 0; round < 1500; round++) {
		size_t from = chance_below(&c, small.file.len);
		size_t n = 1 + chance_below(&c, small.file.len - from);
		size_t event = 0;
		bool lost = false;
		struct heard h;

		if (hides_blocks(from, n))
			continue;
		from = same_gap(from, n);
		memcpy(copy, small.file.data, from);
		memcpy(copy + from, small.file.data + from + n, small.file.len - from - n);
		write_file(path, copy, small.file.len - n);
		h = hear(path);
		for (unsigned i = 0; i < small.count; i++) {
			const struct extent *x = &small.blocks[i];

			if (x->type != GMT_BLOCK_EVENTS)
				continue;
			lost |= x->end > from && x->start < from + n;
			if (lost)
				continue;
			for (unsigned k = 0; k < EACH; k++) {
				struct gmt_event want = busy_event(x->first_seq + k);

				assert_true(event < h.events_used);
				assert_true(same_event(&h.events[event++], &want));
			}
		}
		assert_int_equal(event, h.events_used);
		heard_free(&h);
	}
	free(copy);
}

static void random_bytes_anywhere(void **state)
{
	const char *path = scratch_path("noise.gmt");
	struct chance c = { 6 };
	uint8_t *copy = malloc(small.file.len);

	(void)state;
	for (int round = 0; round < 1500; round++) {
		size_t flips = 1 + chance_below(&c, 20);
		struct heard h;

		memcpy(copy, small.file.data, small.file.len);
		while (flips--)
			copy[chance_below(&c, small.file.len)] = (uint8_t)chance_next(&c);
		write_file(path, copy, small.file.len);
		h = hear(path);
		for (size_t i = 0; i < h.events_used; i++) {
			struct gmt_event want = busy_event(h.events[i].seq);

			assert_true(same_event(&h.events[i], &want));
		}
		heard_free(&h);
	}
	free(copy);
}

/* Noise of any length around that of the reader's search window: the block behind it is found. */
static void noise_as_long_as_the_window(void **state)
{
	const char *path = scratch_path("long.gmt");
	const size_t window = 256 * 1024 + 4096, at = small.blocks[2].start;
	uint8_t *copy = calloc(1, small.file.len + window + 64);

	(void)state;
	memcpy(copy, small.file.data, at);
	for (size_t n = 0; n < window + 16; n = n == 8192 ? window - 200 : n + 1) {
		struct heard h;

		memset(copy + at, 0, n);
		memcpy(copy + at + n, small.file.data + at, small.file.len - at);
		write_file(path, copy, small.file.len + n);
		h = hear(path);
		assert_int_equal(h.events_used, BLOCKS * EACH);
		assert_int_equal(h.info.skipped_bytes, n);
		heard_free(&h);
	}
	free(copy);
}

/* A second run and a run after damage was counted tell the same and count nothing twice. */
static void runs_may_be_repeated(void **state)
{
	const char *path = scratch_path("again.gmt");
	static const struct gmt_tool none;
	struct gmt_reader *r;
	int err;

	(void)state;
	small.file.data[small.blocks[1].end - 1] ^= 1;
	write_file(path, small.file.data, small.file.len);
	small.file.data[small.blocks[1].end - 1] ^= 1;
	r = gmt_reader_open(path, &err);
	assert_non_null(r);
	assert_false(gmt_reader_info(r)->truncated);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &none, NULL), 0);
		assert_int_equal(gmt_reader_info(r)->damaged_blocks, BLOCKS); /* one group */
		assert_true(gmt_reader_info(r)->truncated);
	}
	gmt_reader_close(r);
}

static void only_the_asked_time(void **state)
{
	(void)state;
	for (uint64_t from = 0; from < BLOCKS * EACH + 2; from++)
		for (uint64_t to = from; to < BLOCKS * EACH + 2; to++) {
			struct heard h = hear_between(small.path, 1000 * from, 1000 * to);
			uint64_t first = from ? from : 1;
			uint64_t last = to > BLOCKS * EACH ? BLOCKS * EACH : to;

			assert_int_equal(h.events_used, last + 1 > first ? last + 1 - first : 0);
			for (size_t i = 0; i < h.events_used; i++)
				assert_int_equal(h.events[i].seq, first + i);
			assert_int_equal(h.defs_used, BLOCKS);
			heard_free(&h);
		}
}

static int stop_at_third(void *ctx, const struct gmt_event *e)
{
	int *calls = ctx;

	(void)e;
	return ++*calls == 3 ? 1234 : 0;
}

static int stop_at_once(void *ctx, const struct gmt_def *d)
{
	(void)ctx;
	(void)d;
	return 99;
}

static void callbacks_stop_the_run(void **state)
{
	struct gmt_tool tool = { .event = stop_at_third };
	int err, calls = 0;
	struct gmt_reader *r = gmt_reader_open(small.path, &err);

	(void)state;
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, &calls), 1234);
	assert_int_equal(calls, 3);
	tool.def = stop_at_once;
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, &calls), 99);
	assert_int_equal(calls, 3);
	gmt_reader_close(r);
}

/* Events shuffled within a window, so that neighbouring blocks overlap: told in order of seq. */
static void overlapping_blocks_are_ordered(void **state)
{
	const char *path = scratch_path("overlap.gmt");
	enum { N = 20000 };
	struct chance c = { 8 };
	static uint64_t order[N];

	(void)state;
	for (unsigned window = 1; window < 3000; window *= 7) {
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		struct gmt_writer *w = open_writer(fd, 1);
		struct heard h;

		for (unsigned i = 0; i < N; i++)
			order[i] = i + 1;
		for (unsigned i = 0; i + window < N; i++) {
			unsigned k = i + (unsigned)chance_below(&c, window);
			uint64_t swap = order[i];

			order[i] = order[k];
			order[k] = swap;
		}
		for (unsigned i = 0; i < N; i++) {
			struct gmt_event e = plain_event(order[i]);

			gmt_writer_event(w, &e);
			if (i % 331 == 0)
				gmt_writer_flush(w);
		}
		assert_int_equal(gmt_writer_finish(w), 0);
		h = hear(path);
		assert_int_equal(h.events_used, N);
		for (unsigned i = 0; i < N; i++) {
			struct gmt_event want = plain_event(i + 1);

			assert_true(same_event(&h.events[i], &want));
		}
		heard_free(&h);
		close_writer(w);
		close(fd);
	}
}

/* The file shrinks between open and run: what is gone is damage, nothing worse. */
static void file_shrinks_meanwhile(void **state)
{
	const char *path = scratch_path("shrink.gmt");
	static const struct gmt_tool none;
	struct gmt_reader *r;
	int err;

	(void)state;
	write_file(path, small.file.data, small.file.len);
	r = gmt_reader_open(path, &err);
	assert_int_equal(truncate(path, (off_t)small.blocks[3].end), 0);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &none, NULL), 0);
	assert_int_equal(gmt_reader_info(r)->damaged_blocks, BLOCKS - 2);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &none, NULL), 0);
	assert_int_equal(gmt_reader_info(r)->damaged_blocks, BLOCKS);
	gmt_reader_close(r);
}

/* Blocks of a type that a later version adds are passed over. */
static void unknown_blocks_are_passed_over(void **state)
{
	const char *path = scratch_path("type.gmt");
	struct gmt_block_header h = {
		.type = GMT_KIND_EXTRA, .raw_bytes = 6, .stored_bytes = 6, .count = 1
	};
	size_t at = small.blocks[4].start, n = sizeof(h) + 6;
	uint8_t *copy = malloc(small.file.len + n);
	struct heard all;

	(void)state;
	gmt_block_seal(&h, "future");
	memcpy(copy, small.file.data, at);
	memcpy(copy + at, &h, sizeof(h));
	memcpy(copy + at + sizeof(h), "future", 6);
	memcpy(copy + at + n, small.file.data + at, small.file.len - at);
	write_file(path, copy, small.file.len + n);
	all = hear(path);
	assert_int_equal(all.events_used, BLOCKS * EACH);
	assert_int_equal(all.defs_used, BLOCKS);
	assert_false(all.info.truncated);
	heard_free(&all);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncated_at_every_byte),
		cmocka_unit_test(every_bit_flipped),
		cmocka_unit_test(pieces_missing),
		cmocka_unit_test(random_bytes_anywhere),
		cmocka_unit_test(noise_as_long_as_the_window),
		cmocka_unit_test(runs_may_be_repeated),
		cmocka_unit_test(only_the_asked_time),
		cmocka_unit_test(callbacks_stop_the_run),
		cmocka_unit_test(overlapping_blocks_are_ordered),
		cmocka_unit_test(file_shrinks_meanwhile),
		cmocka_unit_test(unknown_blocks_are_passed_over),
	};

	return cmocka_run_group_tests(tests, make_small, drop_small);
}

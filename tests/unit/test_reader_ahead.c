/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that several threads decode: the events of many groups come in order and whole, also where
 * blocks are damaged, where not all times are asked for, where whoever takes them stops early, and
 * to several readers at once. Runs under the thread sanitizer too.
 *
 * links: tests/unit/recordings.c
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "recordings.h"

#define BLOCKS (9 * GMT_GROUP_BLOCKS + 6)
#define EACH   7
#define EVENTS (BLOCKS * EACH)

static char path[4096];

static int make_recording(void **state)
{
	int fd;
	struct gmt_writer *w;

	(void)state;
	snprintf(path, sizeof(path), "%s", scratch_path("ahead.gmt"));
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	w = open_writer(fd, 77);
	for (uint64_t i = 1; i <= EVENTS; i++) {
		struct gmt_event e = plain_event(i);

		assert_int_equal(gmt_writer_event(w, &e), 0);
		if (i % EACH == 0)
			assert_int_equal(gmt_writer_flush(w), 0);
	}
	assert_int_equal(gmt_writer_finish(w), 0);
	close_writer(w);
	return close(fd);
}

static void check_plain(const struct heard *h, uint64_t first, uint64_t count)
{
	assert_int_equal(h->err, 0);
	assert_int_equal(h->events_used, count);
	for (uint64_t i = 0; i < count; i++) {
		struct gmt_event e = plain_event(first + i);

		assert_true(same_event(&h->events[i], &e));
	}
}

static void *read_all(void *arg)
{
	*(struct heard *)arg = hear(path);
	return NULL;
}

static void several_readers(void **state)
{
	struct heard h[3];
	pthread_t threads[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_all, &h[i]), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		check_plain(&h[i], 1, EVENTS);
		heard_free(&h[i]);
	}
}

static void part_of_the_time(void **state)
{
	uint64_t first = 20 * EACH + 3, last = EVENTS - 30 * EACH;
	struct heard h = hear_between(path, 1000 * first, 1000 * last);

	(void)state;
	check_plain(&h, first, last - first + 1);
	heard_free(&h);
}

/* Of a group in the middle all events from a block on are lost, and each such block is counted. */
static void a_damaged_group(void **state)
{
	struct bytes file = read_file(path);
	const char *other = scratch_path("damaged.gmt");
	struct gmt_block_header b;
	unsigned events = 0;
	struct heard h;

	(void)state;
	for (size_t at = sizeof(struct gmt_file_header); at < file.len;
	     at += sizeof(b) + b.stored_bytes) {
		memcpy(&b, file.data + at, sizeof(b));
		if (b.type == GMT_BLOCK_EVENTS && events++ == 4 * GMT_GROUP_BLOCKS + 5)
			file.data[at + sizeof(b) + 2] ^= 0x40;
	}
	write_file(other, file.data, file.len);
	free(file.data);
	h = hear(other);
	assert_int_equal(events, BLOCKS);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.info.damaged_blocks, GMT_GROUP_BLOCKS - 5);
	assert_int_equal(h.events_used, EVENTS - (GMT_GROUP_BLOCKS - 5) * EACH);
	for (size_t i = 0; i < h.events_used; i++) {
		size_t seq = 1 + i, good = (4 * GMT_GROUP_BLOCKS + 5) * EACH;

		if (i >= good)
			seq += (GMT_GROUP_BLOCKS - 5) * EACH;
		assert_int_equal(h.events[i].seq, seq);
	}
	heard_free(&h);
}

static int stop_at_ten(void *ctx, const struct gmt_event *e)
{
	return ++*(unsigned *)ctx == 10 ? (int)e->seq : 0;
}

static void stops_early(void **state)
{
	static const struct gmt_tool tool = { .event = stop_at_ten };
	unsigned told = 0;
	int err = 0;
	struct gmt_reader *r = gmt_reader_open(path, &err);

	(void)state;
	assert_non_null(r);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, &told), 10);
	told = 0;
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, &told), 10);
	gmt_reader_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_readers),
		cmocka_unit_test(part_of_the_time),
		cmocka_unit_test(a_damaged_group),
		cmocka_unit_test(stops_early),
	};

	return cmocka_run_group_tests(tests, make_recording, NULL);
}

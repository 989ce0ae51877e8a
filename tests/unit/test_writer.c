/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: what it writes can be read back, in whatever portions it was given; it stays usable
 * when the file has no room, and counts what it lost.
 *
 * links: tests/unit/recordings.c
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recordings.h"
#include "../../format/codec_copies.h"
#include "../../format/record.h"

static int new_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static uint64_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

static void empty_recording(void **state)
{
	const char *path = scratch_path("empty.gmt");
	int fd = new_file(path);
	struct gmt_writer *w = open_writer(fd, 42);
	struct heard h;

	(void)state;
	assert_int_equal(gmt_writer_bytes(w), 64);
	assert_int_equal(gmt_writer_flush(w), 0);
	assert_int_equal(size_of(fd), 64); /* nothing kept, nothing written */
	h = hear(path);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.events_used, 0);
	assert_false(h.info.clean_end);
	assert_true(h.info.truncated);
	assert_int_equal(gmt_writer_finish(w), 0);
	assert_int_equal(gmt_writer_bytes(w), size_of(fd));
	h = hear(path);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.info.version, GMT_VERSION);
	assert_int_equal(h.info.pid, 42);
	assert_int_equal(h.info.realtime_minus_monotonic_ns, 1234567890);
	assert_true(h.info.clean_end);
	assert_false(h.info.has_index);
	assert_false(h.info.truncated);
	close_writer(w);
	close(fd);
}

/* Random events and definitions, flushed at random: all come back, the same and in order. */
static void any_portions_round_trip(void **state)
{
	const char *path = scratch_path("portions.gmt");
	int fd = new_file(path);
	struct gmt_writer *w = open_writer(fd, 1);
	enum { N = 60000 };
	struct gmt_event *events = calloc(N, sizeof(*events));
	struct chance c = { 9 };
	struct heard h;
	uint32_t defs = 0;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		uint32_t payload[3] = { i, i * 3, i * 5 };
		struct gmt_def d = { GMT_DEF_STRING, i, i % 13, payload };

		events[i] = chance_event(&c);
		events[i].seq = i + 1;
		if (i % 3 == 0) {
			assert_int_equal(gmt_writer_def(w, &d), 0);
			defs++;
		}
		gmt_writer_expect(w, &events[i / 2]); /* changes nothing */
		assert_int_equal(gmt_writer_event(w, &events[i]), 0);
		if (chance_below(&c, 500) == 0)
			assert_int_equal(gmt_writer_flush(w), 0);
	}
	assert_int_equal(gmt_writer_finish(w), 0);
	h = hear(path);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.events_used, N);
	assert_int_equal(h.defs_used, defs);
	for (uint32_t i = 0; i < N; i++)
		assert_true(same_event(&h.events[i], &events[i]));
	for (uint32_t i = 0; i < defs; i++) {
		uint32_t payload[3] = { i * 3, i * 9, i * 15 };

		assert_int_equal(h.defs[i].id, 3 * i);
		assert_int_equal(h.defs[i].len, 3 * i % 13);
		assert_memory_equal(h.defs[i].payload, payload, h.defs[i].len);
	}
	assert_true(h.info.clean_end && h.info.has_index && !h.info.truncated);
	assert_int_equal(h.info.first_seq, 1);
	assert_int_equal(h.info.last_seq, N);
	assert_int_equal(gmt_writer_bytes(w), size_of(fd));
	assert_int_equal(gmt_writer_lost(w), 0);
	heard_free(&h);
	free(events);
	close_writer(w);
	close(fd);
}

/* More blocks than one INDEX block has entries. */
static void many_blocks(void **state)
{
	const char *path = scratch_path("many.gmt");
	int fd = new_file(path);
	struct gmt_writer *w = open_writer(fd, 1);
	const uint32_t n = GMT_INDEX_BLOCK_MAX * 2 + 77;
	struct heard h;

	(void)state;
	for (uint32_t i = 1; i <= n; i++) {
		struct gmt_event e = plain_event(i);

		assert_int_equal(gmt_writer_event(w, &e), 0);
		assert_int_equal(gmt_writer_flush(w), 0);
	}
	assert_int_equal(gmt_writer_finish(w), 0);
	h = hear(path);
	assert_int_equal(h.events_used, n);
	assert_true(h.info.has_index && h.info.clean_end);
	assert_int_equal(h.info.blocks, n + 3 + 1);
	heard_free(&h);
	close_writer(w);
	close(fd);
}

static void definitions_of_any_length(void **state)
{
	const char *path = scratch_path("defs.gmt");
	int fd = new_file(path);
	struct gmt_writer *w = open_writer(fd, 1);
	uint8_t *payload = malloc(GMT_BLOCK_RAW_MAX + 1);
	struct gmt_def d = { GMT_DEF_CODE, 1, GMT_BLOCK_RAW_MAX - 10, payload };
	struct heard h;

	(void)state;
	for (size_t i = 0; i <= GMT_BLOCK_RAW_MAX; i++)
		payload[i] = (uint8_t)(i * i >> 7 ^ i);
	assert_int_equal(gmt_writer_def(w, &d), 0);
	d.id = 2;
	assert_int_equal(gmt_writer_def(w, &d), 0);
	d.len = GMT_BLOCK_RAW_MAX;
	assert_int_equal(gmt_writer_def(w, &d), -GMT_ERR_RANGE);
	assert_int_equal(gmt_writer_finish(w), 0);
	h = hear(path);
	assert_int_equal(h.defs_used, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(h.defs[i].id, i + 1);
		assert_int_equal(h.defs[i].len, GMT_BLOCK_RAW_MAX - 10);
		assert_memory_equal(h.defs[i].payload, payload, h.defs[i].len);
	}
	assert_false(h.info.truncated);
	heard_free(&h);
	free(payload);
	close_writer(w);
	close(fd);
}

static void write_blocks(struct gmt_writer *w, uint64_t *next, uint32_t blocks)
{
	for (uint32_t b = 0; b < blocks; b++) {
		for (uint32_t i = 0; i < 10; i++) {
			struct gmt_event e = plain_event((*next)++);

			gmt_writer_event(w, &e);
		}
		gmt_writer_flush(w);
	}
}

static void set_limit(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* At every limit within a few blocks: room ends, comes back, and what was written around is read;
 * nothing else is, and the losses add up. */
static void no_room_for_a_while(void **state)
{
	const char *path = scratch_path("full.gmt");

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	for (rlim_t limit = 64; limit < 900; limit += 7) {
		int fd = new_file(path);
		struct gmt_writer *w = open_writer(fd, 1);
		uint64_t next = 1, lost;
		struct heard h;

		set_limit(limit);
		write_blocks(w, &next, 6);
		set_limit(RLIM_INFINITY);
		lost = gmt_writer_lost(w);
		assert_int_equal(gmt_writer_bytes(w), size_of(fd));
		assert_true(lost > 0 && lost <= 60 && lost % 10 == 0);
		write_blocks(w, &next, 2);
		assert_int_equal(gmt_writer_finish(w), 0);
		assert_int_equal(gmt_writer_lost(w), lost);
		h = hear(path);
		assert_int_equal(h.err, 0);
		assert_int_equal(h.events_used, 80 - lost);
		for (size_t i = 0; i < h.events_used; i++) {
			uint64_t seq = i < 60 - lost ? i + 1 : i + 1 + lost;
			struct gmt_event want = plain_event(seq);

			assert_true(same_event(&h.events[i], &want));
		}
		assert_true(h.info.clean_end);
		heard_free(&h);
		close_writer(w);
		close(fd);
	}
}

/* Definitions are kept until they can be written: later events need them. */
static void definitions_wait_for_room(void **state)
{
	const char *path = scratch_path("wait.gmt");
	int fd = new_file(path);
	struct gmt_writer *w = open_writer(fd, 1);
	struct gmt_def d = { GMT_DEF_STRING, 7, 5, "hello" };
	struct gmt_event e = plain_event(1);
	struct heard h;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	set_limit(80);
	assert_int_equal(gmt_writer_def(w, &d), 0);
	assert_int_equal(gmt_writer_event(w, &e), 0);
	assert_int_equal(gmt_writer_flush(w), -GMT_ERR_SYS);
	assert_int_equal(gmt_writer_lost(w), 1);
	set_limit(RLIM_INFINITY);
	assert_int_equal(gmt_writer_finish(w), 0);
	h = hear(path);
	assert_int_equal(h.events_used, 0);
	assert_int_equal(h.defs_used, 1);
	assert_memory_equal(h.defs[0].payload, "hello", 5);
	heard_free(&h);
	close_writer(w);
	close(fd);
}

/* A place that never takes anything: every call returns, the losses are counted. */
static void nothing_can_be_written(void **state)
{
	int fd = open("/dev/full", O_WRONLY);
	int null = open("/dev/null", O_WRONLY);
	struct gmt_writer *w;
	uint64_t next = 1;
	uint8_t payload[1000] = { 0 };
	int rc = 0;

	(void)state;
	assert_null(open_writer(fd, 1));
	w = open_writer(null, 1);
	assert_int_equal(dup2(fd, null), null);
	write_blocks(w, &next, 20);
	assert_int_equal(gmt_writer_lost(w), 200);
	for (uint32_t i = 0; i < 1000; i++) {
		struct gmt_def d = { GMT_DEF_STRING, i, sizeof(payload), payload };

		rc = gmt_writer_def(w, &d);
	}
	assert_int_equal(rc, -GMT_ERR_SYS); /* the definitions' block is full for good */
	assert_int_equal(gmt_writer_finish(w), -GMT_ERR_SYS);
	assert_int_equal(gmt_writer_bytes(w), 64);
	close_writer(w);
	close(fd);
	close(null);
}

/* A pipe takes a few bytes at a time: short writes are continued. */
static void short_writes(void **state)
{
	const char *path = scratch_path("pipe.gmt");
	int fds[2];
	struct heard h;
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	fcntl(fds[1], F_SETPIPE_SZ, 4096);
	child = fork();
	if (child == 0) {
		struct gmt_writer_info info = { .pid = 1 };
		size_t n = (gmt_writer_workspace(0) + 63) / 64 * 64;
		int err;
		struct gmt_writer *w =
			gmt_writer_open(aligned_alloc(64, n), n, fds[1], &info, &err);

		close(fds[0]);
		for (uint64_t i = 1; i <= 20000; i++) {
			struct chance c = { i };
			struct gmt_event e = chance_event(&c);

			e.seq = i;
			gmt_writer_event(w, &e);
		}
		_exit(gmt_writer_finish(w) ? 1 : 0);
	}
	close(fds[1]);
	{
		FILE *f = fopen(path, "wb");
		char buf[777];
		ssize_t n;

		while ((n = read(fds[0], buf, sizeof(buf))) > 0)
			fwrite(buf, 1, (size_t)n, f);
		fclose(f);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	h = hear(path);
	assert_int_equal(h.events_used, 20000);
	assert_true(h.info.clean_end && !h.info.truncated);
	heard_free(&h);
	close(fds[0]);
}

static void workspace_is_checked(void **state)
{
	struct gmt_writer_info info = { .pid = 1 };
	size_t n = (gmt_writer_workspace(0) + 127) / 64 * 64;
	uint8_t *p = aligned_alloc(64, n);
	int err;

	(void)state;
	assert_null(gmt_writer_open(p, gmt_writer_workspace(0) - 1, 1, &info, &err));
	assert_int_equal(err, -GMT_ERR_NO_MEMORY);
	assert_null(gmt_writer_open(p + 8, n - 8, 1, &info, &err));
	assert_int_equal(err, -GMT_ERR_NO_MEMORY);
	free(p);
}

/* Events that might be copies are kept, and written all at once when the last one differs: a block
 * still does not get too large. */
static void kept_events_fit(void **state)
{
	const char *path = scratch_path("kept.gmt");
	int fd = new_file(path);
	struct gmt_writer *w = open_writer(fd, 7);
	struct chance chance = { 5 };
	struct gmt_event step[GMT_COPIES_KEPT] = { 0 };
	const uint64_t periods = 3000;
	struct heard h;

	(void)state;
	for (uint32_t i = 0; i < GMT_COPIES_KEPT; i++)
		step[i] = (struct gmt_event){ .kind = GMT_BLOCK_ALLOC,
					      .stack = i + 1,
					      .addr = (chance_below(&chance, 1u << 30) + 1) << 20,
					      .size = chance_below(&chance, 1u << 30) + 1,
					      .stream = chance_below(&chance, 1ull << 62) << 1,
					      .arg0 = chance_below(&chance, 1ull << 62) };
	for (uint64_t n = 0; n < periods * GMT_COPIES_KEPT; n++) {
		struct gmt_event e = step[n % GMT_COPIES_KEPT];

		e.seq = n + 1;
		e.time_ns = 1000 * n;
		if (n % GMT_COPIES_KEPT == GMT_COPIES_KEPT - 1)
			e.stream += n;
		assert_int_equal(gmt_writer_event(w, &e), 0);
	}
	assert_int_equal(gmt_writer_finish(w), 0);
	h = hear(path);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.info.damaged_blocks, 0);
	assert_int_equal(h.events_used, periods * GMT_COPIES_KEPT);
	heard_free(&h);
	close_writer(w);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_recording),
		cmocka_unit_test(any_portions_round_trip),
		cmocka_unit_test(many_blocks),
		cmocka_unit_test(definitions_of_any_length),
		cmocka_unit_test(no_room_for_a_while),
		cmocka_unit_test(definitions_wait_for_room),
		cmocka_unit_test(nothing_can_be_written),
		cmocka_unit_test(short_writes),
		cmocka_unit_test(workspace_is_checked),
		cmocka_unit_test(kept_events_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

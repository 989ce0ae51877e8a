/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Salvage: what rings hold and no block has is read once and in its place of a process that was
 * killed, also where the live file is torn or damaged.
 *
 * links: tests/unit/recordings.c
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "recordings.h"
#include "../../format/record.h"

#define PID 77

static char recording[128], live_path[140];

static void name_files(const char *name)
{
	snprintf(recording, sizeof(recording), "%s", scratch_path(name));
	snprintf(live_path, sizeof(live_path), "%s.live", recording);
}

/* A recording of events first..last without an end, one block for each 50. */
static void record(uint64_t first, uint64_t last)
{
	int fd = open(recording, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct gmt_writer *w = open_writer(fd, PID);
	struct gmt_def d = { GMT_DEF_STRING, 1, 3, "one" };

	assert_non_null(w);
	if (first <= last)
		assert_int_equal(gmt_writer_def(w, &d), 0);
	for (uint64_t i = first; i <= last; i++) {
		struct gmt_event e = plain_event(i);

		assert_int_equal(gmt_writer_event(w, &e), 0);
		if (i % 50 == 0)
			assert_int_equal(gmt_writer_flush(w), 0);
	}
	assert_int_equal(gmt_writer_flush(w), 0);
	close_writer(w);
	close(fd);
}

static void push_to(struct bytes live, uint32_t ring, uint64_t seq)
{
	struct gmt_event e = plain_event(seq);

	assert_true(gmt_ring_push(live_ring(live, ring), &e));
}

static void push_def_to(struct bytes live, uint32_t ring, uint32_t id, const char *text)
{
	struct gmt_def d = { GMT_DEF_STRING, id, (uint32_t)strlen(text), text };

	assert_true(gmt_ring_push_def(live_ring(live, ring), &d));
}

static void save_live(struct bytes live)
{
	write_file(live_path, live.data, live.len);
}

static void check_sequence(const struct heard *h, uint64_t first, uint64_t last)
{
	assert_int_equal(h->err, 0);
	assert_int_equal(h->events_used, last - first + 1);
	for (size_t i = 0; i < h->events_used; i++) {
		struct gmt_event want = plain_event(first + i);

		assert_true(same_event(&h->events[i], &want));
	}
}

/* Two rings by turns, overlapping what the blocks have, definitions between. */
static void rings_continue_the_blocks(void **state)
{
	struct bytes live = new_live(PID, 2);
	struct heard h;

	(void)state;
	name_files("killed.gmt");
	record(1, 1000);
	for (uint64_t i = 900; i <= 1500; i++) {
		if (i == 1200)
			push_def_to(live, 0, 2, "two");
		push_to(live, i % 3 == 0, i);
	}
	save_live(live);
	h = hear(recording);
	check_sequence(&h, 1, 1500);
	assert_int_equal(h.info.live_events, 500);
	assert_int_equal(h.info.last_seq, 1500);
	assert_int_equal(h.info.last_ns, 1500000);
	assert_int_equal(h.info.skipped_bytes, 0);
	assert_int_equal(h.defs_used, 2);
	assert_memory_equal(h.defs[1].payload, "two", 3);
	assert_true(h.info.truncated);
	heard_free(&h);
	h = hear(live_path); /* named by its live file: the same */
	check_sequence(&h, 1, 1500);
	heard_free(&h);
	h = hear_between(recording, 990000, 1010000);
	check_sequence(&h, 990, 1010);
	heard_free(&h);
	free(live.data);
}

static void everything_is_in_the_live_file(void **state)
{
	struct bytes live = new_live(PID, 1);
	struct heard h;

	(void)state;
	name_files("young.gmt");
	for (uint64_t i = 1; i <= 30; i++)
		push_to(live, 0, i);
	save_live(live);
	for (int round = 0; round < 3; round++) {
		if (round == 0)
			unlink(recording);
		else if (round == 1)
			write_file(recording, "", 0);
		else
			record(1, 0); /* a header and nothing else */
		h = hear(recording);
		check_sequence(&h, 1, 30);
		assert_int_equal(h.info.live_events, 30);
		assert_int_equal(h.info.pid, PID);
		heard_free(&h);
		h = hear(live_path);
		check_sequence(&h, 1, 30);
		heard_free(&h);
	}
	free(live.data);
}

/* A ring that has gone round several times and is full to the last slot. */
static void wrapped_and_full(void **state)
{
	struct bytes live = new_live(PID, 1);
	struct gmt_ring *r = live_ring(live, 0);
	uint64_t last = 3 * GMT_RING_SLOTS + 1000;
	struct heard h;

	(void)state;
	name_files("wrapped.gmt");
	record(1, last - GMT_RING_SLOTS);
	for (uint64_t i = 1; i <= last; i++) {
		push_to(live, 0, i);
		if (i <= last - GMT_RING_SLOTS)
			gmt_ring_release(r, i);
	}
	assert_int_equal(gmt_ring_used(r), GMT_RING_SLOTS);
	save_live(live);
	h = hear(recording);
	check_sequence(&h, 1, last);
	assert_int_equal(h.info.live_events, GMT_RING_SLOTS);
	heard_free(&h);
	free(live.data);
}

static struct gmt_slot *slot(struct bytes live, uint32_t ring, uint64_t pos)
{
	return (struct gmt_slot *)((char *)live_ring(live, ring) + GMT_RING_HEAD) +
	       pos % GMT_RING_SLOTS;
}

/* Slots that were being written when the process died, or were damaged later: only they are lost.
 */
static void torn_slots(void **state)
{
	struct bytes live = new_live(PID, 1);
	static char longest[GMT_DEF_MAX];
	struct heard h;

	(void)state;
	name_files("torn.gmt");
	record(1, 10);
	for (uint64_t i = 11; i <= 20; i++)
		push_to(live, 0, i); /* positions 0 to 9 */
	memset(longest, 'x', 1000);
	push_def_to(live, 0, 5, longest); /* from position 10 on, 13 slots */
	push_to(live, 0, 21);		  /* position 23 */
	push_to(live, 0, 22);
	live_ring(live, 0)->head--; /* 22: committed, but the head was not moved */
	slot(live, 0, 25)->type = GMT_SLOT_EVENT;
	slot(live, 0, 25)->event = plain_event(23); /* 23: not committed */
	slot(live, 0, 4)->commit = 0;		    /* 15: damaged */
	slot(live, 0, 14)->commit = 12345;	    /* a hole in the definition */
	save_live(live);
	h = hear(recording);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.events_used, 21);
	for (size_t i = 0; i < 21; i++)
		assert_int_equal(h.events[i].seq, i < 14 ? i + 1 : i + 2);
	assert_int_equal(h.defs_used, 1);
	assert_int_equal(h.info.skipped_bytes, 14 * GMT_SLOT_BYTES);
	heard_free(&h);
	free(live.data);
}

/* All was given back, then one more was committed, and the process died before the head moved. */
static void one_slot_behind_an_idle_ring(void **state)
{
	struct bytes live = new_live(PID, 1);
	struct heard h;

	(void)state;
	name_files("idle.gmt");
	record(1, 10);
	for (uint64_t i = 1; i <= 11; i++)
		push_to(live, 0, i);
	gmt_ring_release(live_ring(live, 0), 10);
	live_ring(live, 0)->head--;
	save_live(live);
	h = hear(recording);
	check_sequence(&h, 1, 11);
	heard_free(&h);
	free(live.data);
}

static void live_file_of_another_process(void **state)
{
	struct bytes live = new_live(PID, 1);
	struct gmt_live_header *head = (struct gmt_live_header *)live.data, own = *head;
	struct heard h;

	(void)state;
	name_files("other.gmt");
	record(1, 10);
	push_to(live, 0, 11);
	for (int other = 0; other < 4; other++) {
		*head = own;
		head->pid += other == 1;
		head->origin.start += other == 2; /* two containers may have the same pid */
		head->realtime_minus_monotonic_ns += other == 3;
		save_live(live);
		h = hear(recording);
		check_sequence(&h, 1, other ? 10 : 11);
		assert_int_equal(h.info.live_events, !other);
		heard_free(&h);
	}
	h = hear(live_path); /* asked for by name: what it holds, or the recording, never both */
	assert_int_equal(h.err, 0);
	assert_true(h.events_used == 1 || h.events_used == 10);
	heard_free(&h);
	free(live.data);
}

static void newer_or_odd_live_files(void **state)
{
	struct bytes live = new_live(PID, 1);
	struct gmt_live_header *head = (struct gmt_live_header *)live.data;
	struct heard h;

	(void)state;
	name_files("odd.gmt");
	push_to(live, 0, 11);
	head->version = GMT_VERSION + 1;
	save_live(live);
	h = hear(live_path);
	assert_int_equal(h.err, -GMT_ERR_NEWER_VERSION);
	record(1, 10);
	h = hear(recording);
	check_sequence(&h, 1, 10);
	assert_int_equal(h.info.skipped_bytes, live.len); /* one process writes one version */
	heard_free(&h);
	head->version = GMT_VERSION;
	head->slots = 8192; /* another geometry: nothing can be trusted */
	save_live(live);
	h = hear(recording);
	check_sequence(&h, 1, 10);
	assert_int_equal(h.info.skipped_bytes, live.len);
	heard_free(&h);
	write_file(live_path, "what is this", 12);
	h = hear(recording);
	check_sequence(&h, 1, 10);
	heard_free(&h);
	free(live.data);
}

/* Cut anywhere: the slots before the cut are read. */
static void truncated_live_files(void **state)
{
	struct bytes live = new_live(PID, 2);
	struct chance c = { 3 };

	(void)state;
	name_files("short.gmt");
	record(1, 10);
	for (uint64_t i = 11; i <= 60; i++)
		push_to(live, i > 35, i);
	for (int round = 0; round < 400; round++) {
		size_t second = GMT_LIVE_PAGE + GMT_RING_REGION;
		size_t at = round % 2 ? second : 0, slots, n, want = 10;
		struct heard h;

		n = at + chance_below(&c, GMT_LIVE_PAGE + GMT_RING_HEAD + 26 * GMT_SLOT_BYTES);
		slots = n < GMT_LIVE_PAGE + GMT_RING_HEAD
				? 0
				: (n - GMT_LIVE_PAGE - GMT_RING_HEAD) / GMT_SLOT_BYTES;
		want += slots < 25 ? slots : 25;
		if (n >= second + GMT_RING_HEAD)
			want += (n - second - GMT_RING_HEAD) / GMT_SLOT_BYTES < 25
					? (n - second - GMT_RING_HEAD) / GMT_SLOT_BYTES
					: 25;
		write_file(live_path, live.data, n);
		h = hear(recording);
		check_sequence(&h, 1, want);
		heard_free(&h);
	}
	free(live.data);
}

/* A kind that nobody has may as well be one of a later version. */
static bool is_kind(size_t byte_of_slot)
{
	size_t event = offsetof(struct gmt_slot, event) + offsetof(struct gmt_event, kind);
	size_t def = offsetof(struct gmt_slot, def_kind);

	return byte_of_slot / 2 == event / 2 || byte_of_slot / 2 == def / 2;
}

static bool drops(size_t byte_of_ring)
{
	return byte_of_ring / 8 == offsetof(struct gmt_ring, dropped) / 8;
}

/* Any bit of the parts in use: what no flip touched is told as it was, and nothing crashes. */
static void flipped_bits_in_live_files(void **state)
{
	struct bytes live = new_live(PID, 1);
	size_t ring = GMT_LIVE_PAGE, slots = ring + GMT_RING_HEAD;
	size_t head = sizeof(struct gmt_live_header);
	int fd;

	(void)state;
	name_files("bits.gmt");
	record(1, 10);
	for (uint64_t i = 11; i <= 14; i++)
		push_to(live, 0, i);
	push_def_to(live, 0, 9,
		    "a definition that is longer than what one slot of ninety-six "
		    "bytes can hold, so that it takes two of them");
	push_to(live, 0, 15);
	save_live(live);
	fd = open(live_path, O_WRONLY);
	for (size_t i = 0; i < 8 * (head + 128 + 7 * GMT_SLOT_BYTES); i++) {
		size_t at = i / 8 < head	 ? i / 8
			    : i / 8 < head + 128 ? ring + i / 8 - head
						 : slots + i / 8 - head - 128;
		uint8_t byte = live.data[at] ^ (uint8_t)(1 << i % 8);
		size_t hit = at < slots ? SIZE_MAX : (at - slots) / GMT_SLOT_BYTES, right = 0;
		struct heard h;

		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
		h = hear(recording);
		if (h.err == -GMT_ERR_UNKNOWN_KIND && at >= slots)
			assert_true(is_kind((at - slots) % GMT_SLOT_BYTES));
		else
			assert_int_equal(h.err, 0);
		for (size_t k = 0; k < h.events_used; k++) {
			struct gmt_event want = plain_event(h.events[k].seq);

			right += same_event(&h.events[k], &want) && h.events[k].seq <= 15;
		}
		assert_true(h.err || right >= (hit == SIZE_MAX	     ? 10
					       : hit < 4 || hit == 6 ? 14
								     : 15));
		/* slots 4 and 5 are the definition: its second may turn into an event; what a ring
		 * dropped is one more */
		assert_true(h.events_used <= (hit == 5 || drops(at - ring) ? 16u : 15u));
		heard_free(&h);
		assert_int_equal(pwrite(fd, live.data + at, 1, (off_t)at), 1);
	}
	close(fd);
	free(live.data);
}

static int copy_def(void *ctx, const struct gmt_def *d)
{
	return gmt_writer_def(ctx, d);
}

static int copy_event(void *ctx, const struct gmt_event *e)
{
	return gmt_writer_event(ctx, e);
}

/* Reader into writer makes a clean recording of a damaged one and its live file. */
static void recovered_recording_is_clean(void **state)
{
	static const struct gmt_tool tool = { .def = copy_def, .event = copy_event };
	const char *path = scratch_path("clean.gmt");
	struct bytes live = new_live(PID, 1), file;
	struct gmt_reader *r;
	struct gmt_writer *w;
	struct heard h;
	int fd, err;

	(void)state;
	name_files("broken.gmt");
	record(1, 1000);
	file = read_file(recording);
	memset(file.data + file.len / 2, 0xee, 100); /* one or two blocks */
	write_file(recording, file.data, file.len - 7);
	push_def_to(live, 0, 2, "two");
	for (uint64_t i = 990; i <= 1100; i++)
		push_to(live, 0, i);
	save_live(live);
	r = gmt_reader_open(recording, &err);
	path = scratch_path("clean.gmt");
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	w = open_writer(fd, PID);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, w), 0);
	assert_int_equal(gmt_writer_finish(w), 0);
	h = hear(path);
	assert_int_equal(h.err, 0);
	assert_true(h.info.clean_end && !h.info.truncated && h.info.has_index);
	/* of the 20 blocks of 50, which are one group, those before the hit ones, and the rings */
	assert_in_range(h.events_used, 8 * 50 + 111, 11 * 50 + 111);
	assert_int_equal(h.events[h.events_used - 1].seq, 1100);
	assert_int_equal(h.defs_used, 2);
	heard_free(&h);
	gmt_reader_close(r);
	close_writer(w);
	close(fd);
	free(file.data);
	free(live.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_continue_the_blocks),
		cmocka_unit_test(everything_is_in_the_live_file),
		cmocka_unit_test(wrapped_and_full),
		cmocka_unit_test(torn_slots),
		cmocka_unit_test(one_slot_behind_an_idle_ring),
		cmocka_unit_test(live_file_of_another_process),
		cmocka_unit_test(newer_or_odd_live_files),
		cmocka_unit_test(truncated_live_files),
		cmocka_unit_test(flipped_bits_in_live_files),
		cmocka_unit_test(recovered_recording_is_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

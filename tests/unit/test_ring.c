/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings: what is pushed comes out once and in order, wrapped, full, in one thread and in two; slots
 * that are torn or make no sense are told apart from empty ones; and what a push costs.
 *
 * links: tests/unit/recordings.c
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "recordings.h"
#include "../../format/record.h"

static void *new_ring(void)
{
	void *region = aligned_alloc(64, GMT_RING_REGION);

	assert_non_null(region);
	memset(region, 0xa5, GMT_RING_REGION); /* any content */
	gmt_ring_init(region, 7);
	return region;
}

static struct gmt_slot *slot(struct gmt_ring *r, uint64_t pos)
{
	return (struct gmt_slot *)((char *)r + GMT_RING_HEAD) + pos % GMT_RING_SLOTS;
}

static void new_ring_is_empty(void **state)
{
	struct gmt_ring *r = new_ring();
	struct gmt_ring_item item;
	static uint8_t buf[GMT_DEF_MAX];
	uint64_t pos = 0;

	(void)state;
	assert_int_equal(r->thread, 7);
	assert_int_equal(r->state, GMT_RING_OWNED);
	assert_int_equal(gmt_ring_used(r), 0);
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), 0);
	assert_int_equal(pos, 0);
	free(r);
}

static void looks_ahead_at_events_alone(void **state)
{
	static const char text[200];
	const struct gmt_def d = { .kind = GMT_DEF_STRING, .id = 1, .len = 200, .payload = text };
	struct gmt_ring *r = new_ring();
	struct gmt_event e = plain_event(1);

	(void)state;
	assert_null(gmt_ring_event_at(r, 0));
	assert_true(gmt_ring_push(r, &e));
	assert_true(gmt_ring_push_def(r, &d));
	e = plain_event(2);
	assert_true(gmt_ring_push(r, &e));
	assert_int_equal(gmt_ring_event_at(r, 0)->seq, plain_event(1).seq);
	for (uint64_t pos = 1; pos < 4; pos++)
		assert_null(gmt_ring_event_at(r, pos));
	assert_true(same_event(gmt_ring_event_at(r, 4), &e));
	assert_null(gmt_ring_event_at(r, 5));
	assert_null(gmt_ring_event_at(r, GMT_RING_SLOTS)); /* the slot of 0 */
	free(r);
}

static void full_ring_refuses_and_goes_on(void **state)
{
	struct gmt_ring *r = new_ring();
	static uint8_t buf[GMT_DEF_MAX];
	struct gmt_ring_item item;
	struct gmt_event e;
	uint64_t pos = 0;

	(void)state;
	for (uint64_t i = 1; i <= GMT_RING_SLOTS; i++) {
		e = plain_event(i);
		assert_true(gmt_ring_push(r, &e));
	}
	assert_int_equal(gmt_ring_used(r), GMT_RING_SLOTS);
	e = plain_event(9999);
	assert_false(gmt_ring_push(r, &e));
	for (uint64_t i = 1; i <= GMT_RING_SLOTS; i++) {
		struct gmt_event want = plain_event(i);

		assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), 1);
		assert_false(item.is_def);
		assert_true(same_event(&item.event, &want));
	}
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), 0);
	assert_false(gmt_ring_push(r, &e)); /* looking gives nothing back */
	gmt_ring_release(r, 1);
	assert_true(gmt_ring_push(r, &e));
	assert_false(gmt_ring_push(r, &e));
	free(r);
}

static uint8_t pattern(uint32_t id, uint32_t i)
{
	return (uint8_t)(id * 31 + i * 7);
}

static struct gmt_def make_def(uint32_t id, uint32_t len, uint8_t *payload)
{
	for (uint32_t i = 0; i < len; i++)
		payload[i] = pattern(id, i);
	return (struct gmt_def){ .kind = 1 + id % 6, .id = id, .len = len, .payload = payload };
}

static void check_def(const struct gmt_def *d, uint32_t id, uint32_t len)
{
	const uint8_t *p = d->payload;

	assert_int_equal(d->id, id);
	assert_int_equal(d->kind, 1 + id % 6);
	assert_int_equal(d->len, len);
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != pattern(id, i))
			fail_msg("byte %u of definition %u", i, id);
}

/* All lengths around the slots' borders, and the longest; the ring wraps many times. */
static void definitions_of_any_length(void **state)
{
	static uint8_t payload[GMT_DEF_MAX + 1], buf[GMT_DEF_MAX];
	struct gmt_ring *r = new_ring();
	uint64_t pos = 0;

	(void)state;
	for (uint32_t id = 1; id < 600; id++) {
		uint32_t len = id < 500 ? id - 1 : GMT_DEF_MAX - (id - 500) * 13;
		struct gmt_def d = make_def(id, len, payload);
		struct gmt_ring_item item;

		assert_true(gmt_ring_push_def(r, &d));
		assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), 1);
		assert_true(item.is_def);
		check_def(&item.def, id, len);
		gmt_ring_release(r, pos);
		assert_int_equal(gmt_ring_used(r), 0);
	}
	{
		struct gmt_def d = make_def(1, GMT_DEF_MAX + 1, payload);

		assert_false(gmt_ring_push_def(r, &d));
	}
	free(r);
}

static void definition_needs_all_its_slots(void **state)
{
	static uint8_t payload[800];
	struct gmt_ring *r = new_ring();
	struct gmt_event e = plain_event(1);
	struct gmt_def d = make_def(1, 76 + 80, payload); /* two slots */

	(void)state;
	for (uint32_t i = 0; i < GMT_RING_SLOTS - 1; i++)
		assert_true(gmt_ring_push(r, &e));
	assert_false(gmt_ring_push_def(r, &d));
	assert_int_equal(gmt_ring_used(r), GMT_RING_SLOTS - 1);
	gmt_ring_release(r, 1);
	assert_true(gmt_ring_push_def(r, &d));
	assert_int_equal(gmt_ring_used(r), GMT_RING_SLOTS);
	free(r);
}

/* Killed between the slot's commit and the head: the slot counts. Killed before the commit: not. */
static void last_slot_of_a_killed_producer(void **state)
{
	static uint8_t buf[GMT_DEF_MAX];
	struct gmt_ring *r = new_ring();
	struct gmt_event e = plain_event(5);
	struct gmt_ring_item item;
	uint64_t pos = 0;

	(void)state;
	assert_true(gmt_ring_push(r, &e));
	r->head = 0;
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), 1);
	assert_true(same_event(&item.event, &e));
	slot(r, 0)->commit = 0;
	pos = 0;
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), 0);
	assert_int_equal(pos, 0);
	free(r);
}

static void slots_that_make_no_sense(void **state)
{
	static uint8_t payload[800], buf[GMT_DEF_MAX];
	struct gmt_ring *r = new_ring();
	struct gmt_event e = plain_event(5);
	struct gmt_def d = make_def(1, 500, payload);
	struct gmt_ring_item item;
	uint64_t pos;
	uint32_t length = GMT_DEF_MAX + 1;

	(void)state;
	assert_true(gmt_ring_push(r, &e));     /* 0 */
	assert_true(gmt_ring_push_def(r, &d)); /* 1 to 7 */
	assert_true(gmt_ring_push(r, &e));     /* 8 */
	slot(r, 0)->type = 77;
	pos = 0;
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), -GMT_ERR_BAD_RECORD);
	slot(r, 0)->commit = 99; /* torn, but behind the head */
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), -GMT_ERR_BAD_RECORD);
	assert_int_equal(pos, 0);
	pos = 1;
	slot(r, 4)->commit = 0; /* a hole in the definition */
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), -GMT_ERR_BAD_RECORD);
	slot(r, 4)->commit = 5;
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), 1);
	memcpy(slot(r, 1)->bytes, &length, 4);
	pos = 1;
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), -GMT_ERR_BAD_RECORD);
	pos = 2; /* MORE without its first slot */
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), -GMT_ERR_BAD_RECORD);
	pos = 8;
	assert_int_equal(gmt_ring_peek(r, &pos, &item, buf), 1);
	assert_true(same_event(&item.event, &e));
	free(r);
}

#define ROUNDS 60000u

static bool is_def_round(uint32_t i)
{
	return i % 5 == 0;
}

static void *produce(void *arg)
{
	static uint8_t payload[1024];

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		struct gmt_event e = plain_event(i);
		struct gmt_def d = make_def(i, i % 700, payload);

		while (is_def_round(i) ? !gmt_ring_push_def(arg, &d) : !gmt_ring_push(arg, &e))
			sched_yield();
	}
	return NULL;
}

/* Under the thread sanitizer this is the proof that commit, head and tail are enough. */
static void two_threads(void **state)
{
	static uint8_t buf[GMT_DEF_MAX];
	struct gmt_ring *r = new_ring();
	pthread_t thread;
	uint64_t pos = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, produce, r), 0);
	for (uint32_t i = 1; i <= ROUNDS;) {
		struct gmt_ring_item item;
		int rc = gmt_ring_peek(r, &pos, &item, buf);

		assert_true(rc >= 0);
		if (rc == 0) {
			gmt_ring_release(r, pos);
			sched_yield();
			continue;
		}
		assert_int_equal(item.is_def, is_def_round(i));
		if (item.is_def) {
			check_def(&item.def, i, i % 700);
		} else {
			struct gmt_event want = plain_event(i);

			assert_true(same_event(&item.event, &want));
		}
		if (++i % 64 == 0)
			gmt_ring_release(r, pos);
	}
	pthread_join(thread, NULL);
	free(r);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Beside a plain copy of the event to the same slots; measured, printed, loosely held. */
static void push_costs_little_more_than_the_copy(void **state)
{
	struct gmt_ring *r = new_ring();
	struct gmt_event e = plain_event(1);
	uint64_t push = UINT64_MAX, copy = UINT64_MAX;

	(void)state;
	for (int round = 0; round < 50; round++) {
		uint64_t t0 = now_ns(), t1;

		for (uint32_t i = 0; i < GMT_RING_SLOTS; i++) {
			e.seq++;
			slot(r, i)->event = e;
			__asm__ volatile("" ::: "memory");
		}
		t1 = now_ns();
		copy = t1 - t0 < copy ? t1 - t0 : copy;
		for (uint32_t i = 0; i < GMT_RING_SLOTS; i++) {
			e.seq++;
			assert_true(gmt_ring_push(r, &e));
		}
		push = now_ns() - t1 < push ? now_ns() - t1 : push;
		gmt_ring_release(r, r->head);
	}
	print_message("push %.1f ns, of which the copy %.1f ns\n", (double)push / GMT_RING_SLOTS,
		      (double)copy / GMT_RING_SLOTS);
	assert_true(push / GMT_RING_SLOTS < 2000); /* any machine, any sanitizer */
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_ring_is_empty),
		cmocka_unit_test(looks_ahead_at_events_alone),
		cmocka_unit_test(full_ring_refuses_and_goes_on),
		cmocka_unit_test(definitions_of_any_length),
		cmocka_unit_test(definition_needs_all_its_slots),
		cmocka_unit_test(last_slot_of_a_killed_producer),
		cmocka_unit_test(slots_that_make_no_sense),
		cmocka_unit_test(two_threads),
		cmocka_unit_test(push_costs_little_more_than_the_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

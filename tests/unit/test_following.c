/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording that grows: what a look that reads on comes to is what a reader of the whole file
 * comes to, also where events come late; and the last moments of a living process wait.
 * links: tests/unit/recordings.c tests/unit/training.c
 */
#include "recordings.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "../../format/record.h"
#include "../../viewer/moments/following.h"

#define FIRST 1500u /* events until there is a device to follow */
#define PIECE 400u

static struct gmt_event *events;
static size_t count, room;

static void keep(void *ctx, const struct gmt_event *e)
{
	(void)ctx;
	if (count == room) {
		room = room ? 2 * room : 1024;
		events = realloc(events, room * sizeof(*events));
	}
	events[count++] = *e;
}

struct growing {
	const char *path;
	struct gmt_writer *writer;
	int fd;
	struct following f;
};

static void start(struct growing *g, const char *name)
{
	*g = (struct growing){ .path = scratch_path(name) };
	g->fd = open(g->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	g->writer = open_writer(g->fd, (uint32_t)getpid());
	g->f = (struct following){ .path = g->path, .device = -1 };
}

static void put(struct growing *g, const struct gmt_event *e)
{
	assert_int_equal(gmt_writer_event(g->writer, e), 0);
}

static void flush(struct growing *g)
{
	assert_int_equal(gmt_writer_flush(g->writer), 0);
}

static void stop(struct growing *g)
{
	following_close(&g->f);
	close_writer(g->writer);
	close(g->fd);
}

static void same_as_whole(struct growing *g)
{
	struct recording r;
	struct timeline whole;
	const struct timeline *t = &g->f.timeline;
	const struct model_device *a, *b;

	assert_int_equal(recording_open(&r, g->path), 0);
	assert_int_equal(timeline_open(&whole, &r, -1), 0);
	assert_int_equal(t->device, whole.device);
	assert_int_equal(t->framework, whole.framework);
	a = &t->model.devices[t->device];
	b = &whole.model.devices[whole.device];
	assert_int_equal(t->model.events, whole.model.events);
	assert_int_equal(t->model.last_seq, whole.model.last_seq);
	assert_int_equal(model_curve(a)->now, model_curve(b)->now);
	assert_int_equal(model_curve(a)->peak.bytes, model_curve(b)->peak.bytes);
	assert_int_equal(a->reserved.now, b->reserved.now);
	assert_int_equal(t->model.spans.count, whole.model.spans.count);
	assert_int_equal(t->steps.count, whole.steps.count);
	for (size_t i = 0; i < whole.steps.count; i++)
		assert_int_equal(t->steps.items[i].extent.peak, whole.steps.items[i].extent.peak);
	timeline_close(&whole);
	recording_close(&r);
}

static void look(struct growing *g)
{
	flush(g);
	assert_int_equal(following_look(&g->f), 0);
	same_as_whole(g);
}

static void test_reads_on(void **state)
{
	struct growing g;

	(void)state;
	start(&g, "grows.gmt");
	for (size_t i = 0; i < count; i++) {
		put(&g, &events[i]);
		if (i >= FIRST && i % PIECE == 0)
			look(&g);
	}
	look(&g);
	look(&g);
	assert_int_equal(g.f.whole_reads, 1);
	stop(&g);
}

static void test_names_that_come_later(void **state)
{
	struct growing g;
	struct gmt_def d = { GMT_DEF_STRING, 900, 5, "first" };

	(void)state;
	start(&g, "names.gmt");
	for (size_t i = 0; i < FIRST; i++)
		put(&g, &events[i]);
	look(&g);
	assert_int_equal(gmt_writer_def(g.writer, &d), 0);
	look(&g);
	assert_string_equal(defs_string(&g.f.recording.defs, 900).s, "first");
	d.payload = "other";
	assert_int_equal(gmt_writer_def(g.writer, &d), 0);
	look(&g);
	assert_string_equal(defs_string(&g.f.recording.defs, 900).s, "other");
	assert_int_equal(g.f.whole_reads, 1);
	stop(&g);
}

static const struct defs_module *library(struct growing *g)
{
	return symbols_module(g->f.timeline.stacks.symbols, 0x5001, g->f.seq);
}

/* A library that is loaded between two looks: nothing is read anew for it. */
static void test_library_comes_later(void **state)
{
	struct {
		struct gmt_def_module head;
		char path[4];
	} lib = { { .start = 0x5000, .end = 0x6000, .path_len = 4 }, "/lib" };
	struct gmt_def d = { GMT_DEF_MODULE, 1, sizeof(lib), &lib };
	struct growing g;

	(void)state;
	start(&g, "library.gmt");
	for (size_t i = 0; i < FIRST; i++)
		put(&g, &events[i]);
	look(&g);
	assert_null(library(&g));
	assert_int_equal(gmt_writer_def(g.writer, &d), 0);
	put(&g, &events[FIRST]);
	look(&g);
	assert_non_null(library(&g));
	assert_string_equal(library(&g)->path.s, "/lib");
	assert_int_equal(g.f.whole_reads, 1);
	stop(&g);
}

/* Another thread's event has a number that others have passed. */
static void test_comes_late(void **state)
{
	struct growing g;

	(void)state;
	start(&g, "late.gmt");
	for (size_t i = 0; i < FIRST; i++)
		put(&g, &events[i]);
	look(&g);
	for (size_t i = FIRST; i < FIRST + PIECE; i++)
		if (i != FIRST + 7)
			put(&g, &events[i]);
	look(&g);
	assert_int_equal(g.f.whole_reads, 1);
	assert_int_equal(g.f.gap_count, 1);
	put(&g, &events[FIRST + 7]);
	look(&g);
	assert_int_equal(g.f.whole_reads, 2);
	assert_int_equal(g.f.gap_count, 0);
	stop(&g);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* An old event, and one of this moment, which is looked at. False: the look came so late, on a busy
 * machine, that no event is of the last moments. */
static bool new_one_waits(struct growing *g)
{
	struct gmt_event e = { .seq = 1,
			       .kind = GMT_BLOCK_ALLOC,
			       .addr = 0x10000000,
			       .size = 512,
			       .arg0 = 512,
			       .arg1 = 4096 };

	start(g, "waits.gmt");
	e.time_ns = now() - 1000000000u;
	put(g, &e);
	look(g);
	e.seq = 2;
	e.addr += 512;
	e.arg0 += 512;
	e.time_ns = now();
	put(g, &e);
	flush(g);
	assert_int_equal(following_look(&g->f), 0);
	if (g->f.timeline.model.last_seq == 1)
		return true;
	assert_true(now() - e.time_ns > FOLLOWING_SETTLED);
	return false;
}

/* This process writes it, and lives. */
static void test_last_moments_wait(void **state)
{
	struct following once = { .device = -1, .once = true };
	struct growing g;

	(void)state;
	while (!new_one_waits(&g))
		stop(&g);
	once.path = g.path;
	assert_int_equal(following_look(&once), 0);
	assert_int_equal(once.timeline.model.last_seq, 2);
	following_close(&once);
	nanosleep(&(struct timespec){ 0, 150000000 }, NULL);
	look(&g);
	assert_int_equal(g.f.whole_reads, 1);
	stop(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_on),
		cmocka_unit_test(test_names_that_come_later),
		cmocka_unit_test(test_library_comes_later),
		cmocka_unit_test(test_comes_late),
		cmocka_unit_test(test_last_moments_wait),
	};
	int rc;

	train(6, keep, NULL);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	free(events);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long recording from a short one: what happened between two times (a whole step in the steady
 * state) happens so many times over. For tests of what must stay fast and small however long the
 * run:
 *
 *	make build/data/make_long && build/data/make_long IN.gmt OUT.gmt FROM_NS TO_NS TIMES
 */
#include "../../format/record.h"
#include "../unit/recordings.h"

#include <fcntl.h>
#include <unistd.h>

static struct gmt_writer *writer;
static uint64_t from_ns, to_ns, times;
static struct gmt_event *kept; /* of the stretch */
static size_t count, room;
static uint64_t more_seq, more_ns, more_numbers; /* what is added to all that comes */

static void check(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "make_long: %s: %s\n", what, gmt_strerror(rc));
	exit(1);
}

static int def(void *ctx, const struct gmt_def *d)
{
	(void)ctx;
	return gmt_writer_def(writer, d);
}

static void put(struct gmt_event e)
{
	e.seq += more_seq;
	e.time_ns += more_ns;
	if (e.kind == GMT_RANGE_BEGIN || e.kind == GMT_RANGE_END)
		e.arg0 += more_numbers;
	check(gmt_writer_event(writer, &e), "an event");
}

/* Once they were written already. */
static void repeat(void)
{
	const struct gmt_event *first = &kept[0], *last = &kept[count - 1];

	for (uint64_t n = 1; n < times; n++) {
		more_seq += last->seq - first->seq + 1;
		more_ns += to_ns - from_ns;
		more_numbers += 1000;
		for (size_t i = 0; i < count; i++)
			put(kept[i]);
	}
	count = 0;
}

static int event(void *ctx, const struct gmt_event *e)
{
	(void)ctx;
	if (e->time_ns >= to_ns && count)
		repeat();
	put(*e);
	if (e->time_ns < from_ns || e->time_ns >= to_ns)
		return 0;
	if (count == room) {
		room = room ? 2 * room : 1024;
		kept = realloc(kept, room * sizeof(*kept));
	}
	kept[count++] = *e;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct gmt_tool tool = { .def = def, .event = event };
	size_t bytes = (gmt_writer_workspace(0) + 63) / 64 * 64;
	struct gmt_writer_info info = { .pid = 4711 };
	struct gmt_reader *r;
	int err = 0, fd;

	if (argc != 6) {
		fprintf(stderr, "make_long IN.gmt OUT.gmt FROM_NS TO_NS TIMES\n");
		return 2;
	}
	from_ns = strtoull(argv[3], NULL, 0);
	to_ns = strtoull(argv[4], NULL, 0);
	times = strtoull(argv[5], NULL, 0);
	r = gmt_reader_open(argv[1], &err);
	fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
	check(r ? 0 : err, argv[1]);
	writer = gmt_writer_open(aligned_alloc(64, bytes), bytes, fd, &info, &err);
	check(writer ? 0 : err, argv[2]);
	check(gmt_reader_run(r, 0, UINT64_MAX, &tool, NULL), argv[1]);
	check(gmt_writer_finish(writer), argv[2]);
	gmt_reader_close(r);
	return close(fd);
}

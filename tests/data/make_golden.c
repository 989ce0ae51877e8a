/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the golden recordings of the present format version and, from what it put in and not from
 * what a reader said, the text of what each holds:
 *
 *	make build/data/make_golden && build/data/make_golden FOLDER
 *
 * Run once for a version. Files of earlier versions are never made anew: they must decode for ever.
 */
#include "../../format/record.h"
#include "../unit/recordings.h"

#include <fcntl.h>
#include <unistd.h>

#define PID	   4242
#define START	   987654	       /* of the process, clock ticks since boot */
#define WALL_CLOCK 1700000000000000000 /* realtime minus monotonic */

struct golden {
	struct gmt_writer *w;
	int fd;
	FILE *defs, *events; /* text; joined at the end */
	char *defs_text, *events_text;
	size_t defs_len, events_len;
	char path[4096];
};

static void golden_open(struct golden *g, const char *folder, const char *name)
{
	struct gmt_writer_info info = { .pid = PID,
					.realtime_minus_monotonic_ns = WALL_CLOCK,
					.start = START };
	size_t n = (gmt_writer_workspace(0) + 63) / 64 * 64;
	int err;

	memset(g, 0, sizeof(*g));
	snprintf(g->path, sizeof(g->path), "%s/%s.gmt", folder, name);
	g->fd = open(g->path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	g->w = gmt_writer_open(aligned_alloc(64, n), n, g->fd, &info, &err);
	g->defs = open_memstream(&g->defs_text, &g->defs_len);
	g->events = open_memstream(&g->events_text, &g->events_len);
	if (!g->w || !g->defs || !g->events) {
		perror(g->path);
		exit(1);
	}
}

static void golden_close(struct golden *g)
{
	char path[4200];
	FILE *f;

	snprintf(path, sizeof(path), "%s.txt", g->path);
	f = fopen(path, "w");
	fclose(g->defs);
	fclose(g->events);
	fputs(g->defs_text, f);
	fputs(g->events_text, f);
	fclose(f);
	close(g->fd);
	free(g->w);
}

static void add_event(void *ctx, const struct gmt_event *e)
{
	struct golden *g = ctx;

	gmt_writer_event(g->w, e);
	describe_event(g->events, e);
}

static void add_def(struct golden *g, uint32_t kind, uint32_t id, const void *payload, size_t len)
{
	struct gmt_def d = { kind, id, (uint32_t)len, payload };

	gmt_writer_def(g->w, &d);
	describe_def(g->defs, &d);
}

/* The recording of FORMAT.md's worked example: small enough to be read by eye. */
static void make_tiny(const char *folder)
{
	static const char meta[] = "\4\0hostbox";
	static const char thread[] = "\222\20\0\0\4\0\0\0main";
	struct golden g;
	struct gmt_def_stack node = { 0x55d0c0de1234, 0, GMT_FRAME_NATIVE };
	struct gmt_event e = {
		.seq = 1,
		.time_ns = 5000000000,
		.addr = 0x7f3a40000000,
		.size = 2097152,
		.arg0 = 2097152,
		.arg1 = 20971520,
		.stack = 1,
		.thread = 1,
		.kind = GMT_BLOCK_ALLOC,
	};

	golden_open(&g, folder, "tiny");
	add_def(&g, GMT_DEF_META, 0, meta, sizeof(meta) - 1);
	add_def(&g, GMT_DEF_THREAD, 1, thread, sizeof(thread) - 1);
	add_def(&g, GMT_DEF_STACK, 1, &node, sizeof(node));
	add_event(&g, &e);
	e.seq = 2;
	e.time_ns += 1500;
	e.kind = GMT_BLOCK_FREE;
	e.arg0 = 0;
	add_event(&g, &e);
	add_event(&g, &(struct gmt_event){
			      .seq = 3,
			      .time_ns = e.time_ns + 1000000,
			      .thread = 1,
			      .kind = GMT_END,
			      .device = -1,
		      });
	gmt_writer_finish(g.w);
	golden_close(&g);
}

/* Every kind many times, every member at all lengths; definitions of every kind and length. */
static void make_kinds(const char *folder)
{
	struct golden g;
	struct chance c = { 2026 };
	uint8_t payload[300];

	golden_open(&g, folder, "kinds");
	for (uint32_t i = 0; i < 300; i++) {
		struct gmt_event e = chance_event(&c);

		e.seq = i + 1;
		add_event(&g, &e);
		for (uint32_t k = 0; k < i % 300; k++)
			payload[k] = (uint8_t)chance_next(&c);
		if (i % 9 == 0)
			add_def(&g, 1 + i / 9 % 6, i, payload, i % 300);
		if (i % 80 == 79)
			gmt_writer_flush(g.w);
	}
	gmt_writer_finish(g.w);
	golden_close(&g);
}

/* The first 700, in blocks of 100. */
static void add_in_blocks(void *ctx, const struct gmt_event *e)
{
	struct golden *g = ctx;

	if (e->seq > 700)
		return;
	add_event(ctx, e);
	if (e->seq % 100 == 0)
		gmt_writer_flush(g->w);
}

/* What a recording usually holds, in compressed blocks. */
static void make_training(const char *folder)
{
	struct golden g;

	golden_open(&g, folder, "training");
	train(1, add_in_blocks, &g);
	gmt_writer_finish(g.w);
	golden_close(&g);
}

/* No end, and a live file with two rings that go on where the blocks stop. */
static void make_killed(const char *folder)
{
	struct golden g;
	struct bytes live = new_live(PID, 2);
	struct gmt_live_header *head = (struct gmt_live_header *)live.data;
	char path[4200];

	golden_open(&g, folder, "killed");
	head->realtime_minus_monotonic_ns = WALL_CLOCK;
	head->origin.start = START;
	for (uint64_t i = 1; i <= 300; i++) {
		struct gmt_event e = plain_event(i);
		struct gmt_def d = { GMT_DEF_STRING, 9, 100, NULL };

		d.payload = "a name that is a hundred bytes long, so that its definition takes "
			    "two slots in a ring of the live.";
		if (i == 250) {
			gmt_ring_push_def(live_ring(live, 1), &d);
			describe_def(g.defs, &d);
		}
		if (i > 180)
			gmt_ring_push(live_ring(live, i % 2), &e);
		if (i <= 200)
			gmt_writer_event(g.w, &e);
		describe_event(g.events, &e);
	}
	gmt_writer_flush(g.w);
	snprintf(path, sizeof(path), "%s.live", g.path);
	write_file(path, live.data, live.len);
	golden_close(&g);
	free(live.data);
}

/* A bounded one: of each 50 events the first 10 are left, and a record of the others. */
static void leave_out(void *ctx, const struct gmt_event *e)
{
	struct golden *g = ctx;
	struct gmt_event record = {
		.seq = e->seq,
		.time_ns = e->time_ns,
		.size = 40,
		.arg0 = e->seq << 20,
		.arg1 = e->seq << 21,
		.stream = 17,
		.stack = (uint32_t)(e->seq % 7),
		.thread = 1,
		.name = (uint32_t)(e->seq % 3),
		.scope = (uint32_t)(e->seq / 50 % 2),
		.kind = GMT_THINNED,
		.device = (int32_t)(e->seq / 50 % 3),
	};

	if (e->seq > 3000)
		return;
	if (e->seq % 50 < 10)
		add_event(ctx, e);
	else if (e->seq % 50 == 49)
		add_event(ctx, &record);
	if (e->seq % 1000 == 0)
		gmt_writer_flush(g->w);
}

static void make_thinned(const char *folder)
{
	struct golden g;

	golden_open(&g, folder, "thinned");
	train(1, leave_out, &g);
	gmt_writer_finish(g.w);
	golden_close(&g);
}

/* Kinds of events and definitions that a reader without them passes over: this one too. */
static void make_extra(const char *folder)
{
	struct golden g;
	struct chance c = { 64 };

	golden_open(&g, folder, "extra");
	for (uint32_t i = 0; i < 300; i++) {
		struct gmt_event e = i % 3 ? chance_event(&c) : chance_extra(&c);

		e.seq = i + 1;
		add_event(&g, &e);
		if (i % 20 == 0)
			add_def(&g, i % 40 ? 64 + i % 64 : GMT_DEF_STRING, i, "payload", i % 8);
	}
	gmt_writer_finish(g.w);
	golden_close(&g);
}

/* Steps that repeat, which are written as copies: in one an event is missing, in another there is
 * one more. */
static void make_repeats(const char *folder)
{
	struct golden g;
	struct chance c = { 50 };
	struct gmt_event step[40];
	uint64_t seq = 0;

	golden_open(&g, folder, "repeats");
	for (uint32_t i = 0; i < 40; i++)
		step[i] = i % 10 == 9 ? chance_extra(&c) : chance_event(&c);
	for (uint32_t i = 0; i < 400; i++) {
		struct gmt_event e = step[i % 40], more = chance_event(&c);

		if (i == 180)
			continue;
		e.seq = ++seq;
		e.time_ns = 1000000 * i + chance_below(&c, 1000);
		e.scope += e.scope ? i / 40 * 11 : 0;
		if (e.kind == GMT_RANGE_BEGIN || e.kind == GMT_RANGE_END)
			e.arg0 += i / 40 * 7;
		if (e.kind >= GMT_TAG_LEAF && e.kind <= GMT_TAG_MOVED)
			e.arg0 = 0x7f0000000000 + 16 * chance_below(&c, 50);
		add_event(&g, &e);
		more.seq = seq + 1;
		if (i == 290)
			add_event(&g, &more);
		seq += i == 290;
		if (i % 150 == 149)
			gmt_writer_flush(g.w);
	}
	gmt_writer_finish(g.w);
	golden_close(&g);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_golden FOLDER\n");
		return 2;
	}
	make_tiny(argv[1]);
	make_kinds(argv[1]);
	make_training(argv[1]);
	make_killed(argv[1]);
	make_thinned(argv[1]);
	make_extra(argv[1]);
	make_repeats(argv[1]);
	return 0;
}

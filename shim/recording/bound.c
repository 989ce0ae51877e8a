/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thins a recording. Runs on the drain's thread, with memory of our own (thin_memory.c). The rings
 * are served meanwhile: new events go to the old file, and their blocks are copied to the end of
 * the new file. Both files together stay within the limit, so a kill at any moment leaves a
 * recording, the old one or the new one.
 *
 * Shares of the limit: the old file is thinned when it takes a half. Its first and its newest
 * sixteenth stay, and events around the highest peaks and the failed requests. If the result takes
 * more than three eighths, the middle is thinned further.
 */
#include "bound.h"

#include "../../format/block.h"
#include "../../format/reader.h"
#include "../../format/record.h"
#include "../base/config.h"
#include "../base/os.h"
#include "../capture.h"
#include "device_memory.h"
#include "facts.h"
#include "output.h"
#include "thin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS	 1000000ull
#define POINTS	 1024u
#define REFUSALS 8u
#define DEVICES	 MEMORY_DEVICES
#define SPARE	 (256u * 1024u) /* for the last blocks, the index, the end */
#define BLOCKS	 (64u * 1024u)	/* most bytes that one flush adds */

/* Approximate position of an event in the file. */
struct point {
	uint64_t bytes, seq;
};

static struct {
	struct point points[POINTS];
	uint32_t point_count;
	uint64_t seq; /* the highest that was written */
	struct {
		uint64_t bytes, seq;
	} peaks[DEVICES];
	struct device_memory memory; /* without a framework */
	bool framework;
	uint64_t refusals[REFUSALS]; /* seqs of failed requests: the first half, then the latest */
	uint32_t refusal_count;
	unsigned level;
	uint64_t retry_at; /* length of the file at which a failed thinning is tried again */
	uint64_t most;	   /* most bytes of the old file during a thinning */
	bool busy;
} bound;

static struct point points_before[POINTS];

static void note_peak(int32_t device, uint64_t bytes, uint64_t seq)
{
	if (device < 0 || device >= (int32_t)DEVICES || bytes <= bound.peaks[device].bytes)
		return;
	bound.peaks[device].bytes = bytes;
	bound.peaks[device].seq = seq;
}

/* Blocks carry the framework's sum. Peaks before the first block were of its cache. */
static void note_block(const struct gmt_event *e)
{
	if (!bound.framework)
		memset(bound.peaks, 0, sizeof(bound.peaks));
	bound.framework = true;
	note_peak(e->device, e->arg0, e->seq);
}

/* Without a framework, sums of the calls are made here. */
static void note_call(const struct gmt_event *e)
{
	bool blocks = bound.memory.framework;

	if (!memory_follow(&bound.memory, e))
		return;
	if (bound.memory.framework && !blocks)
		memset(bound.peaks, 0, sizeof(bound.peaks));
	note_peak(e->device, memory_total(&bound.memory, (unsigned)e->device), e->seq);
}

static void note_refusal(const struct gmt_event *e)
{
	uint32_t n = bound.refusal_count++;

	n = n < REFUSALS ? n : REFUSALS / 2 + n % (REFUSALS / 2);
	bound.refusals[n] = e->seq;
}

static void add_point(uint64_t bytes, uint64_t seq)
{
	struct point *last = bound.point_count ? &bound.points[bound.point_count - 1] : NULL;

	if (bound.point_count == POINTS ||
	    (last && bytes - last->bytes < gmt_config.max_size / POINTS))
		return;
	bound.points[bound.point_count++] = (struct point){ bytes, seq };
}

void bound_event(const struct gmt_event *e, uint64_t bytes)
{
	if (!gmt_config.max_size)
		return;
	if (!bound.busy)
		add_point(bytes, bound.seq);
	bound.seq = e->seq > bound.seq ? e->seq : bound.seq; /* a free can come late */
	if (e->kind == GMT_BLOCK_ALLOC)
		note_block(e);
	else if (e->kind == GMT_BLOCK_OOM || e->kind == GMT_MEM_FAIL)
		note_refusal(e);
	else if (!bound.framework)
		note_call(e);
}

static uint64_t seq_at(uint64_t bytes)
{
	uint64_t seq = 0;

	for (uint32_t i = 0; i < bound.point_count && bound.points[i].bytes <= bytes; i++)
		seq = bound.points[i].seq;
	return seq;
}

static uint64_t bytes_at(uint64_t seq)
{
	uint32_t i = 0;

	while (i + 1 < bound.point_count && bound.points[i].seq < seq)
		i++;
	return bound.point_count ? bound.points[i].bytes : 0;
}

static uint64_t due_at(void)
{
	uint64_t half = gmt_config.max_size / 2;

	return bound.retry_at > half ? bound.retry_at : half;
}

static uint64_t full_at(void)
{
	return gmt_config.max_size - SPARE * 2;
}

bool bound_is_due(uint64_t bytes)
{
	return gmt_config.max_size && !bound.busy && bytes >= due_at();
}

/* Length from which on events stay in the rings until the file is thinned: a drain that was not
 * scheduled for a while finds more of them than the file has room for. */
uint64_t bound_pause_at(void)
{
	if (!gmt_config.max_size)
		return UINT64_MAX;
	if (bound.busy)
		return bound.most;
	return due_at() < full_at() ? due_at() : UINT64_MAX;
}

bool bound_is_full(uint64_t bytes)
{
	static bool said;
	bool full = gmt_config.max_size && bytes >= full_at();

	if (full)
		gmt_say(&said, "the recording has reached GPUMEMTRACE_MAX_SIZE and cannot be "
			       "thinned further; it ends here, the program goes on");
	return full;
}

/* ---- which events may be left out ---- */

/* Takes [first, last] out of the plan's ranges. */
static void spare(struct thin_plan *p, uint64_t first, uint64_t last)
{
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t a = p->ranges[i].first, b = p->ranges[i].last;

		if (last < a || first > b || p->count + 1 >= THIN_RANGES)
			continue;
		memmove(&p->ranges[i + 1], &p->ranges[i], (p->count - i) * sizeof(p->ranges[0]));
		p->count++;
		p->ranges[i].first = a;
		p->ranges[i].last = first > a ? first - 1 : a - 1;
		p->ranges[i + 1].first = last + 1;
		p->ranges[i + 1].last = b;
		i++;
	}
}

static void spare_around(struct thin_plan *p, uint64_t seq)
{
	uint64_t at = bytes_at(seq), some = gmt_config.max_size / 128, first;

	first = seq_at(at > some ? at - some : 0);
	if (first + 1 < seq)
		spare(p, first + 1, seq_at(at) > seq ? seq_at(at) : seq);
	else
		spare(p, seq, seq);
}

static bool choose(struct thin_plan *p, uint64_t bytes)
{
	uint64_t some = gmt_config.max_size / 16;
	uint32_t count = 0;

	*p = (struct thin_plan){ .count = 1, .level = bound.level };
	p->ranges[0].first = seq_at(some) + 1;
	p->ranges[0].last = seq_at(bytes > some ? bytes - some : 0);
	for (uint32_t d = 0; d < DEVICES; d++)
		if (bound.peaks[d].seq)
			spare_around(p, bound.peaks[d].seq);
	for (uint32_t i = 0; i < REFUSALS; i++)
		if (bound.refusals[i])
			spare_around(p, bound.refusals[i]);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->ranges[i].first <= p->ranges[i].last)
			p->ranges[count++] = p->ranges[i];
	p->count = count;
	return count != 0;
}

/* ---- the new file ---- */

struct work {
	struct bound_drain *drain;
	struct gmt_reader *reader;
	struct gmt_writer *writer;
	struct thin_out out;
	struct thin_sums sums;
	uint64_t from; /* where the old file's blocks that are not yet copied begin */
	uint64_t looked_ns;
	uint32_t looked;
	int fd;
	bool too_much;
};

enum { STOP = 1 };

/* Bytes of both files once the new one has a copy of the blocks written meanwhile. */
static uint64_t both(const struct work *w)
{
	uint64_t old = gmt_writer_bytes(w->drain->writer);

	return old + (old - w->from) + (w->writer ? gmt_writer_bytes(w->writer) : 0);
}

/* A round of the drain every few milliseconds. */
static int serve(struct work *w)
{
	uint64_t now;

	if (++w->looked % 1024)
		return 0;
	now = os_now();
	if (now - w->looked_ns < 5 * MS)
		return 0;
	w->looked_ns = now;
	return w->drain->serve(false) ? 0 : STOP;
}

static int look(void *ctx, const struct gmt_event *e)
{
	return thin_look(e) ? serve(ctx) : -GMT_ERR_NO_MEMORY;
}

static int pass(void *ctx, const struct gmt_event *e)
{
	struct work *w = ctx;
	int rc = thin_pass(e, &w->out);

	return rc ? rc : serve(w);
}

static int write_event(void *ctx, const struct gmt_event *e)
{
	struct work *w = ctx;
	uint64_t bytes = gmt_writer_bytes(w->writer);

	add_point(bytes, e->seq);
	w->too_much = bytes > gmt_config.max_size / 8 * 3 || both(w) + SPARE > gmt_config.max_size;
	return w->too_much ? -GMT_ERR_FULL : gmt_writer_event(w->writer, e);
}

static bool is_thinned_fact(const struct gmt_def *d)
{
	static const char key[] = { 't', 'h', 'i', 'n', 'n', 'e', 'd', '.' };
	const char *payload = d->payload;

	return d->kind == GMT_DEF_META && d->len > 2 + sizeof(key) &&
	       !memcmp(payload + 2, key, sizeof(key));
}

static int copy_def(void *ctx, const struct gmt_def *d)
{
	struct work *w = ctx;

	return is_thinned_fact(d) ? 0 : gmt_writer_def(w->writer, d);
}

static struct gmt_writer *fact_writer;

static bool emit_fact(const struct gmt_def *d)
{
	return !gmt_writer_def(fact_writer, d);
}

static void write_facts(struct work *w)
{
	fact_writer = w->writer;
	facts_emit_number(emit_fact, "thinned.events", w->sums.events);
	facts_emit_number(emit_fact, "thinned.allocations", w->sums.allocs);
	facts_emit_number(emit_fact, "thinned.first_ns", w->sums.first_ns);
	facts_emit_number(emit_fact, "thinned.last_ns", w->sums.last_ns);
	facts_emit_number(emit_fact, "thinned.level", bound.level);
	facts_emit_number(emit_fact, "thinned.uses", bound.level < THIN_LEVEL_RANGES);
	facts_emit_number(emit_fact, "thinned.max_size", gmt_config.max_size);
}

static int thin_events(struct work *w)
{
	static const struct gmt_tool first = { .event = look },
				     second = { .def = copy_def, .event = pass };
	struct gmt_tool tool = first;
	int rc = gmt_reader_run(w->reader, 0, UINT64_MAX, &tool, w);

	if (!rc && !thin_turn())
		rc = -GMT_ERR_NO_MEMORY;
	bound.point_count = 0;
	tool = second;
	if (!rc)
		rc = gmt_reader_run(w->reader, 0, UINT64_MAX, &tool, w);
	if (!rc)
		rc = thin_finish(&w->out, &w->sums);
	if (rc)
		return rc;
	write_facts(w);
	return gmt_writer_flush(w->writer);
}

static bool read_at(int fd, uint64_t at, void *to, size_t len)
{
	return pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

/* Copies the blocks that the old file got meanwhile. */
static int copy_blocks(struct work *w, uint64_t end)
{
	static uint8_t stored[GMT_BLOCK_STORED_MAX];
	int fd = output_get()->recording.fd, rc = 0;

	while (w->from < end && !rc) {
		struct gmt_block_header h;

		if (!read_at(fd, w->from, &h, sizeof(h)) || !gmt_block_header_valid(&h) ||
		    !read_at(fd, w->from + sizeof(h), stored, h.stored_bytes))
			return -GMT_ERR_BAD_RECORD;
		rc = gmt_writer_append(w->writer, &h, stored);
		w->from += sizeof(h) + h.stored_bytes;
		if (h.type == GMT_BLOCK_EVENTS)
			add_point(gmt_writer_bytes(w->writer), h.last_seq);
	}
	return rc;
}

static int copy_rest(struct work *w)
{
	int rc = 0;

	gmt_writer_break(w->writer);
	rc = copy_blocks(w, gmt_writer_bytes(w->drain->writer));
	if (!rc && !w->drain->serve(true))
		rc = STOP;
	if (!rc)
		rc = copy_blocks(w, gmt_writer_bytes(w->drain->writer));
	gmt_writer_break(w->writer);
	return rc;
}

static int write_anew(struct work *w, struct bound_result *r)
{
	const struct gmt_writer_info *info = &w->drain->info;
	int err;

	r->workspace_bytes = gmt_writer_workspace(info->level);
	r->workspace = os_map(r->workspace_bytes);
	if (!r->workspace)
		return -GMT_ERR_NO_MEMORY;
	w->writer = gmt_writer_open(r->workspace, r->workspace_bytes, w->fd, info, &err);
	if (!w->writer)
		return err;
	err = thin_events(w);
	return err ? err : copy_rest(w);
}

/* Events that come meanwhile will be in both files. */
static uint64_t most_of_old(uint64_t from)
{
	uint64_t others = from + gmt_config.max_size / 8 * 3 + SPARE + 2 * BLOCKS;

	return others < gmt_config.max_size ? from + (gmt_config.max_size - others) / 2 : from;
}

static struct gmt_reader *open_reader(void)
{
	char name[40];
	int err;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", output_get()->recording.fd);
	return gmt_reader_open(name, &err);
}

static int thin_once(struct bound_drain *d, struct bound_result *r)
{
	struct work w = { .drain = d, .from = gmt_writer_bytes(d->writer), .fd = -1 };
	struct thin_plan plan;
	uint32_t points = bound.point_count;
	int rc = -GMT_ERR_SYS;

	bound.most = most_of_old(w.from);
	memcpy(points_before, bound.points, sizeof(points_before));
	w.out = (struct thin_out){ write_event, &w };
	w.reader = open_reader();
	if (w.reader && choose(&plan, w.from) && thin_begin(&plan))
		w.fd = output_part();
	if (w.fd >= 0)
		rc = write_anew(&w, r);
	thin_end();
	gmt_reader_close(w.reader);
	if (!rc && output_replace()) {
		r->writer = w.writer;
		return 0;
	}
	memcpy(bound.points, points_before, sizeof(points_before));
	bound.point_count = points;
	if (w.fd >= 0)
		output_drop_part();
	os_unmap(r->workspace, r->workspace_bytes);
	*r = (struct bound_result){ 0 };
	return w.too_much ? -GMT_ERR_FULL : rc ? rc : -GMT_ERR_SYS;
}

struct bound_result bound_thin(struct bound_drain *d)
{
	struct bound_result r = { 0 };
	int rc;

	bound.busy = true;
	bound.most = gmt_writer_bytes(d->writer);
	do {
		d->serve(true);
		gmt_writer_break(d->writer);
		rc = thin_once(d, &r);
	} while (rc == -GMT_ERR_FULL && ++bound.level < THIN_LEVELS);
	bound.busy = false;
	bound.retry_at =
		rc && rc != STOP ? gmt_writer_bytes(d->writer) + gmt_config.max_size / 16 : 0;
	return r;
}

void bound_forget(void)
{
	memory_free(&bound.memory);
	if (bound.seq)
		memset(&bound, 0, sizeof(bound));
}

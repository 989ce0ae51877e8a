/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain. Every few milliseconds it merges the rings by seq into the writer. It releases slots
 * only after the block with their contents has been written, so a kill loses nothing (a reader
 * drops duplicates).
 *
 * Order. A thread defines what its event refers to before it takes the event's seq. A round first
 * notes the highest seq, then reads the rings. So it finds all definitions that events up to that
 * seq use, and the merge by seq writes each before its users. A missing seq belongs to a thread
 * that has taken it but has not stored its event: later events are held back for a moment. If a
 * free takes longer (gmt_hold), its event is written after them, and readers sort. It gets a block
 * of its own, because a reader keeps blocks open whose ranges of seq overlap.
 */
#include "drain.h"

#include "../../format/record.h"
#include "../../format/writer.h"
#include "../base/config.h"
#include "bound.h"
#include "requests.h"
#include "facts.h"
#include "../capture.h"
#include "../rings/live.h"
#include "../stacks/intern_stack.h"
#include "../stacks/modules.h"
#include "../stacks/names.h"
#include "output.h"
#include "ring_heap.h"
#include "../stacks/python.h"
#include "intern_string.h"
#include "source.h"
#include "../rings/thread.h"

#include <string.h>

#define MS	     1000000ull
#define GAP_PATIENCE (50 * MS)
#define SOURCES_WAIT (1000 * MS) /* at the end, for files that are slow to read */
#define AHEAD	     6		 /* events to prefetch for */
#define EARLY_BLOCK  4096 /* events between flushes while `unsafe`; fewer than fill a block */
#define LATE	     1024 /* an event this far behind its place gets its own block */

/* The drain's position in a ring. */
struct cursor {
	uint64_t next;	  /* position to be read next */
	uint64_t written; /* the writer has everything before it */
	uint64_t dropped;
	bool has_head; /* heads[] has its next event */
};

static struct {
	struct gmt_writer *writer;
	struct gmt_writer_info info;
	void *workspace;
	uint32_t stop;
	uint64_t next_seq, gap_since;
	uint64_t numbers; /* seqs of events that were seen or are known to be lost */
	uint64_t last_flush, last_look;
	uint64_t lost, dropped;
	uint64_t given;		 /* those of `unkept` whose slots were released */
	uint64_t unwritten;	 /* events that earlier writers could not write */
	uint64_t unkept;	 /* events for which the size limit left no room */
	uint64_t early, unsafe;	 /* events from before the files existed; those not yet written */
	uint32_t unflushed;	 /* events and definitions since the last flush */
	bool pressed;		 /* a ring is filling up */
	bool finishing, closing; /* the program has ended; the last facts, which always have room */
	bool failed, gone;
} drain;

static struct cursor cursors[LIVE_RINGS_MAX];
static struct gmt_event heads[LIVE_RINGS_MAX];
static struct ring_heap heap;
static uint8_t definition[GMT_DEF_MAX];

bool drain_open(int fd, const struct gmt_writer_info *info)
{
	int err;

	drain.info = *info;
	drain.workspace = os_map(gmt_writer_workspace(info->level));
	if (!drain.workspace)
		return false;
	drain.next_seq = 1;
	drain.early = drain.unsafe = live_control()->dropped;
	drain.writer =
		gmt_writer_open(drain.workspace, gmt_writer_workspace(info->level), fd, info, &err);
	return drain.writer != NULL;
}

static bool is_full(void)
{
	return !drain.closing && bound_is_full(gmt_writer_bytes(drain.writer));
}

static void note_result(int rc)
{
	static bool said;

	if (!rc)
		return;
	drain.failed = true;
	gmt_say(&said, "the recording cannot be written any more (is the disk full?); "
		       "the program goes on without it");
}

bool drain_def(const struct gmt_def *d)
{
	if (is_full())
		return false;
	note_result(gmt_writer_def(drain.writer, d));
	sources_note(d);
	drain.unflushed++;
	return true;
}

/* Events lost because the disk was full. */
static uint64_t unwritten(void)
{
	return drain.unwritten + gmt_writer_lost(drain.writer);
}

static uint64_t dropped(void)
{
	return drain.dropped + __atomic_load_n(&gmt_session.lost, __ATOMIC_RELAXED) + drain.given +
	       drain.unsafe + unwritten();
}

static void write_event(const struct gmt_event *e)
{
	if (is_full() && e->kind != GMT_DROPPED) {
		drain.unkept++;
		return;
	}
	bound_event(e, gmt_writer_bytes(drain.writer));
	note_result(gmt_writer_event(drain.writer, e));
	drain.unflushed++;
}

static void write_now(struct gmt_event *e)
{
	e->device = -1;
	e->seq = session_next_seq();
	drain.numbers++;
	e->time_ns = session_now(session_paused());
	write_event(e);
}

/* Writes an event of the recorder: thread 0, unless it is about another thread. */
static void write_own(uint16_t kind, uint32_t thread, uint64_t arg0)
{
	struct gmt_event e = { .arg0 = arg0, .thread = thread, .kind = kind };

	write_now(&e);
}

/* Writes a mark from outside, which has no thread. */
static void write_mark(const char *name, size_t len)
{
	struct gmt_event e = {
		.kind = GMT_MARK,
		.arg1 = GMT_RANGE_PROGRAM,
		.name = strings_id(name, len, drain_def),
	};

	write_now(&e);
	drain_flush(); /* it is in no ring, and the requester might look at once */
}

/* ---- reading ---- */

/* Prefetches the writer's tables, which leave the caches while the drain waits. */
static void expect(const struct gmt_ring *r, uint64_t pos)
{
	const struct gmt_event *e = gmt_ring_event_at(r, pos);

	if (e)
		gmt_writer_expect(drain.writer, e);
}

/* Reads on to the ring's next event and hands on definitions. */
static void advance(uint32_t i, const struct gmt_ring *r)
{
	struct cursor *c = &cursors[i];
	struct gmt_ring_item item;
	int rc;

	c->has_head = false;
	while ((rc = gmt_ring_peek(r, &c->next, &item, definition)) != 0) {
		if (rc < 0) {
			c->next++; /* should not happen: skip it, but never the head */
			if (c->next >= __atomic_load_n(&r->head, __ATOMIC_ACQUIRE))
				return;
		} else if (item.is_def) {
			drain_def(&item.def);
		} else {
			heads[i] = item.event;
			c->has_head = true;
			expect(r, c->next + AHEAD);
			return;
		}
		c->written = c->next;
	}
}

/* Whether the count can be written later: a live file has it until then. */
static bool may_wait(bool at_end)
{
	return !at_end && live_is_shared();
}

static void note_dropped(uint32_t i, const struct gmt_ring *r, bool at_end)
{
	uint64_t all = __atomic_load_n(&r->dropped, __ATOMIC_RELAXED);
	uint64_t dropped = all - cursors[i].dropped;

	drain.dropped += all;
	if (!dropped || may_wait(at_end))
		return;
	write_own(GMT_DROPPED, r->thread, dropped);
	cursors[i].dropped = all;
	drain.numbers += dropped;
}

static void note_lost(bool at_end)
{
	uint64_t lost = __atomic_load_n(&gmt_session.lost, __ATOMIC_RELAXED);

	if (lost == drain.lost || may_wait(at_end))
		return;
	write_own(GMT_DROPPED, 0, lost - drain.lost);
	drain.lost = lost;
}

static void look_at_rings(void)
{
	uint32_t pressed = live_pressed();

	drain.pressed = false;
	drain.dropped = 0;
	heap.count = 0;
	for (uint32_t i = 0, n = live_count(); i < n; i++) {
		struct gmt_ring *r = live_ring(i);

		if (!r)
			continue;
		if (!live_is_left(r) && gmt_load_acquire(&r->head) < cursors[i].written)
			live_leave(r); /* the file was truncated and extended again */
		note_dropped(i, r, false);
		if (gmt_ring_used(r) > pressed && !live_is_left(r))
			drain.pressed = true;
		if (!cursors[i].has_head)
			advance(i, r);
		if (cursors[i].has_head)
			ring_heap_add(&heap, (uint16_t)i, heads[i].seq);
	}
}

/* Whether the event with this seq may be written, or an earlier one is still to come. */
static bool is_due(uint64_t seq, uint64_t now, bool all)
{
	if (seq <= drain.next_seq || all)
		return true;
	if (!drain.gap_since)
		drain.gap_since = now;
	return now - drain.gap_since > (drain.pressed ? GAP_PATIENCE / 10 : GAP_PATIENCE);
}

static uint32_t merge(uint64_t horizon, bool all)
{
	uint64_t now = os_now(), most = os_may(OS_FILES) ? bound_pause_at() : UINT64_MAX;
	uint32_t n = 0;
	bool late;

	while (heap.count && gmt_writer_bytes(drain.writer) < most) {
		uint32_t i = heap.items[0].ring;
		uint64_t seq = heads[i].seq;

		if (seq > horizon || !is_due(seq, now, all))
			break;
		late = seq + LATE < drain.next_seq;
		if (late)
			drain_flush();
		write_event(&heads[i]);
		n++;
		drain.numbers++;
		drain.gap_since = 0;
		if (seq >= drain.next_seq)
			drain.next_seq = seq + 1;
		cursors[i].written = cursors[i].next;
		advance(i, live_ring(i));
		if (cursors[i].has_head)
			ring_heap_change(&heap, heads[i].seq);
		else
			ring_heap_drop(&heap);
		if (late || (drain.unsafe && n % EARLY_BLOCK == 0))
			drain_flush(); /* the live file says how many are left */
	}
	return n;
}

/* ---- writing ---- */

static void give_back_slots(void)
{
	drain.given = drain.unkept;
	drain.unsafe = drain.early < drain.next_seq ? 0 : drain.early + 1 - drain.next_seq;
	requests_dropped(dropped()); /* until now the rings hold them */
	for (uint32_t i = 0, n = live_count(); i < n; i++) {
		struct gmt_ring *r = live_ring(i);

		if (r && !live_is_left(r) &&
		    cursors[i].written != __atomic_load_n(&r->tail, __ATOMIC_RELAXED))
			gmt_ring_release(r, cursors[i].written);
	}
}

void drain_flush(void)
{
	note_result(gmt_writer_flush(drain.writer));
	give_back_slots();
	drain.unflushed = 0;
	drain.last_flush = os_now();
}

static bool flush_is_due(void)
{
	return drain.unflushed &&
	       (drain.pressed || os_now() - drain.last_flush >= (uint64_t)gmt_config.flush_ms * MS);
}

/* Writes new facts, and looks for rare changes. */
static void look_around(void)
{
	uint64_t now = os_now();

	note_lost(false);
	figures_emit_names(drain_def, false);
	facts_emit_new(drain_def);
	if (now - drain.last_look < 1000 * MS)
		return;
	drain.last_look = now;
	modules_update(drain_def);
	if (modules_have_python())
		python_find(true);
}

static void look_at_requests(void)
{
	requests_look(gmt_writer_bytes(drain.writer), dropped(), write_mark);
}

/* The program closed our descriptor, so its number might be another file's by now. The rings, still
 * mapped, take events while they have room, and count the rest. */
static void file_is_gone(void)
{
	static bool said;

	gmt_say(&said,
		"the program closed the recording's file; from here on most is only counted");
	drain.gone = true;
}

static void say_if_cut(void)
{
	static bool said;

	if (live_was_cut())
		gmt_say(&said, "somebody cut the live file; what it held is counted as dropped");
}

/* One round. Returns the number of events that it wrote. */
uint32_t drain_pass(bool all)
{
	uint64_t horizon = all ? UINT64_MAX : __atomic_load_n(&gmt_session.seq, __ATOMIC_SEQ_CST);
	uint32_t n;

	if (!output_is_ours()) {
		file_is_gone();
		return 0;
	}
	ticks_adjust();
	say_if_cut();
	look_around();
	look_at_requests();
	look_at_rings();
	n = merge(horizon, all);
	if (n)
		meta_emit_python(drain_def); /* known after the first event's stack */
	if (flush_is_due())
		drain_flush();
	if (!drain.pressed)
		sources_write(drain_def);
	return n;
}

/* A round during a thinning. */
static bool serve(bool flush)
{
	drain_pass(false);
	if (flush && !drain.gone)
		drain_flush();
	return drain.finishing ? !drain.gone : drain_goes_on();
}

void drain_thin(void)
{
	struct bound_drain d = { .writer = drain.writer, .info = drain.info, .serve = serve };
	struct bound_result r;

	if (drain.gone || !os_may(OS_FILES) || !bound_is_due(gmt_writer_bytes(drain.writer)))
		return;
	r = bound_thin(&d);
	if (!r.writer)
		return;
	drain.unwritten += gmt_writer_lost(drain.writer);
	os_unmap(drain.workspace, gmt_writer_workspace(drain.info.level));
	drain.writer = r.writer;
	drain.workspace = r.workspace;
}

/* Writes the counts of lost events, among them every seq without an event. */
static void note_losses(void)
{
	uint64_t numbers;

	drain.dropped = 0;
	for (uint32_t i = 0, n = live_count(); i < n; i++)
		if (live_ring(i))
			note_dropped(i, live_ring(i), true);
	note_lost(true);
	numbers = __atomic_load_n(&gmt_session.seq, __ATOMIC_SEQ_CST);
	if (numbers > drain.numbers)
		drain.unkept += numbers - drain.numbers;
	drain.given = drain.unkept;
	if (drain.unkept + unwritten())
		write_own(GMT_DROPPED, 0, drain.unkept + unwritten());
	if (dropped())
		facts_emit_number(drain_def, "recorder.dropped", dropped());
}

/* Writes everything in the rings. A bounded file is thinned meanwhile, as often as needed. */
static void write_rest(void)
{
	drain.finishing = true;
	while (!drain.gone && (drain_pass(true) || heap.count))
		drain_thin();
}

bool drain_finish(void)
{
	uint64_t start;
	int rc;

	write_rest();
	start = os_now();
	while (!drain.gone && os_now() - start < SOURCES_WAIT && sources_write(drain_def))
		;
	if (drain.gone)
		return false;
	names_emit(drain_def);
	drain_flush();
	drain.closing = true;
	note_losses();
	figures_emit(drain_def);
	write_own(GMT_END, 0, 0);
	rc = gmt_writer_finish(drain.writer);
	note_result(rc);
	give_back_slots();
	look_at_requests(); /* if writing failed, the live file has the count of lost events */
	if (rc)
		return false;
	live_close();
	output_remove_live();
	return !drain.failed;
}

bool drain_goes_on(void)
{
	return !drain.gone && !__atomic_load_n(&drain.stop, __ATOMIC_ACQUIRE);
}

void drain_ask_to_stop(void)
{
	__atomic_store_n(&drain.stop, 1, __ATOMIC_RELEASE);
	session_call_drain();
}

void drain_forget(void)
{
	bound_forget();
	figures_forget();
	memset(&drain, 0, sizeof(drain));
	memset(cursors, 0, live_count() * sizeof(cursors[0]));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point: every source of events (hooks, framework reports, NVTX, CUPTI) fills a struct
 * gmt_event and hands it to gmt_capture, which adds time, thread and stack and puts it into a ring.
 * Runs on the application's threads, often with the framework's allocator lock held: no malloc,
 * stdio, abort, GIL, blocking lock; it returns quickly and never fails.
 *
 * The only header of shim/ that cupti/ may include.
 */
#pragma once

#include "../format/event.h"

/*
 * Nesting. Every hook brackets the real call:
 *	int depth = gmt_enter();
 *	rc = real.cudaMalloc(p, n);
 *	gmt_leave();
 *	if (depth == 0 && rc == 0) { fill ev; gmt_capture(&ev); }
 * gmt_enter returns how many hooks of this thread are already running: 0 = the outermost, the one
 * that records. A nested hook calls gmt_saw_nested() and records nothing. Inside our own work
 * (stack walks, session start) the depth is at least GMT_DEPTH_OWN, so our own calls are never
 * recorded.
 */
#define GMT_DEPTH_OWN 0x10000
int gmt_enter(void);
int gmt_enter_at(uintptr_t place); /* for a callback about a call: a stack address in its frame */
void gmt_leave(void);
void gmt_saw_nested(void);
bool gmt_had_nested(
	void); /* outermost hook, after the real call: was there a nested one? clears it */

/* false when recording is off for good (disabled, failed to open, finished): a hook may skip its
 * work. */
bool gmt_recording(void);

bool gmt_wants_cupti(void); /* the user's GPUMEMTRACE_CUPTI */

/*
 * Completes and stores one event. The caller sets kind, device and the fields of that kind but for
 * stack; seq, time_ns, thread and stack are set here (stack if the kind has F_STACK). The first
 * event of a process starts its session (output file, live file, drain thread). For an allocation,
 * call it after the real one.
 */
void gmt_capture(struct gmt_event *e);

/*
 * For calls that free memory: another thread can get the same addresses before the call returns,
 * and the call can fail. So gmt_hold completes the event before the real call, including its seq,
 * and gmt_settle stores it afterwards: unchanged if `rc`, the call's CUDA result, means success,
 * else as REFUSED. e->seq is 0 if nothing is recorded.
 */
void gmt_hold(struct gmt_event *e);
void gmt_settle(struct gmt_event *e, int rc);
/* The thread's room for one such event, if different functions hold and settle it. NULL: out of
 * memory. */
struct gmt_event *gmt_held(void);

/* Like gmt_capture, but the stack begins at the caller of the exported hook with this frame
 * (__builtin_frame_address(0) in it), so that our own frames are not walked. */
void gmt_capture_from(struct gmt_event *e, const void *hook);

/* Id of a string, the same for the same bytes; 0 when the table is full. Any thread, no lock.
 * `s` is copied. For literals that never change cache the id in a static (it is reset by fork:
 * compare gmt_generation()). */
uint32_t gmt_string(const char *s, size_t len);
uint32_t gmt_generation(void); /* grows by one in each forked child; ids of an older one are void */

/* A fact about the process, written once: "torch.version" = "2.11.0". Any thread, any time, also
 * before the session has started. At most 256 are kept, with keys of at most 64 bytes. */
void gmt_meta(const char *key, const char *value, size_t len);

/* A sentence for the user on stderr, at most once for each `once` flag; silent if
 * GPUMEMTRACE_QUIET. */
void gmt_say(bool *once, const char *text);

/* A source's start: called once when the session starts, on the thread of the first event, outside
 * the framework's locks as far as is known. Register from any object:
 *	GMT_SOURCE(cupti, cupti_start, cupti_stop, NULL);
 */
struct gmt_source {
	const char *name;
	void (*start)(void);
	void (*stop)(void);	  /* at the end of the process; may be NULL */
	void (*fork_child)(void); /* in a forked child, before anything else; may be NULL */
};
#define GMT_SOURCE(id, start_fn, stop_fn, fork_fn)                                                 \
	__attribute__((used, retain,                                                               \
		       section("gmt_sources"))) static const struct gmt_source gmt_source_##id = { \
		#id, start_fn, stop_fn, fork_fn                                                    \
	}

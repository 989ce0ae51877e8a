/* SPDX-License-Identifier: Apache-2.0
 *
 * Time on the simulated device. Nothing really waits: the device has a clock, and so has every
 * thread that drives it. Work on a stream takes a time computed from the card's speed (roofline.c)
 * and begins when the thread has started it and the stream is free. A call costs its thread a fixed
 * time. A wait for the device sets the thread's clock to the end of the awaited work. So which work
 * has ended at a call depends on the program and the card alone, not on the machine. Moments are
 * nanoseconds since the program began, by these clocks.
 *
 * With SIMGPU_TIME=off all work ends at the call that starts it.
 */
#pragma once

#include "stream.h"

/* Time that a call costs the calling thread, in ns. In an eager framework a launch includes the
 * work that leads to it. */
enum {
	COST_LAUNCH = 7000,
	COST_SMALL = 1000, /* an event, a query, a stream that waits for another */
	COST_SYNC = 3000,
	COST_ALLOC = 100000,
	COST_FREE = 50000,
	COST_ALLOC_HOST = 200000,
};

enum engine { ENGINE_NONE, ENGINE_TO_DEVICE, ENGINE_TO_HOST, ENGINES };

struct work {
	uint64_t ns;
	enum engine engine; /* runs one copy at a time */
	bool collective;
};

bool clock_on(void);
void clock_work(struct sim_stream *s, const struct work *w);
uint64_t clock_mark(struct sim_stream *s);		/* end of its work so far; costs a call */
void clock_join(struct sim_stream *s, uint64_t moment); /* its next work starts no earlier */
void clock_spend(int device, uint64_t ns);		/* this thread spends ns in a call */
void clock_wait(int device, uint64_t moment);		/* this thread waits until then */
void clock_wait_all(int device);
uint64_t clock_end(struct sim_stream *s); /* the moment at which its work ends */
/* Whether the moment has passed. A query costs time, and repeated queries cost more and more, so
 * that a program that only polls makes progress. */
bool clock_reached(int device, uint64_t moment);
bool clock_event(struct sim_event *e); /* whether it is reached */
void clock_sleep(uint64_t ns);	       /* this thread is about to sleep */
void clock_slept(void);

/* ---- roofline.c: how long work takes, in ns ---- */
uint64_t time_of_kernel(uint64_t blocks, uint64_t threads);
uint64_t time_of_bytes(double bytes); /* read or written in the device's memory */
uint64_t time_of_cycles(int64_t cycles);
uint64_t time_of_product(double operations, int cuda_type, double bytes);
uint64_t time_of_collective(double bytes, int ranks);
struct work work_of_copy(const void *dst, const void *src, size_t bytes);
/* Puts a copy on a stream and makes the calling thread wait as long as with a real driver, which
 * stages host memory that is not pinned through its own buffer. */
void work_copy(void *stream, const void *dst, const void *src, size_t bytes, bool blocking);

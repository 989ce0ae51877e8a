/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maintains the line from the processor's counter to CLOCK_MONOTONIC. It goes through two moments
 * at which both were read, with a slope that removes its error within half a second, so times do
 * not jump. After an irregularity (the machine slept, the process was stopped, the counter drifts)
 * the line starts afresh, and the kernel is asked meanwhile. The drain's thread; the reading side
 * is in the header.
 */
#include "ticks.h"

#include "file.h"

#include <string.h>
#include <sys/prctl.h>

struct ticks_line ticks_line;

void ticks_forbid(bool our_thread_too)
{
	os_forbid(OS_COUNTER, our_thread_too);
	__atomic_store_n(&ticks_line.forbidden, 1, __ATOMIC_SEQ_CST);
}

/* Threads pass a forbidden counter on to the threads that they start, and so to ours. */
void ticks_look(void)
{
	int may = PR_TSC_ENABLE;

	if (!prctl(PR_GET_TSC, &may, 0, 0, 0) && may != PR_TSC_ENABLE)
		ticks_forbid(true);
}

#if defined(__x86_64__)

#define MS	   1000000ull
#define SPAN_LEAST (50 * MS)  /* ns between two moments */
#define SPAN_MOST  (400 * MS) /* a line is valid a little longer */
#define BEND	   (500 * MS)
#define OFF_MOST   MS
#define READ_MOST  2000u /* ns to read both clocks */
#define SOURCE	   "/sys/devices/system/clocksource/clocksource0/current_clocksource"

struct moment {
	uint64_t ticks, ns;
};

static struct {
	struct moment last; /* ns 0 = none */
	bool looked, usable;
} self;

/* The kernel uses the counter only if it found it steady and equal on all processors. */
static bool kernel_uses_counter(void)
{
	char name[8] = "";

	return file_text(SOURCE, name, sizeof(name)) >= 4 && !memcmp(name, "tsc\n", 4);
}

/* Reads both clocks. The kernel's later reading counts, so that times are never behind its own. */
static bool read_both(struct moment *m)
{
	uint64_t least = READ_MOST;

	for (int i = 0; i < 4; i++) {
		uint64_t before = os_now(), ticks = ticks_read(), after = os_now();

		if (after - before >= least)
			continue;
		least = after - before;
		*m = (struct moment){ ticks, after };
	}
	return least < READ_MOST;
}

static void draw(const struct ticks_line *l)
{
	uint32_t changes = ticks_line.changes | 1; /* a fork may have come in between */

	__atomic_store_n(&ticks_line.changes, changes, __ATOMIC_RELAXED);
	__atomic_store_n(&ticks_line.from, l->from, __ATOMIC_RELEASE);
	__atomic_store_n(&ticks_line.ns, l->ns, __ATOMIC_RELEASE);
	__atomic_store_n(&ticks_line.rate, l->rate, __ATOMIC_RELEASE);
	__atomic_store_n(&ticks_line.most, l->most, __ATOMIC_RELEASE);
	__atomic_store_n(&ticks_line.changes, changes + 1, __ATOMIC_RELEASE);
}

void ticks_forget(void)
{
	const struct ticks_line none = { 0 };

	draw(&none);
	memset(&self, 0, sizeof(self));
}

/* The line from `now` on. False if the two moments or the error of the old line are irregular. */
static bool next_line(const struct moment *last, const struct moment *now, struct ticks_line *out)
{
	uint64_t ticks = now->ticks - last->ticks, span = now->ns - last->ns;
	uint64_t rate, bend, here = now->ns;
	int64_t off = 0;

	if (span > SPAN_MOST || !ticks || ticks > 1ull << 32)
		return false;
	rate = (span << 32) / ticks;
	bend = (BEND << 32) / (rate ? rate : 1);
	if (ticks_line.most) {
		here = ticks_line.ns + ((now->ticks - ticks_line.from) * ticks_line.rate >> 32);
		off = (int64_t)(now->ns - here);
	}
	if (off > (int64_t)OFF_MOST || off < -(int64_t)OFF_MOST)
		return false;
	*out = (struct ticks_line){
		.from = now->ticks,
		.ns = here,
		.most = bend,
		.rate = rate + (uint64_t)(off * (int64_t)(1ll << 32) / (int64_t)bend),
	};
	return true;
}

void ticks_adjust(void)
{
	struct moment now;
	struct ticks_line line;

	if (!self.looked)
		self.usable = kernel_uses_counter();
	self.looked = true;
	if (!self.usable || __atomic_load_n(&ticks_line.forbidden, __ATOMIC_RELAXED) ||
	    (self.last.ns && os_now() - self.last.ns < SPAN_LEAST) || !read_both(&now))
		return;
	if (self.last.ns && !next_line(&self.last, &now, &line))
		ticks_forget();
	else if (self.last.ns)
		draw(&line);
	self.last = now;
}

#else

void ticks_adjust(void)
{
}

void ticks_forget(void)
{
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A month of training through the real rings, drain and writer: the recording never grows beyond
 * GPUMEMTRACE_MAX_SIZE, the recorder's memory stays, and of what was left out the number of events,
 * the peak of every step and all that is alive are exact. TEST_BOUND_EVENTS=1000000000 makes it a
 * long one (TEST_BOUND_SIZE a larger bound, in MiB; TEST_BOUND_KEEP=1 keeps the recording).
 *
 * links: shim/base/ shim/rings/ shim/stacks/ shim/recording/
 *
 * links: shim/process.c shim/bus.c shim/confine.c shim/leave.c shim/cuda/nvtx.c shim/cuda/resolve.c
 */
#include "../../format/block.h"
#include "../../format/reader.h"
#include "../../format/record.h"
#include "../../shim/capture.h"
#include "../../shim/base/config.h"
#include "../../shim/base/os.h"
#include "../../shim/recording/session.h"
#include "../../shim/recording/thin_table.h"
#include "await_drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCKS	  200u	/* of a step */
#define STEP	  1000u /* events of a step, about */
#define HIGH_STEP 1234u /* its peak is the run's */

static char dir[] = "/tmp/gmt-bound-XXXXXX", path[64];

static struct {
	uint64_t events, allocs, frees, total, peak, most_bytes, memory;
	uint64_t *peaks; /* by step */
	uint64_t steps, step_peak;
	struct thin_table live;
} truth;

static uint64_t size_of(const char *end)
{
	char name[96];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, end);
	return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

static void measure(void)
{
	uint64_t bytes = size_of("") + size_of(".part");

	truth.most_bytes = bytes > truth.most_bytes ? bytes : truth.most_bytes;
	bytes = os_mapped();
	truth.memory = bytes > truth.memory ? bytes : truth.memory;
}

static void say(struct gmt_event *e)
{
	gmt_capture(e);
	if (++truth.events % 512 == 0) {
		wait_for_drain();
		measure();
	}
}

static void allocate(uint64_t addr, uint64_t size)
{
	struct gmt_event e = { .kind = GMT_BLOCK_ALLOC, .addr = addr, .size = size, .device = 0 };

	truth.total += size;
	truth.allocs++;
	truth.step_peak = truth.total > truth.step_peak ? truth.total : truth.step_peak;
	e.arg0 = truth.total;
	e.arg1 = truth.total + 4096;
	*table_put(&truth.live, addr) = size;
	say(&e);
}

static void release(uint64_t addr)
{
	uint64_t *size = table_get(&truth.live, addr);
	struct gmt_event e = { .kind = GMT_BLOCK_FREE, .addr = addr, .device = 0 };

	truth.frees++;
	e.size = *size;
	truth.total -= *size;
	e.arg0 = truth.total;
	e.arg1 = truth.total + 4096;
	table_remove(&truth.live, size);
	say(&e);
}

static void tag(uint16_t kind, uint64_t addr, uint64_t object)
{
	struct gmt_event e = { .kind = kind, .addr = addr, .arg0 = object, .size = 512 };

	say(&e);
}

static void range(uint16_t kind, uint64_t number)
{
	struct gmt_event e = { .kind = kind, .arg0 = number, .arg1 = GMT_RANGE_FRAMEWORK };

	e.name = gmt_string("Optimizer.step#SGD.step", 23);
	e.device = -1;
	say(&e);
}

/* Real runs do not repeat to the byte either. */
static uint64_t chance(void)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x >> 40;
}

static uint64_t block(uint64_t i)
{
	return 0x7f0000000000 + (i << 12);
}

static void step(uint64_t n)
{
	uint64_t more = n == HIGH_STEP ? 1000 : 0;

	truth.step_peak = truth.total;
	for (uint64_t i = 0; i < BLOCKS; i++) {
		allocate(block(i), 512 * (1 + chance() % 900 + more));
		tag(GMT_TAG_SAVED, block(i), 0x5000 + i * 64);
	}
	for (uint64_t i = BLOCKS; i-- > 0;) {
		tag(GMT_TAG_RELEASED, 0, 0x5000 + i * 64);
		tag(GMT_TAG_GRAD, block(i), 0x9000 + i % 10 * 64);
		/* one of some blocks outlives its step, one of those for ever */
		if (i != 17 || n % 20)
			release(block(i));
	}
	if (n % 20 == 0 && n % 400)
		release(block(17));
	else if (n % 400 == 0) {
		release(block(17));
		allocate(block(100000 + n), 1024);
	}
	range(GMT_RANGE_BEGIN, n + 1);
	range(GMT_RANGE_END, n + 1);
	truth.peaks[n] = truth.step_peak;
	truth.peak = truth.step_peak > truth.peak ? truth.step_peak : truth.peak;
}

struct found {
	uint64_t kept, left_out, allocs, frees, peak, step_peak, step, wrong_peaks, seq, disorder;
	uint64_t dropped, thinned, records_peak;
	bool whole_peak; /* the highest moment is an event, not a record */
	struct thin_table live;
};

static void found_total(struct found *f, const struct gmt_event *e)
{
	f->step_peak = e->arg0 > f->step_peak ? e->arg0 : f->step_peak;
	if (e->arg0 > f->peak) {
		f->peak = e->arg0;
		f->whole_peak = e->kind == GMT_BLOCK_ALLOC;
	}
}

static int on_event(void *ctx, const struct gmt_event *e)
{
	struct found *f = ctx;
	uint64_t *at;

	f->disorder += e->seq <= f->seq;
	f->seq = e->seq;
	switch (e->kind) {
	case GMT_THINNED:
		f->thinned++;
		f->left_out += e->size;
		f->allocs += e->stream;
		f->frees += e->stream;
		found_total(f, e);
		return 0;
	case GMT_BLOCK_ALLOC:
		f->allocs++;
		*table_put(&f->live, e->addr) = e->size;
		found_total(f, e);
		break;
	case GMT_BLOCK_FREE:
		f->frees++;
		at = table_get(&f->live, e->addr);
		assert_non_null(at);
		assert_int_equal(*at, e->size);
		table_remove(&f->live, at);
		break;
	case GMT_RANGE_BEGIN:
		f->wrong_peaks += f->step_peak != truth.peaks[f->step];
		f->step_peak = 0;
		f->step++;
		break;
	case GMT_DROPPED:
		f->dropped += e->arg0;
		return 0;
	case GMT_END:
		return 0;
	}
	f->kept++;
	return 0;
}

static void same_blocks(const struct thin_table *a, const struct thin_table *b)
{
	assert_int_equal(a->used, b->used);
	for (uint64_t i = 0; i < a->room; i++)
		if (a->slots[i].key) {
			assert_non_null(table_get(b, a->slots[i].key));
			assert_int_equal(*table_get(b, a->slots[i].key), a->slots[i].value);
		}
}

static uint64_t setting(const char *name, uint64_t standard)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : standard;
}

static void a_month(void **state)
{
	static const struct gmt_tool tool = { .event = on_event };
	uint64_t steps = setting("TEST_BOUND_EVENTS", 3000000) / STEP, start = os_now();
	struct found f = { 0 };
	struct gmt_reader *r;
	double seconds;
	int err;

	(void)state;
	truth.peaks = calloc(steps + 1, sizeof(*truth.peaks));
	for (uint64_t n = 0; n < steps; n++)
		step(n);
	session_end();
	seconds = (double)(os_now() - start) / 1e9;
	assert_in_range(size_of(""), 1, gmt_config.max_size);
	assert_in_range(truth.most_bytes, gmt_config.max_size / 4, gmt_config.max_size);
	assert_int_equal(size_of(".part") + size_of(".live"), 0);
	assert_true(truth.memory < 64u << 20);
	r = gmt_reader_open(path, &err);
	assert_non_null(r);
	assert_int_equal(gmt_reader_info(r)->version, GMT_VERSION);
	assert_false(gmt_reader_info(r)->truncated);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, &f), 0);
	printf("%lu events, %.0f a second, bound %lu: file %lu, at most %lu; left out %lu, records "
	       "%lu; recorder %lu\n",
	       truth.events, (double)truth.events / seconds, gmt_config.max_size, size_of(""),
	       truth.most_bytes, f.left_out, f.thinned, truth.memory);
	assert_int_equal(f.dropped + f.disorder, 0);
	assert_int_equal(f.kept + f.left_out, truth.events);
	assert_int_equal(f.allocs, truth.allocs);
	assert_int_equal(f.frees, truth.frees);
	assert_int_equal(f.peak, truth.peak);
	assert_true(f.whole_peak);
	assert_int_equal(f.step, steps);
	assert_int_equal(f.wrong_peaks, 0);
	assert_true(f.left_out > truth.events / 3);
	same_blocks(&truth.live, &f.live);
	same_blocks(&f.live, &truth.live);
	gmt_reader_close(r);
	free(truth.peaks);
}

static void a_table_against_a_plain_one(void **state)
{
	static uint64_t plain[5000];
	struct thin_table t = { 0 };
	uint64_t x = 1, used = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint64_t key, *at;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		key = (x >> 33) % 5000;
		at = table_get(&t, (key + 1) << 20);
		assert_int_equal(at ? *at : 0, plain[key]);
		if (at && x >> 63) {
			table_remove(&t, at);
			plain[key] = 0;
			used--;
		} else {
			used += !at;
			*table_put(&t, (key + 1) << 20) = plain[key] = x | 1;
		}
	}
	assert_int_equal(t.used, used);
	table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_against_a_plain_one),
		cmocka_unit_test(a_month),
	};
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/run.gmt", dir);
	gmt_config.output = path;
	gmt_config.stacks = 0;
	gmt_config.max_size = setting("TEST_BOUND_SIZE", 4) << 20;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (setting("TEST_BOUND_KEEP", 0)) {
		printf("%s\n", path);
		return rc;
	}
	unlink(path);
	rmdir(dir);
	return rc;
}

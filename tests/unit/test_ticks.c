/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times of events against CLOCK_MONOTONIC, while the line is drawn anew, when it is old, and in
 * a child of a fork in the middle of that.
 *
 * links: shim/base/ticks.c shim/base/os.c shim/base/file.c
 */
#include "../../shim/base/file.h"
#include "../../shim/base/ticks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

#define MS 1000000ull

static void nap(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (nanosleep(&t, &t))
		;
}

static bool usable(void)
{
	char name[8] = "";

	return file_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
			 sizeof(name)) >= 4 &&
	       !memcmp(name, "tsc\n", 4);
}

/* Adjusted until there is a line: on a busy machine a nap may be too long. */
static void begin(void)
{
	int tries = usable() ? 50 : 2;
	bool by_line = false;
	uint64_t now;

	ticks_forget();
	for (int i = 0; i < tries && !by_line; i++) {
		ticks_adjust();
		nap(60 * MS);
		ticks_adjust();
		by_line = ticks_by_line(&now);
	}
#if defined(__x86_64__)
	assert_int_equal(by_line, usable());
#else
	assert_false(by_line);
#endif
}

static void test_times_are_the_kernels(void **state)
{
	uint64_t last = 0, most = 0;

	(void)state;
	begin();
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 2000; i++) {
			uint64_t before = os_now(), now = ticks_now(), after = os_now();
			uint64_t off = now < before ? before - now : now > after ? now - after : 0;

			assert_true(now + MS / 1000 >= last);
			last = now;
			most = off > most ? off : most;
		}
		nap(30 * MS);
		ticks_adjust();
	}
	assert_true(most < MS / 10);
}

static void test_an_old_line_is_not_used(void **state)
{
	uint64_t now;

	(void)state;
	begin();
	nap(600 * MS);
	assert_false(ticks_by_line(&now));
	ticks_adjust(); /* too long ago: it begins anew */
	assert_false(ticks_by_line(&now));
	begin();
}

static void test_a_child_begins_anew(void **state)
{
	uint64_t now;

	(void)state;
	begin();
	ticks_line.changes |= 1; /* as if forked in between */
	assert_false(ticks_by_line(&now));
	begin();
}

/* As after a sleep of the machine, in which only one of the two clocks went on. */
static void test_clocks_that_part(void **state)
{
	uint64_t now, before;

	(void)state;
	begin();
	if (!usable())
		skip();
	ticks_line.ns += 5 * MS;
	for (int i = 0; i < 20 && ticks_by_line(&now); i++) {
		nap(60 * MS);
		ticks_adjust();
	}
	assert_false(ticks_by_line(&now));
	before = os_now();
	now = ticks_now();
	assert_true(now >= before && now <= os_now());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_are_the_kernels),
		cmocka_unit_test(test_an_old_line_is_not_used),
		cmocka_unit_test(test_a_child_begins_anew),
		cmocka_unit_test(test_clocks_that_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

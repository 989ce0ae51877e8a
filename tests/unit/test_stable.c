/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule for "stable" on courses of peaks that are known to go on as they do here: a judgement is
 * asked for after each unit, as a run that is watched asks, and the first one counts.
 */
#include "recordings.h"

#include "../../viewer/search/stable.h"

#define MOST 20000
#define MIB  ((uint64_t)1 << 20)
#define GIB  (1024 * MIB)

static const struct stable_wish quick = { 2, 0 }, minute = { 2, 60 };

typedef uint64_t course_fn(size_t i);

struct verdict {
	enum stable_says says;
	size_t after;
	uint64_t each, missed; /* how much higher the peak of all is than that of those seen */
};

static uint64_t peak_of(course_fn *peak, size_t from, size_t until)
{
	uint64_t most = 0;

	for (size_t i = from; i < until; i++)
		most = peak(i) > most ? peak(i) : most;
	return most;
}

static struct verdict run_course(course_fn *peak, double seconds, uint64_t room,
				 const struct stable_wish *wish)
{
	static struct stable_unit units[MOST];

	for (size_t n = 0; n < MOST; n++) {
		struct stable s;
		uint64_t seen;

		units[n] = (struct stable_unit){ peak(n), seconds };
		seen = peak_of(peak, 0, n + 1);
		s = stable_judge(units, n + 1, 0, seen < room ? room - seen : 0, wish);
		if (s.says)
			return (struct verdict){ s.says, n + 1, s.each,
						 peak_of(peak, n, MOST) - seen };
	}
	return (struct verdict){ STABLE_NOT_YET, MOST, 0, 0 };
}

static uint64_t constant(size_t i)
{
	return 100 * MIB + (i == 0 ? 0 : 20 * MIB);
}

static uint64_t leak(size_t i)
{
	return 100 * MIB + i * MIB;
}

static uint64_t hidden_leak(size_t i) /* below the peak of the first step */
{
	return i ? 100 * MIB + i * MIB : 300 * MIB;
}

static uint64_t late_leak(size_t i)
{
	return 100 * MIB + (i > 40 ? (i - 40) * MIB : 0);
}

static uint64_t burst_leak(size_t i)
{
	return 100 * MIB + i / 30 * 30 * MIB;
}

/* A collector of garbage: each tooth a little unlike the others. */
static uint64_t saw(size_t i)
{
	return 100 * MIB + i % 37 * 10 * MIB + i / 37 * 7 % 5 * MIB;
}

static uint64_t saw_and_leak(size_t i)
{
	return saw(i) + i * MIB / 4;
}

static uint64_t log_of_losses(size_t i)
{
	return 100 * MIB + i * 512;
}

static uint64_t ends_growing(size_t i)
{
	return 100 * MIB + (i < 200 ? i : 200) * MIB;
}

static uint64_t by_length(size_t i) /* of the batch, by chance */
{
	return 100 * MIB + (i * 2654435761u >> 7) % 1000 * MIB / 10;
}

static void stable_peaks(void **state)
{
	static course_fn *const courses[] = { constant, log_of_losses, saw, ends_growing,
					      by_length };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct verdict v = run_course(courses[i], 0.1, 20 * GIB, &minute);

		assert_int_equal(v.says, STABLE_YES);
		assert_true(v.missed < 20 * MIB);
		assert_in_range(v.after, 600, 3000);
	}
	assert_in_range(run_course(constant, 0.1, GIB, &quick).after, 5, 5);
	assert_in_range(run_course(constant, 40, GIB, &minute).after, 5, 5);
}

static void rising_peaks(void **state)
{
	static course_fn *const courses[] = { leak, burst_leak, saw_and_leak, late_leak,
					      hidden_leak };
	static const uint64_t each[] = { MIB, MIB, MIB / 4, MIB, MIB };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct verdict v = run_course(courses[i], 0.1, 200 * GIB, &minute);

		assert_int_equal(v.says, STABLE_RISES);
		assert_in_range(v.each, each[i] * 9 / 10, each[i] * 11 / 10);
		assert_in_range(v.after, 1800, 1900); /* three minutes */
	}
	assert_in_range(run_course(leak, 0.1, 200 * GIB, &quick).after, 32, 32);
	assert_int_equal(run_course(hidden_leak, 0.1, 200 * GIB, &quick).says, STABLE_RISES);
}

/* It is followed where memory runs out soon, and not called stable where it does so late. */
static void a_rise_against_the_card(void **state)
{
	(void)state;
	assert_int_equal(run_course(leak, 0.1, 2 * GIB, &quick).says, STABLE_RISES);
	assert_in_range(run_course(leak, 0.1, 2 * GIB, &minute).after, MOST, MOST);
	assert_int_equal(run_course(log_of_losses, 0.1, GIB / 8, &minute).says, STABLE_RISES);
	assert_int_equal(stable_ends(60, MIB, 40 * MIB), 100);
	assert_int_equal(stable_ends(60, 0, 40 * MIB), 0);
	assert_true(stable_matters(60, 1000) && !stable_matters(60, 5000000));
}

static void what_starts_the_wait_anew(void **state)
{
	struct stable_unit units[12];
	struct stable_wish wish = { 4, 0 };

	(void)state;
	for (size_t i = 0; i < 12; i++)
		units[i] = (struct stable_unit){ MIB, 0.1 };
	assert_int_equal(stable_judge(units, 8, 0, GIB, &wish).says, STABLE_YES);
	assert_int_equal(stable_judge(units, 8, 6, GIB, &wish).says, STABLE_NOT_YET); /* refused */
	assert_int_equal(stable_judge(units, 10, 6, GIB, &wish).says, STABLE_YES);
	units[6].seconds = 30; /* it compiled something */
	assert_int_equal(stable_judge(units, 10, 0, GIB, &wish).says, STABLE_NOT_YET);
	assert_int_equal(stable_judge(units, 11, 0, GIB, &wish).says, STABLE_YES);
	assert_int_equal(stable_judge(units, 0, 0, GIB, &wish).says, STABLE_NOT_YET);
	assert_true(stable_judge(units, 12, 0, GIB, &wish).seconds < 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stable_peaks),
		cmocka_unit_test(rising_peaks),
		cmocka_unit_test(a_rise_against_the_card),
		cmocka_unit_test(what_starts_the_wait_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks of C++ functions whose result lies at the caller's address. A function of C that returns a
 * structure of three words has the same convention, on x86-64 and on aarch64.
 * links: shim/torch/result.c
 */
#include "../../shim/torch/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct words {
	uint64_t a, b, c;
};

static uint64_t seen[7];

/* The framework's function. */
static struct words real(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
			 uint64_t g)
{
	const uint64_t all[] = { a, b, c, d, e, f, g };

	for (unsigned i = 0; i < 7; i++)
		seen[i] = all[i];
	return (struct words){ a + g, b + f, c + e };
}

/* The compiler does not know which it is, nor which type it has. */
static void *volatile framework;
static void *address_seen;

static __attribute__((used)) void *hook(void *address, uint64_t a, uint64_t b, uint64_t c,
					uint64_t d, uint64_t e, uint64_t f, uint64_t g)
{
	address_seen = address;
	return result_call((result_fn *)(uintptr_t)framework, address, a, b, c, d, e, f, g);
}
RESULT_FUNCTION(gmt_test_hooked, hook);

static __attribute__((used)) void *hook_of_one(void *address, uint64_t a)
{
	address_seen = address;
	((struct words *)address)->b = a;
	return address;
}
RESULT_FUNCTION(gmt_test_hooked_one, hook_of_one);

static void test_seven(void **state)
{
	struct words (*volatile call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
				      uint64_t) = (__typeof__(call))(uintptr_t)gmt_test_hooked;
	struct words got;

	(void)state;
	framework = (void *)(uintptr_t)real;
	got = call(1, 20, 300, 4000, 50000, 600000, 7000000);
	assert_int_equal(got.a, 7000001);
	assert_int_equal(got.b, 600020);
	assert_int_equal(got.c, 50300);
	assert_int_equal(seen[3], 4000);
	assert_int_equal(seen[6], 7000000);
}

static void test_one(void **state)
{
	struct words (*volatile call)(uint64_t) = (__typeof__(call))(uintptr_t)gmt_test_hooked_one;
	struct words got;

	(void)state;
	got = call(5);
	assert_int_equal(got.b, 5);
	assert_non_null(address_seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seven),
		cmocka_unit_test(test_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

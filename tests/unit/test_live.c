/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the rings of the live file call for the drain: late while they are few, so that blocks are
 * large, and early when many fill up together.
 *
 * links: shim/base/ shim/rings/
 */
#include "../../shim/rings/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void few_rings_wait_longer(void **state)
{
	(void)state;
	assert_true(live_open(-1, 1, 0));
	for (uint32_t n = 1; n <= 4; n++) {
		assert_non_null(live_take(n));
		assert_int_equal(live_pressed(), GMT_RING_SLOTS / 2);
	}
	assert_non_null(live_take(5));
	assert_int_equal(live_pressed(), GMT_RING_SLOTS / 4);
	live_forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_rings_wait_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

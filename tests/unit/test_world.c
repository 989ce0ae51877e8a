/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks of a world run, as `fit --ranks` says it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../viewer/search/world.h"

static void ranks_of_a_world(void **state)
{
	struct world w;

	(void)state;
	unsetenv("LOCAL_WORLD_SIZE");
	assert_int_equal(world_parse(&w, "512"), 0);
	assert_true(w.size == 512 && w.count == 3 && w.ranks[1] == 256 && w.ranks[2] == 511);
	assert_int_equal(w.node, 8);
	assert_int_equal(world_parse(&w, "16"), 0);
	assert_true(w.size == 16 && !w.count);
	assert_int_equal(world_parse(&w, "4:3,0,3"), 0);
	assert_true(w.size == 4 && w.count == 2 && w.ranks[0] == 0 && w.ranks[1] == 3);
	assert_int_equal(w.node, 4);
	assert_int_equal(world_parse(&w, NULL), 0);
	assert_true(!w.size && !w.count);
	for (const char *const *bad =
		     (const char *const[]){ "", "0", "-1", "4:", "4:4", "4:1,", "x", "4:1;2",
					    "9:0,1,2,3,4,5,6,7,8", NULL };
	     *bad; bad++)
		assert_int_equal(world_parse(&w, *bad), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(ranks_of_a_world) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a finding is named after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../viewer/diff/diff.h"

#define PAIRS 3

/* Three lines of one forward method. */
struct scene {
	struct diff d;
	struct diff_pair pairs[PAIRS];
	struct diff_site sites[PAIRS];
	struct diff_place places[PAIRS];
	uint32_t innermost[PAIRS];
	struct diff_function function;
};

static void set_up(struct scene *s, const int64_t changes[PAIRS])
{
	static char module[] = "Net";

	*s = (struct scene){ .function = { "net.py", "Net.forward", 1, 0 } };
	for (uint32_t i = 0; i < PAIRS; i++) {
		s->innermost[i] = i;
		s->places[i] = (struct diff_place){ .line = i + 2, .common = i };
		s->sites[i] =
			(struct diff_site){ .places = &s->innermost[i],
					    .depth = 1,
					    .outer = "",
					    .op = "",
					    .owner = { "Net.forward", "net.py", i + 2, false },
					    .module = module };
		s->pairs[i] = (struct diff_pair){ .category = CATEGORY_activations,
						  .old_site = &s->sites[i],
						  .new_site = &s->sites[i],
						  .bytes_old = 1000,
						  .bytes_new = (uint64_t)(1000 + changes[i]) };
	}
	s->d.pairs = s->pairs;
	s->d.pair_count = PAIRS;
	s->d.new.functions = &s->function;
	s->d.new.function_count = 1;
	s->d.new.places = s->places;
	s->d.new.place_count = PAIRS;
}

static void is_named_by_the_greatest_change(void **state)
{
	struct scene s;
	const struct diff_finding *f;

	(void)state;
	set_up(&s, (int64_t[]){ 100, -500, 200 });
	f = diff_collect(&s.d, CAUSE_FUNCTION, 0, 0, p, true);
	assert_int_equal(f->pair, 1);
	assert_int_equal(f->category, CATEGORY_activations);
	assert_int_equal(f->owner.line, 3);
	assert_int_equal(f->kind, DIFF_SHRUNK);
	free(s.d.findings);
}

/* Its class changes by nothing: it still is the one that there is. */
static void has_a_name_where_changes_cancel(void **state)
{
	struct scene s;
	const struct diff_finding *f;

	(void)state;
	set_up(&s, (int64_t[]){ 300, -500, 200 });
	f = diff_collect(&s.d, CAUSE_FUNCTION, 0, 0, p, true);
	assert_int_equal(f->pair, 1);
	assert_int_equal(f->category, CATEGORY_activations);
	assert_int_equal(f->bytes_old, f->bytes_new);
	free(s.d.findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_named_by_the_greatest_change),
		cmocka_unit_test(has_a_name_where_changes_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a finding takes, and what it is named after. */
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

static const struct diff_rule all = { .cause = CAUSE_FUNCTION };

static void is_named_by_the_greatest_change(void **state)
{
	struct scene s;
	const struct diff_finding *f;

	(void)state;
	set_up(&s, (int64_t[]){ 100, -500, 200 });
	diff_collect(&s.d, &all);
	assert_int_equal(s.d.count, 1);
	f = s.d.findings;
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
	diff_collect(&s.d, &all);
	assert_int_equal(s.d.count, 1);
	f = s.d.findings;
	assert_int_equal(f->pair, 1);
	assert_int_equal(f->category, CATEGORY_activations);
	assert_int_equal(f->bytes_old, f->bytes_new);
	free(s.d.findings);
}

static bool takes_none(const struct diff *d, const struct diff_pair *p, const void *facts)
{
	(void)d;
	(void)p;
	*(bool *)facts = true;
	return false;
}

/* Whatever a rule leaves out, it says nothing, and there is no finding that could be missing. */
static void of_nothing_there_is_none(void **state)
{
	const struct owner line = { .function = "main", .file = "train.py", .line = 1 };
	bool asked = false;
	const struct diff_rule rules[] = {
		{ .cause = CAUSE_PRECISION, .factor = 2, .takes = takes_none, .facts = &asked },
		{ .cause = CAUSE_SCALE, .classes = 1u << CATEGORY_parameters, .square = true },
		{ .cause = CAUSE_REACH, .direction = -1, .line = &line },
	};
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		set_up(&s, (int64_t[]){ 100, 300, 200 });
		diff_collect(&s.d, &rules[i]);
		assert_int_equal(s.d.count, 0);
		for (size_t k = 0; k < PAIRS; k++)
			assert_int_equal(s.pairs[k].finding, 0);
		free(s.d.findings);
	}
	assert_true(asked);
}

/* The line that a rule knows names it, also only where its pairs have none. */
static void is_named_by_the_rule_s_line(void **state)
{
	const struct owner line = { .function = "main", .file = "train.py", .line = 7 };
	struct scene s;

	(void)state;
	for (int if_none = 0; if_none < 2; if_none++) {
		struct diff_rule rule = { .cause = CAUSE_REACH,
					  .direction = 1,
					  .line = &line,
					  .line_if_none = if_none,
					  .count = 3 };

		set_up(&s, (int64_t[]){ 100, -300, 200 });
		diff_collect(&s.d, &rule);
		assert_int_equal(s.d.count, 1);
		assert_int_equal(s.d.findings->owner.line, if_none ? 4 : 7);
		assert_int_equal(s.d.findings->bytes_new, 2300);
		assert_int_equal(s.d.findings->count, 3);
		assert_int_equal(s.pairs[1].finding, 0);
		free(s.d.findings);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_named_by_the_greatest_change),
		cmocka_unit_test(has_a_name_where_changes_cancel),
		cmocka_unit_test(of_nothing_there_is_none),
		cmocka_unit_test(is_named_by_the_rule_s_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings that have nothing to do with each other are compared, in both directions: every pair
 * of those in tests/data, broken ones too. Runs in the root. Pairs of many programs' recordings:
 * tests/e2e/test_pairs.py.
 *
 * links: viewer/ask/library*.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "../../viewer/ask/gpumemtrace.h"

#define MOST 100

static size_t open_all(struct gpumemtrace *opened[MOST])
{
	struct gpumemtrace_answer a;
	size_t count = 0;
	glob_t found;

	assert_int_equal(glob("tests/data/*/*.gmt", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		assert_true(count < MOST);
		count += gpumemtrace_open(found.gl_pathv[i], &opened[count], &a) == GPUMEMTRACE_OK;
		gpumemtrace_answer_free(&a);
	}
	globfree(&found);
	return count;
}

/* A document, or a sentence if one of the two has nothing to compare. */
static bool compare(struct gpumemtrace *old, struct gpumemtrace *new, char delta[32])
{
	struct gpumemtrace *both[] = { old, new };
	struct gpumemtrace_answer a;
	bool answered = gpumemtrace_ask(both, 2, "diff", NULL, &a) == GPUMEMTRACE_OK;

	assert_true(answered ? !!a.json : !!a.sentence);
	if (answered) {
		const char *at = strstr(a.json, "\"delta\":");

		assert_non_null(at);
		strncpy(delta, at + strlen("\"delta\":"), 31);
		delta[strcspn(delta, ",}")] = 0;
	}
	gpumemtrace_answer_free(&a);
	return answered;
}

static void every_pair_has_an_answer(void **state)
{
	struct gpumemtrace *opened[MOST];
	size_t count = open_all(opened), answers = 0;

	(void)state;
	assert_true(count > 30);
	for (size_t i = 0; i < count; i++)
		for (size_t j = i; j < count; j++) {
			char there[32] = "", back[32] = "";
			bool answered = compare(opened[i], opened[j], there);

			assert_int_equal(compare(opened[j], opened[i], back), answered);
			assert_int_equal(strtoll(there, NULL, 10), -strtoll(back, NULL, 10));
			answers += answered;
		}
	assert_true(answers > 300);
	for (size_t i = 0; i < count; i++)
		gpumemtrace_close(opened[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_pair_has_an_answer) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

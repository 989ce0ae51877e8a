/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a statement, from the contents of a file.
 * links: shim/recording/source_text.c
 */
#include "../../shim/recording/source_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const char *text(const char *file, unsigned line, size_t room, int *cut)
{
	static char out[512];
	size_t n = source_text(file, strlen(file), line, out, room, cut);

	assert_true(n <= room);
	out[n] = 0;
	return out;
}

static void test_statements(void **state)
{
	static const struct {
		const char *file;
		unsigned line;
		const char *said;
	} rows[] = {
		{ "a = 1\n\tb = 2\nc", 2, "b = 2" },
		{ "a = 1\nb = 2\nc", 3, "c" },
		{ "a = 1\r\n", 1, "a = 1" },
		{ "x = f(1,  # one )\n      2)\ny", 1, "x = f(1, 2)" },
		{ "x = f(\n    1,\n)\n", 1, "x = f(1,)" },
		{ "    1,\n)\ny\n", 1, "1," },
		{ "x = a + \\\n    b\ny", 1, "x = a + b" },
		{ "s = \"(#\" + '['  # no bracket\nt", 1, "s = \"(#\" + '['" },
		{ "s = '\\'(' + t\nu", 1, "s = '\\'(' + t" },
		{ "d = {\n  'a': [1,\n   2]}\n", 1, "d = {'a': [1, 2]}" },
		{ "b = e(8)\n  # Topologically Sorted Source Nodes: [mm], Original ATen: "
		  "[aten.mm]\nc",
		  1,
		  "b = e(8) # Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]" },
		{ "b = e(8)\n# Topologically\n", 1, "b = e(8)" },
		{ "", 1, "" },
		{ "a\n", 2, "" },
		{ "a\n", 0, "" },
		{ "a\n", 4000000000u, "" },
	};
	int cut;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(text(rows[i].file, rows[i].line, 500, &cut), rows[i].said);
		assert_false(cut);
	}
}

static void test_cuts(void **state)
{
	int cut;

	(void)state;
	assert_string_equal(text("abcdef", 1, 4, &cut), "abcd");
	assert_true(cut);
	assert_string_equal(text("ab\xc3\xa4", 1, 3, &cut), "ab");
	assert_true(cut);
	assert_string_equal(text("ab\xc3\xa4", 1, 4, &cut), "ab\xc3\xa4");
	assert_false(cut);
	assert_string_equal(text("(\n\n\n\n\n\n\n\n\nx)", 1, 100, &cut), "(x)");
	assert_false(cut);
	assert_string_equal(text("(\n\n\n\n\n\n\n\n\n\n"
				 "\n\n\n\n\n\n\n\n\n\n\nx)",
				 1, 100, &cut),
			    "(");
	assert_true(cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statements),
		cmocka_unit_test(test_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

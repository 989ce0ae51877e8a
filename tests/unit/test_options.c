/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options and operands: what each form fills in, and that everything else is refused.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include "../../viewer/ask/command.h"
#include "../../viewer/base/say.h"

struct sample {
	bool quiet;
	const char *output;
	long top;
	const char *file, *more;
	char **rest;
};

static const struct option_row rows[] = {
	OPTION_ROW(struct sample, quiet, "quiet", 'q', SWITCH, NULL, ""),
	OPTION_ROW(struct sample, output, "output", 'o', TEXT, "FILE", ""),
	OPTION_ROW(struct sample, top, "top", 0, NUMBER, "N", ""),
	{ 0 },
};
static const struct operand_row file_rows[] = {
	{ "FILE", OPERAND_ONE, offsetof(struct sample, file) },
	{ "MORE", OPERAND_OPTIONAL, offsetof(struct sample, more) },
	{ 0 },
};
static const struct operand_row rest_rows[] = {
	{ "COMMAND", OPERAND_REST, offsetof(struct sample, rest) },
	{ 0 },
};
static const struct command file_command = { .name = "sample",
					     .text = "",
					     .options = rows,
					     .operands = file_rows,
					     .size = sizeof(struct sample) };
static const struct command rest_command = { .name = "sample",
					     .text = "",
					     .options = rows,
					     .operands = rest_rows,
					     .size = sizeof(struct sample) };

static struct options_common common;

static int parse(const struct command *c, struct sample *s, char **argv)
{
	options_free(c, NULL, &common); /* the words of the parse before */
	*s = (struct sample){ .top = 5 };
	common = (struct options_common){ 0 };
	return options_parse(c, argv, s, &common);
}

#define ARGS(...)                 \
	(char *[])                \
	{                         \
		__VA_ARGS__, NULL \
	}

static void forms(void **state)
{
	struct sample s;

	(void)state;
	assert_int_equal(
		parse(&file_command, &s, ARGS("a", "-q", "-o", "x", "--top", "7", "--json")), 0);
	assert_true(s.quiet && common.json && !common.help);
	assert_string_equal(s.file, "a");
	assert_string_equal(s.output, "x");
	assert_int_equal(s.top, 7);
	assert_null(s.more);
	assert_int_equal(parse(&file_command, &s, ARGS("--output=y=z", "--top=0x10", "a", "b")), 0);
	assert_string_equal(s.output, "y=z");
	assert_string_equal(s.more, "b");
	assert_int_equal(s.top, 16);
	assert_int_equal(parse(&file_command, &s, ARGS("-oz", "--", "-q")), 0);
	assert_string_equal(s.output, "z");
	assert_string_equal(s.file, "-q");
	assert_false(s.quiet);
	assert_int_equal(parse(&file_command, &s, ARGS("-")), 0);
	assert_string_equal(s.file, "-");
	assert_int_equal(parse(&file_command, &s, ARGS("--help")), 0);
	assert_true(common.help);
}

static void rest(void **state)
{
	struct sample s;

	(void)state;
	assert_int_equal(parse(&rest_command, &s, ARGS("-q", "--", "prog", "-q", "--top", "--")),
			 0);
	assert_string_equal(s.rest[0], "prog");
	assert_string_equal(s.rest[3], "--");
	assert_int_equal(s.top, 5);
	assert_int_equal(parse(&rest_command, &s, ARGS("prog", "--json")), 0);
	assert_false(common.json);
	assert_string_equal(s.rest[1], "--json");
	assert_int_equal(parse(&rest_command, &s, ARGS("-q", "--")), EXIT_USAGE);
}

static void refused(void **state)
{
	struct sample s;

	(void)state;
	assert_int_equal(parse(&file_command, &s, ARGS("a", "b", "c")), EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("-q")), EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("a", "--nonsense")), EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("a", "-x")), EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("a", "-qx")), EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("a", "--quiet=yes")), EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("a", "--top")), EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("a", "--top", "many")), EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("a", "--top", "99999999999999999999")),
			 EXIT_USAGE);
	assert_int_equal(parse(&file_command, &s, ARGS("a", "--to", "3")), EXIT_USAGE);
}

static const char *const words[] = { "report", "recover", "live", "dump", NULL };

static const char *word(const void *ctx, size_t i)
{
	(void)ctx;
	return words[i];
}

static void guesses(void **state)
{
	(void)state;
	assert_string_equal(options_guess("reprot", word, NULL), "report");
	assert_string_equal(options_guess("rep", word, NULL), "report");
	assert_string_equal(options_guess("dunp", word, NULL), "dump");
	assert_null(options_guess("flamegraph", word, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(rest),
		cmocka_unit_test(refused),
		cmocka_unit_test(guesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

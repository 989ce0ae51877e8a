/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emitter: documents of any bytes that a JSON reader takes, and lines for a terminal.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include <stdio.h>

#include "../../viewer/base/emit.h"
#include "../../viewer/base/emit_json.h"
#include "../../viewer/base/human.h"

static char text[65536];

static FILE *memory(void)
{
	memset(text, 0, sizeof(text));
	return fmemopen(text, sizeof(text), "w");
}

static const char *quoted(const char *s, size_t len)
{
	FILE *f = memory();

	emit_json_string(f, s, len);
	fclose(f);
	return text;
}

#define QUOTED(s) quoted(s, sizeof(s) - 1)

static void strings_of_any_bytes(void **state)
{
	(void)state;
	assert_string_equal(QUOTED("plain"), "\"plain\"");
	assert_string_equal(QUOTED("a\"b\\c"), "\"a\\\"b\\\\c\"");
	assert_string_equal(QUOTED("\n\t\x01\x7f"), "\"\\n\\t\\u0001\\u007f\"");
	assert_string_equal(QUOTED("a\0b"), "\"a\\u0000b\"");
	assert_string_equal(QUOTED("h\xc3\xa9llo \xf0\x9f\x98\x80"),
			    "\"h\xc3\xa9llo \xf0\x9f\x98\x80\"");
	/* not UTF-8: a lone byte, a cut character, an overlong zero, a surrogate, beyond U+10FFFF
	 */
	assert_string_equal(QUOTED("\xff"), "\"\\udcff\"");
	assert_string_equal(QUOTED("\xe2\x82"), "\"\\udce2\\udc82\"");
	assert_string_equal(QUOTED("\xc0\x80"), "\"\\udcc0\\udc80\"");
	assert_string_equal(QUOTED("\xed\xa0\x80"), "\"\\udced\\udca0\\udc80\"");
	assert_string_equal(QUOTED("\xf4\x90\x80\x80"), "\"\\udcf4\\udc90\\udc80\\udc80\"");
	/* what turns the direction, ends a line or is not seen; a joiner is part of words */
	assert_string_equal(QUOTED("a\xe2\x80\xae"
				   "b\xe2\x81\xa6"),
			    "\"a\\u202eb\\u2066\"");
	assert_string_equal(QUOTED("\xc2\x9b\xd8\x9c\xe2\x80\xa8"), "\"\\u009b\\u061c\\u2028\"");
	assert_string_equal(QUOTED("\xf3\xa0\x81\x81"), "\"\\udb40\\udc41\"");
	assert_string_equal(QUOTED("a\xe2\x80\x8d"), "\"a\xe2\x80\x8d\"");
}

static void documents(void **state)
{
	FILE *f = memory();
	struct emit *e = emit_open(f, true);

	(void)state;
	emit_object(e, NULL);
	emit_number(e, "n", UINT64_MAX);
	emit_signed(e, "d", -1);
	emit_flag(e, "yes", true);
	emit_array(e, "list");
	emit_object(e, NULL);
	emit_text(e, "s", "x");
	emit_end(e);
	emit_object(e, NULL);
	emit_end(e);
	emit_end(e);
	emit_line(e, "not in JSON");
	emit_title(e, "nor this");
	emit_object(e, "empty");
	emit_end(e);
	emit_end(e);
	emit_object(e, NULL);
	emit_end(e);
	assert_int_equal(emit_close(e), 0);
	fclose(f);
	assert_string_equal(text, "{\"n\":18446744073709551615,\"d\":-1,\"yes\":true,\"list\":"
				  "[{\"s\":\"x\"},{}],\"empty\":{}}\n{}\n");
}

/* However deep: what was opened is closed. */
static void deep_documents(void **state)
{
	enum { DEEP = 1000 };
	FILE *f = memory();
	struct emit *e = emit_open(f, true);
	char expected[6 * DEEP + 8] = "";
	size_t n = 0;

	(void)state;
	for (int i = 0; i < DEEP; i++) {
		emit_object(e, i ? "a" : NULL);
		n += (size_t)sprintf(expected + n, "%s", i ? "\"a\":{" : "{");
	}
	for (int i = 0; i < DEEP; i++)
		expected[n++] = '}';
	expected[n++] = '\n';
	emit_close(e);
	fclose(f);
	assert_string_equal(text, expected);
}

/* A thousand strings of random bytes give documents without a raw control character. */
static void no_control_characters(void **state)
{
	struct chance c = { 3 };
	char bytes[64];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		size_t len = chance_below(&c, sizeof(bytes));

		for (size_t j = 0; j < len; j++)
			bytes[j] = (char)chance_next(&c);
		quoted(bytes, len);
		for (const char *p = text; *p; p++)
			assert_true((unsigned char)*p >= 32 && *p != 0x7f);
	}
}

/* A terminal and Markdown see what is there, and how wide it is. */
static void what_is_not_seen_is_shown(void **state)
{
	static const char name[] = "a\xe2\x80\xae*\x1b\xc2\x9b\xf3\xa0\x81\x81\xe2\x80\x8d\xff";
	static const char shown[] = "a\\u202e*\\x1b\\xc2\\x9b\\U000e0041\xe2\x80\x8d\\xff";
	struct emit *e = emit_open(memory(), false);

	(void)state;
	emit_line(e, "%s", name);
	emit_close(e);
	assert_memory_equal(text, shown, sizeof(shown) - 1);
	assert_int_equal(emit_plain_width(name, sizeof(name) - 1), sizeof(shown) - 1 - 2);
	e = emit_open(memory(), false);
	emit_use_markdown(e);
	emit_line(e, "%s\n", name);
	emit_close(e);
	assert_string_equal(text, "a\\\\u202e\\*\\\\x1b\\\\xc2\\\\x9b\\\\U000e0041\xe2\x80\x8d"
				  "\\\\xff \n");
}

static void figures(void **state)
{
	char b[HUMAN_MAX], many[HUMAN_MANY];

	(void)state;
	assert_string_equal(human_bytes(b, 0), "0 B");
	assert_string_equal(human_bytes(b, 1023), "1023 B");
	assert_string_equal(human_bytes(b, 1024), "1.0 KiB");
	assert_string_equal(human_bytes(b, 1048575), "1.0 MiB");
	assert_string_equal(human_bytes(b, 47029900000), "43.8 GiB");
	assert_string_equal(human_bytes(b, UINT64_MAX), "16.0 EiB");
	assert_string_equal(human_apart(b, 1300000000, 5 << 20), "1.2 GiB");
	assert_string_equal(human_apart(b, 1300000000, 1310000000), "1.21 GiB");
	assert_string_equal(human_apart(b, 1310000000, 1300000000), "1.22 GiB");
	assert_string_equal(human_apart(b, 1300000000, 1300000000), "1.2 GiB");
	assert_string_equal(human_apart(b, 1300000512, 1300000000), "1,300,000,512 B");
	assert_string_equal(human_seconds(b, 1830000000), "1.83 s");
	assert_string_equal(human_seconds(b, 725000000000), "12 min 05 s");
	assert_string_equal(human_seconds(b, 11525000000000), "3 h 12 min");
	assert_string_equal(human_seconds(b, 1217000000000000), "14 days 2 h");
	assert_string_equal(human_many(many, 1, "block"), "1 block");
	assert_string_equal(human_many(many, 12345, "pass"), "12,345 passes");
	assert_string_equal(human_share(b, 1, 3), "33 %");
	assert_string_equal(human_share(b, 1, 0), "0 %");
	assert_string_equal(human_count(b, 1234567), "1,234,567");
	assert_string_equal(human_count(b, 123), "123");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_of_any_bytes),
		cmocka_unit_test(documents),
		cmocka_unit_test(deep_documents),
		cmocka_unit_test(figures),
		cmocka_unit_test(no_control_characters),
		cmocka_unit_test(what_is_not_seen_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON where it lies: every way to a value, strings of any bytes as the emitter writes them, and
 * text that is no JSON reads as nothing, wherever it ends.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include <stdio.h>

#include "../../viewer/base/emit_json.h"
#include "../../viewer/base/json.h"

static const char doc[] = "{\"n\": 12, \"deep\":{\"list\":[{\"key\":\"a\",\"v\":-1.5},"
			  "{\"key\":\"b\",\"v\":7}],\"empty\":[]},\"s\":\"}],\\\"{\",\"yes\":true,"
			  "\"no\":false,\"none\":null,\"big\":18446744073709551615}";

static struct json at(const char *path)
{
	return json_at(json_text(doc, sizeof(doc) - 1), path);
}

static void ways_to_a_value(void **state)
{
	(void)state;
	assert_int_equal(json_unsigned(at("n")), 12);
	assert_true(json_number(at("deep.list.0.v")) == -1.5);
	assert_int_equal(json_signed(at("deep.list.1.v")), 7);
	assert_true(json_is(at("deep.list.0.key"), "a"));
	assert_false(json_is(at("deep.list.0.key"), "ab"));
	assert_true(json_number(at("yes")) == 1 && json_number(at("no")) == 0);
	assert_true(json_unsigned(at("big")) == UINT64_MAX);
	assert_true(at("deep").s && at("deep.empty").s && at("none").s);
	assert_null(at("deep.empty.0").s);
	assert_null(at("deep.list.2").s);
	assert_null(at("n.x").s);
	assert_null(at("nothing").s);
	assert_null(at("s.0").s);
	assert_true(json_number(at("nothing")) == 0);
}

static void names_and_items(void **state)
{
	struct json v, key, of = json_text(doc, sizeof(doc) - 1);
	char names[64] = "", name[16];

	(void)state;
	for (v = json_first(of, &key); v.s; v = json_next(of, v, &key)) {
		strcat(names, json_string(key, name, sizeof(name)));
		strcat(names, " ");
	}
	assert_string_equal(names, "n deep s yes no none big ");
}

/* What the emitter writes comes back byte for byte. */
static void strings_of_any_bytes(void **state)
{
	char bytes[600], text[4096] = "", back[700];
	size_t n = 0;
	FILE *f;

	(void)state;
	for (int c = 1; c < 256; c++)
		bytes[n++] = (char)c;
	n += (size_t)sprintf(bytes + n, "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80 \\ \" /");
	f = fmemopen(text, sizeof(text), "w");
	emit_json_string(f, bytes, n);
	fclose(f);
	json_string(json_text(text, strlen(text)), back, sizeof(back));
	assert_int_equal(strlen(back), n);
	assert_memory_equal(back, bytes, n);
	json_string(json_text("\"abcdef\"", 8), back, 7);
	assert_int_equal(strlen(back), 3); /* four bytes are kept for a character that is one */
	/* A character beyond U+FFFF is two in JSON; one half alone is none. */
	json_string(json_text("\"\\u00e9\\ud83d\\ude00.\"", 22), back, sizeof(back));
	assert_string_equal(back, "\u00e9\U0001f600.");
	json_string(json_text("\"\\ud83d\\u0041\"", 14), back, sizeof(back));
	assert_string_equal(back + strlen(back) - 1, "A");
	assert_string_equal(json_string((struct json){ 0 }, back, sizeof(back)), "");
	assert_string_equal(json_string(at("n"), back, sizeof(back)), "");
}

/* A copy of exactly the bytes, so that reading on is seen. */
/* Of a value that is not there nothing comes next, wherever the text ends. */
static void nothing_follows_nothing(void **state)
{
	static const char *const texts[] = { "", "\0[[\0", "[", "{", "\"", "[[1]", "nan", "]" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json root = json_text(texts[i], i == 1 ? 4 : strlen(texts[i]));
		struct json first = json_first(root, NULL), next = json_next(root, first, NULL);

		assert_null(json_next(root, (struct json){ 0 }, NULL).s);
		assert_null(json_next(first, next, NULL).s);
		assert_true(root.s || !root.end);
		assert_true(json_number(root) == 0);
	}
	assert_null(json_text(NULL, 0).s);
}

static void cut_anywhere(void **state)
{
	(void)state;
	for (size_t len = 0; len < sizeof(doc) - 1; len++) {
		char *text = malloc(len + !len), buf[64];
		struct json v;

		memcpy(text, doc, len);
		v = json_text(text, len);
		assert_null(v.s);
		for (size_t from = 0; from < len; from++) {
			struct json key, part = json_text(text + from, len - from);

			json_string(part, buf, sizeof(buf));
			json_number(part);
			for (v = json_first(part, &key); v.s; v = json_next(part, v, &key))
				json_string(key, buf, sizeof(buf));
			json_at(part, "deep.list.1.v");
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_to_a_value),	   cmocka_unit_test(names_and_items),
		cmocka_unit_test(strings_of_any_bytes),	   cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(nothing_follows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents: the rows of one description as JSON, as columns of text, as Markdown.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include <stdio.h>

#include "../../viewer/answers/columns.h"
#include "../../viewer/classes/classify.h"

static char text[4096];

static struct emit *begin(bool json, FILE **f)
{
	memset(text, 0, sizeof(text));
	*f = fmemopen(text, sizeof(text), "w");
	return emit_open(*f, json);
}

static void finish(struct emit *e, FILE *f)
{
	assert_int_equal(emit_close(e), 0);
	fclose(f);
}

/* The second of three is left out. */
static bool line_row(void *ctx, size_t i, struct row_oom_holder *row)
{
	(void)ctx;
	*row = (struct row_oom_holder){
		.class = i ? 0 : 5,
		.owner = { .function = "f\x1b", .file = "d/a_b.py", .line = (unsigned)i + 7 },
		.bytes = 1536 * (i + 1),
		.blocks = 1000 * i,
		.note = "only here"
	};
	return i != 1;
}

static const struct text_column columns[] = {
	TEXT_COLUMN("held by", oom_holder_owner, 2, -12),
	TEXT_COLUMN("size", oom_holder_bytes, 1, 0),
	TEXT_COLUMN("share", oom_holder_bytes, 2, 0, .style = COLUMN_SHARE, .all = 6144),
	TEXT_COLUMN("blocks", oom_holder_blocks, 2, 0),
	TEXT_COLUMN("raw", oom_holder_bytes, 2, 0, .style = COLUMN_PLAIN),
	TEXT_COLUMN("class", oom_holder_class, 2, -1),
	TEXT_COLUMN("", oom_holder_note, 2, -1),
};
static const struct rows_oom_holder rows = { 3, line_row, NULL };

static void as_text(void **state)
{
	FILE *f;
	struct emit *e = begin(false, &f);

	(void)state;
	assert_int_equal(emit_columns(e, oom_holder, &rows, columns, 0), 0);
	assert_int_equal(emit_columns(e, oom_holder, &rows, columns, 1), 1);
	finish(e, f);
	assert_string_equal(
		text, "  held by           size  share  blocks   raw  class\n"
		      "  f\\x1b a_b.py:7 1.5 KiB   25 %       0  1536  activations  only here\n"
		      "  f\\x1b a_b.py:9 4.5 KiB   75 %   2,000  4608  parameters   only here\n"
		      "  held by           size  share  blocks   raw  class\n"
		      "  f\\x1b a_b.py:7 1.5 KiB   25 %       0  1536  activations  only here\n");
}

static void as_markdown(void **state)
{
	FILE *f;
	struct emit *e = begin(false, &f);

	(void)state;
	emit_use_markdown(e);
	emit_columns(e, oom_holder, &rows, columns, 1);
	finish(e, f);
	assert_string_equal(
		text,
		"| held by | size | share | blocks | raw | class |  |\n"
		"|---|---:|---:|---:|---:|---|---|\n"
		"| f\\\\x1b a\\_b.py:7 | 1.5 KiB | 25 % | 0 | 1536 | activations | only here |\n");
}

static bool device_row(void *ctx, size_t i, struct row_report_device *row)
{
	*row = (struct row_report_device){ .device = -1,
					   .peak_bytes = UINT64_MAX,
					   .categories_at_peak = ctx,
					   .has_state_only = i,
					   .state_only = true };
	return true;
}

/* What may be absent is, but for what is there; a list in a list. */
static void as_json(void **state)
{
	uint64_t bytes[32] = { 3, 0, 4 };
	struct row_report row = { .events = 2, .devices = { 2, device_row, bytes } };
	FILE *f;
	struct emit *e = begin(true, &f);

	(void)state;
	emit_document(e, report, &row);
	emit_columns(e, oom_holder, &rows, columns, 0);
	emit_lines(e, report, &row, NULL, NULL);
	finish(e, f);
	assert_string_equal(
		text,
		"{\"events\":2,\"allocs\":0,\"frees\":0,\"dropped\":0,\"truncated\":false,"
		"\"devices\":[{\"device\":-1,\"peak_bytes\":18446744073709551615,\"peak_time_ns\":"
		"0,"
		"\"end_bytes\":0,\"peak_reserved_bytes\":0,\"resident_peak_bytes\":0,"
		"\"asleep_bytes\":0,\"context_bytes\":0,\"categories_at_peak\":{\"parameters\":"
		"3,"
		"\"optimizer_state\":4},\"unused_at_peak_bytes\":0,\"unused_at_peak\":[],"
		"\"used_bound_bytes\":0,\"ooms\":0,\"pools\":[],\"function\":\"\",\"file\":\"\","
		"\"line\":0},{\"device\":-1,\"peak_bytes\":"
		"18446744073709551615,\"peak_time_ns\":0,\"end_bytes\":0,\"peak_reserved_bytes\":0,"
		"\"resident_peak_bytes\":0,\"asleep_bytes\":0,\"context_bytes\":0,"
		"\"categories_at_peak\":{"
		"\"parameters\":3,\"optimizer_state\":4},\"unused_at_peak_bytes\":0,"
		"\"unused_at_peak\":[],\"used_bound_bytes\":0,\"ooms\":0,\"pools\":[],"
		"\"function\":\"\",\"file\":\"\",\"line\":0,"
		"\"state_only\":true}],\"contexts\":[],\"summary\":[],\"file_bytes\":0}\n");
}

static void as_lines(void **state)
{
	struct row_dump_module row = { .def = "module", .path = { "a\nb", 3 }, .start = 16 };
	FILE *f;
	struct emit *e = begin(false, &f);

	(void)state;
	emit_document(e, dump_module, &row);
	emit_lines(e, dump_module, &row, "path", "start");
	finish(e, f);
	assert_string_equal(text, "path              a\\x0ab\n"
				  "start             16\n");
}

/* A row with a member of each type that has columns: what such a column must print. */

struct every {
	uint64_t number, bytes;
	int64_t negative;
	unsigned class;
	const char *word;
	struct defs_text raw;
	struct words words;
	struct owner owner;
};

static const char *const some_words[] = { "one", "two" };

static bool next_every(const void *from, size_t *i, void *row)
{
	memcpy(row, from, sizeof(struct every));
	return !(*i)++;
}

#define EVERY(type, member, shows)                                   \
	{                                                            \
		MEMBER_##type, offsetof(struct every, member), shows \
	}

static const struct {
	enum member_type type;
	size_t offset;
	const char *shows;
} every_type[] = {
	EVERY(NUMBER, number, "12345"),
	EVERY(COUNT, number, "12,345"),
	EVERY(BYTES, bytes, "1.5 GiB"),
	EVERY(NS, number, "12345"),
	EVERY(DURATION, number, "12 us"),
	EVERY(ADDRESS, number, "0x3039"),
	EVERY(CHANGE, negative, "-1.5 KiB"),
	EVERY(TEXT, word, "word"),
	EVERY(RAW, raw, "raw"),
	EVERY(CLASS, class, "parameters"),
	EVERY(WORDS, words, "one"),
	EVERY(FUNCTION, owner, "f b.py:7"),
};

static void each_type_has_its_cell(void **state)
{
	struct every row = {
		.number = 12345,
		.bytes = 3ull << 29,
		.negative = -1536,
		.word = "word",
		.raw = { .s = "raw", .len = 3 },
		.words = { 2, NULL, some_words },
		.owner = { .function = "f", .file = "b.py", .line = 7 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(every_type) / sizeof(*every_type); i++) {
		const struct member member = { "m", every_type[i].type, every_type[i].offset, 0,
					       NULL };
		const struct document d = { "every", &member, 1, next_every };
		const struct text_column column = { .title = "", .gap = 2, .width = -1 };
		char expected[64];
		FILE *f;
		struct emit *e = begin(false, &f);

		snprintf(expected, sizeof(expected), "  %s\n", every_type[i].shows);
		assert_int_equal(columns_write(e, &d, &column, 1, &row, 0), 0);
		finish(e, f);
		assert_string_equal(text, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_text),     cmocka_unit_test(each_type_has_its_cell),
		cmocka_unit_test(as_markdown), cmocka_unit_test(as_json),
		cmocka_unit_test(as_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

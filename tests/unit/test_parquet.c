/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of Parquet files: the frame of a file, values of every type with and without nulls,
 * dictionaries given up, row groups. Whether others read them: tests/e2e/test_lake.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../viewer/lake/parquet_column.h"
#include "../../viewer/lake/thrift.h"

static const struct parquet_column columns[] = {
	{ "number", PARQUET_INT }, { "flag", PARQUET_FLAG },	 { "text", PARQUET_TEXT },
	{ "time", PARQUET_TIME },  { "different", PARQUET_INT }, { "none", PARQUET_TEXT },
};

static void fill(struct parquet *p, int64_t i)
{
	char text[40];

	if (i % 7)
		column_number(parquet_column(p, 0), i % 1000 - 500);
	if (i % 5)
		column_flag(parquet_column(p, 1), i % 3 == 0);
	snprintf(text, sizeof(text), "text %d \xff", (int)(i % 100));
	column_text(parquet_column(p, 2), text, strlen(text));
	column_number(parquet_column(p, 3), 1700000000000000 + i);
	column_number(parquet_column(p, 4), i * 12345);
	parquet_row(p);
}

static char *write_rows(int64_t rows, int level, size_t *len)
{
	char *bytes = NULL;
	FILE *f = open_memstream(&bytes, len);
	struct parquet *p = parquet_open(f, columns, 6, level);

	parquet_fact(p, "key", "value");
	for (int64_t i = 0; i < rows; i++)
		fill(p, i);
	assert_int_equal(parquet_rows(p), rows);
	parquet_close(p);
	fclose(f);
	return bytes;
}

/* The magic at both ends, and a footer whose length is right. */
static void frame(void **state)
{
	const int64_t rows[] = { 0, 1, 8, 9, 5000, PARQUET_GROUP, PARQUET_GROUP + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int level = PARQUET_FAST; level <= PARQUET_SMALL; level += PARQUET_SMALL) {
			size_t len;
			char *bytes = write_rows(rows[i], level, &len);
			uint32_t footer;

			assert_true(len > 12);
			assert_memory_equal(bytes, "PAR1", 4);
			assert_memory_equal(bytes + len - 4, "PAR1", 4);
			memcpy(&footer, bytes + len - 8, sizeof(footer));
			assert_true(footer + 12 <= len);
			assert_int_equal(bytes[len - 8 - footer], 0x15);  /* field 1, a number: */
			assert_int_equal(bytes[len - 8 - footer + 1], 4); /* version 2 */
			free(bytes);
		}
}

static void small_is_smaller(void **state)
{
	size_t fast, small;

	(void)state;
	free(write_rows(50000, PARQUET_FAST, &fast));
	free(write_rows(50000, PARQUET_SMALL, &small));
	assert_true(small < fast / 2);
}

static struct bytes page_of(struct column_values *c, bool *dictionary)
{
	struct bytes page = { 0 };

	column_page(c, &page, dictionary);
	return page;
}

/* Four bytes of length, then who is there: a run, or bits. */
static void levels(void **state)
{
	struct column_values c = { .type = PARQUET_INT };
	struct bytes page;
	bool dictionary;

	(void)state;
	column_number(&c, 42);
	column_row(&c);
	column_row(&c);
	column_number(&c, -1);
	column_row(&c);
	page = page_of(&c, &dictionary);
	assert_true(dictionary);
	/* 2 bytes: one group of 8 bits, rows 0 and 2; then two numbers of one bit each: 0, 1 */
	assert_memory_equal(page.p, "\2\0\0\0\3\5\1\3\2", 9);
	assert_int_equal(page.len, 9);
	assert_int_equal(c.least, -1);
	assert_int_equal(c.most, 42);
	bytes_free(&page);
	column_clear(&c);
	column_row(&c);
	page = page_of(&c, &dictionary);
	assert_false(dictionary);
	assert_memory_equal(page.p, "\2\0\0\0\2\0", 6);
	assert_int_equal(page.len, 6);
	bytes_free(&page);
	column_free(&c);
}

/* Values that never come again have no dictionary; the page has all of them all the same. */
static void dictionary_given_up(void **state)
{
	struct column_values c = { .type = PARQUET_INT };
	struct bytes page;
	bool dictionary;
	int64_t n;

	(void)state;
	for (int64_t i = 0; i < 5000; i++) {
		column_number(&c, i * i);
		column_row(&c);
	}
	page = page_of(&c, &dictionary);
	assert_false(dictionary);
	assert_true(page.len > 5000 * 8);
	memcpy(&n, page.p + page.len - 8, sizeof(n));
	assert_int_equal(n, 4999 * 4999);
	bytes_free(&page);
	column_free(&c);
}

static void texts_are_utf8(void **state)
{
	struct column_values c = { .type = PARQUET_TEXT };
	struct bytes page;
	bool dictionary;

	(void)state;
	column_text(&c, "a\xff\xc3\xa9", 4);
	column_row(&c);
	column_text(&c, "", 0);
	column_row(&c);
	column_text(&c, "a?\xc3\xa9", 4);
	column_row(&c);
	page = page_of(&c, &dictionary);
	assert_true(dictionary);
	assert_int_equal(c.entries, 2);
	assert_memory_equal(c.dictionary.p, "\4\0\0\0a?\xc3\xa9\0\0\0\0", 12);
	bytes_free(&page);
	column_free(&c);
}

static void compact_numbers(void **state)
{
	struct thrift t = { 0 };

	(void)state;
	thrift_i32(&t, 1, 150);
	thrift_i64(&t, 40, -1);
	thrift_flag(&t, 41, 0);
	thrift_list(&t, 42, THRIFT_I32, 20);
	assert_memory_equal(t.out.p, "\x15\xac\x02\x06\x50\x01\x12\x19\xf5\x14", 10);
	assert_int_equal(t.out.len, 10);
	bytes_free(&t.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame),	  cmocka_unit_test(small_is_smaller),
		cmocka_unit_test(levels),	  cmocka_unit_test(dictionary_given_up),
		cmocka_unit_test(texts_are_utf8), cmocka_unit_test(compact_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

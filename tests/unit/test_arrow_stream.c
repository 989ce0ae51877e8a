/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of Arrow files and the reader behind the Python package: what one writes the other
 * gives, batch by batch; broken bytes are refused and do no harm; nothing is left behind, however
 * far a stream is read and in whatever order its arrays are released.
 *
 * links: python/native/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../python/native/arrow_abi.h"
#include "../../viewer/export/arrow.h"

#define ROWS 70000u
#define PATH "build/test_arrow_stream.%d.arrow"

int gmt_arrow_of_tool(const char *path, char *const argv[], char *const envp[],
		      struct ArrowArrayStream *out, int *code, char *text, size_t room);

static const struct arrow_column columns[] = {
	{ "number", ARROW_UINT64, "bytes", "a number" },
	{ "narrow", ARROW_INT32, "", "below zero" },
	{ "text", ARROW_TEXT, "", "every other row" },
	{ "none", ARROW_UINT16, "", "always null" },
};

static char path[64];

static size_t write_table(size_t rows)
{
	FILE *f = fopen(path, "w");
	struct arrow *a = arrow_open(f, columns, 4);
	size_t len;

	for (size_t i = 0; i < rows; i++) {
		char s[32];
		int n = snprintf(s, sizeof(s), "row %zu", i);

		arrow_number(a, 0, i << 40);
		arrow_number(a, 1, (uint32_t) - (int32_t)i);
		if (i % 2)
			arrow_text(a, 2, s, (size_t)n);
		arrow_row(a);
	}
	arrow_close(a);
	len = (size_t)ftell(f);
	fclose(f);
	return len;
}

static int open_stream(struct ArrowArrayStream *s, const char *program, char *argument)
{
	char *argv[] = { "tool", argument, NULL }, *envp[] = { NULL }, text[256];
	int code;

	return gmt_arrow_of_tool(program, argv, envp, s, &code, text, sizeof(text));
}

static void check_row(const struct ArrowArray *a, int64_t i, size_t row)
{
	const uint64_t *numbers = a->children[0]->buffers[1];
	const int32_t *narrow = a->children[1]->buffers[1], *ends = a->children[2]->buffers[1];
	const uint8_t *valid = a->children[2]->buffers[0];
	const char *text = a->children[2]->buffers[2];
	char s[32] = "";

	if (row % 2)
		snprintf(s, sizeof(s), "row %zu", row);
	assert_int_equal(numbers[i], (uint64_t)row << 40);
	assert_int_equal(narrow[i], -(int32_t)row);
	assert_int_equal(valid[i / 8] >> i % 8 & 1, row % 2);
	assert_int_equal(ends[i + 1] - ends[i], strlen(s));
	assert_memory_equal(text + ends[i], s, strlen(s));
}

static void test_what_is_written_is_read(void **state)
{
	struct ArrowArrayStream s;
	struct ArrowSchema schema;
	struct ArrowArray a;
	size_t row = 0;

	(void)state;
	write_table(ROWS);
	assert_int_equal(open_stream(&s, "/bin/cat", path), 0);
	assert_int_equal(s.get_schema(&s, &schema), 0);
	assert_int_equal(schema.n_children, 4);
	assert_string_equal(schema.children[0]->name, "number");
	assert_string_equal(schema.children[1]->format, "i");
	assert_string_equal(schema.children[2]->format, "u");
	assert_memory_equal(schema.children[0]->metadata + 4, "\4\0\0\0unit\5\0\0\0bytes", 17);
	while (!s.get_next(&s, &a) && a.release) {
		for (int64_t i = 0; i < a.length; i++)
			check_row(&a, i, row++);
		assert_int_equal(a.children[0]->null_count, 0);
		assert_null(a.children[0]->buffers[0]);
		assert_int_equal(a.children[3]->null_count, a.length);
		a.release(&a);
	}
	assert_int_equal(row, ROWS);
	assert_null(s.get_last_error(&s));
	schema.release(&schema);
	s.release(&s);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_a_child_outlives_its_parent_and_the_stream(void **state)
{
	struct ArrowArrayStream s;
	struct ArrowArray a, text;

	(void)state;
	write_table(ROWS);
	assert_int_equal(open_stream(&s, "/bin/cat", path), 0);
	assert_int_equal(s.get_next(&s, &a), 0);
	text = *a.children[2];
	a.children[2]->release = NULL;
	a.release(&a);
	s.release(&s);
	assert_memory_equal(text.buffers[2], "row 1row 3", 10);
	text.release(&text);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_a_program_that_fails(void **state)
{
	struct ArrowArrayStream s;

	(void)state;
	assert_int_not_equal(open_stream(&s, "/bin/false", NULL), 0);
	assert_int_not_equal(open_stream(&s, "/no such program", NULL), 0);
	assert_int_not_equal(open_stream(&s, "/bin/echo", "ARROW1"), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Everything that is given is looked at: a sanitizer sees what lies outside. */
static uint64_t sum_of(const struct ArrowArray *a)
{
	const int32_t *ends = a->children[2]->buffers[1];
	const uint8_t *text = a->children[2]->buffers[2];
	uint64_t sum = 0;

	for (int64_t i = 0; i < a->length; i++)
		sum += ((const uint64_t *)a->children[0]->buffers[1])[i] +
		       ((const uint16_t *)a->children[3]->buffers[1])[i];
	for (int32_t i = a->length ? ends[0] : 0; a->length && i < ends[a->length]; i++)
		sum += text[i];
	return sum;
}

static void read_broken(uint64_t *sum)
{
	struct ArrowArrayStream s;
	struct ArrowSchema schema;
	struct ArrowArray a;
	bool same;

	if (open_stream(&s, "/bin/cat", path))
		return;
	if (!s.get_schema(&s, &schema)) {
		same = schema.n_children == 4 && !strcmp(schema.children[0]->format, "L") &&
		       !strcmp(schema.children[2]->format, "u") &&
		       !strcmp(schema.children[3]->format, "S");
		while (!s.get_next(&s, &a) && a.release) {
			*sum += same ? sum_of(&a) : 0;
			a.release(&a);
		}
		schema.release(&schema);
	}
	s.release(&s);
}

static void test_broken_bytes_do_no_harm(void **state)
{
	size_t len = write_table(20);
	uint8_t *good = malloc(len), *bad = malloc(len);
	FILE *f = fopen(path, "r");
	uint64_t sum = 0;

	(void)state;
	assert_int_equal(fread(good, 1, len, f), len);
	fclose(f);
	srandom(7);
	for (int round = 0; round < 400; round++) {
		size_t cut = round % 4 ? len : (size_t)random() % len;

		memcpy(bad, good, len);
		for (int i = 0; i < 1 + round % 5; i++)
			bad[8 + (size_t)random() % (len - 8)] = (uint8_t)random();
		f = fopen(path, "w");
		fwrite(bad, 1, cut, f);
		fclose(f);
		read_broken(&sum);
	}
	free(good);
	free(bad);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_a_child_outlives_its_parent_and_the_stream),
		cmocka_unit_test(test_a_program_that_fails),
		cmocka_unit_test(test_broken_bytes_do_no_harm),
	};
	int rc;

	snprintf(path, sizeof(path), PATH, (int)getpid());
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}

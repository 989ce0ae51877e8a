/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface: documents in any order and again, from a path and from bytes; sentences where
 * there is no answer; streams that are read to their end or not, released before their recording
 * or after it, and arrays in any order; questions of several threads. What documents say is
 * compared with the command's in tests/e2e/test_python.py.
 *
 * links: viewer/ask/library*.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../viewer/ask/arrow_abi.h"
#include "../../viewer/ask/gpumemtrace.h"

#define OLD "tests/data/example/old.gmt"
#define NEW "tests/data/example/new.gmt"

static struct gpumemtrace *open_file(const char *path)
{
	struct gpumemtrace *r;
	struct gpumemtrace_answer a;

	assert_int_equal(gpumemtrace_open(path, &r, &a), GPUMEMTRACE_OK);
	assert_null(a.sentence);
	gpumemtrace_answer_free(&a);
	return r;
}

/* The document of that many recordings, to be freed. */
static char *ask_json(struct gpumemtrace *const *r, size_t count, const char *question)
{
	struct gpumemtrace_answer a;

	assert_int_equal(gpumemtrace_ask(r, count, question, NULL, &a), GPUMEMTRACE_OK);
	assert_int_equal(strlen(a.json), a.length);
	assert_int_equal(a.json[0], '{');
	free(a.notes);
	return a.json;
}

static const char *const questions[] = { "report",   "live",   "peak",	  "steps",
					 "leaks",    "info",   "modules", "account",
					 "timeline", "verify", "flame",	  "advise" };
#define QUESTIONS (sizeof(questions) / sizeof(questions[0]))

static void documents_do_not_depend_on_the_order(void **state)
{
	struct gpumemtrace *r = open_file(NEW), *other = open_file(NEW);
	char *first[QUESTIONS], *again;

	(void)state;
	for (size_t i = 0; i < QUESTIONS; i++)
		first[i] = ask_json(&r, 1, questions[i]);
	for (size_t i = QUESTIONS; i-- > 0;) {
		again = ask_json(&other, 1, questions[i]);
		assert_string_equal(again, first[i]);
		free(again);
		again = ask_json(&r, 1, questions[i]);
		assert_string_equal(again, first[i]);
		free(again);
		free(first[i]);
	}
	gpumemtrace_close(other);
	gpumemtrace_close(r);
}

static void two_recordings(void **state)
{
	struct gpumemtrace *both[] = { open_file(OLD), open_file(NEW) };
	struct gpumemtrace *same[] = { both[0], both[0] };
	char *first = ask_json(both, 2, "diff"), *none = ask_json(same, 2, "diff"),
	     *again = ask_json(both, 2, "diff");

	(void)state;
	assert_string_equal(first, again);
	assert_non_null(strstr(none, "\"delta\":0"));
	free(first);
	free(none);
	free(again);
	gpumemtrace_close(both[0]);
	gpumemtrace_close(both[1]);
}

static void bytes_are_read_like_the_file(void **state)
{
	static char bytes[1 << 20];
	FILE *f = fopen(NEW, "r");
	size_t len = fread(bytes, 1, sizeof(bytes), f);
	struct gpumemtrace *file = open_file(NEW), *r;
	struct gpumemtrace_answer a;
	char *of_file = ask_json(&file, 1, "report"), *of_bytes;

	(void)state;
	fclose(f);
	assert_int_equal(gpumemtrace_open_bytes(bytes, len, NEW, &r, &a), GPUMEMTRACE_OK);
	memset(bytes, 0, sizeof(bytes));
	of_bytes = ask_json(&r, 1, "report");
	assert_string_equal(of_bytes, of_file);
	free(of_bytes);
	free(of_file);
	gpumemtrace_close(r);
	gpumemtrace_close(file);
	assert_int_equal(gpumemtrace_open_bytes(bytes, 5000, "zeros", &r, &a),
			 GPUMEMTRACE_UNREADABLE);
	assert_null(r);
	assert_non_null(strstr(a.sentence, "zeros: "));
	gpumemtrace_answer_free(&a);
}

static void assert_refused(struct gpumemtrace *r, size_t count, const char *question,
			   const char *const *arguments, const char *words)
{
	struct gpumemtrace *const all[] = { r, r, r };
	struct gpumemtrace_answer a;

	assert_int_equal(gpumemtrace_ask(all, count, question, arguments, &a), GPUMEMTRACE_USAGE);
	assert_null(a.json);
	assert_non_null(strstr(a.sentence, words));
	gpumemtrace_answer_free(&a);
}

static void what_cannot_be_answered(void **state)
{
	struct gpumemtrace *r = open_file(OLD), *none;
	struct gpumemtrace_answer a;
	struct ArrowArrayStream s;

	(void)state;
	assert_int_equal(gpumemtrace_open("/no/such", &none, &a), GPUMEMTRACE_UNREADABLE);
	assert_non_null(strstr(a.sentence, "/no/such"));
	gpumemtrace_answer_free(&a);
	assert_int_equal(gpumemtrace_ask(&r, 1, "oom", NULL, &a), GPUMEMTRACE_CHECK);
	assert_null(a.json);
	assert_non_null(strstr(a.sentence, "memory did not run out"));
	gpumemtrace_answer_free(&a);
	assert_refused(r, 1, "run", NULL, "no question");
	assert_refused(r, 1, "diff", NULL, "not asked of 1");
	assert_refused(r, 2, "report", NULL, "not asked of 2");
	assert_refused(r, 0, "check", NULL, "not asked of 0");
	assert_refused(r, 1, "live", (const char *[]){ "--at", "noon", NULL }, "noon");
	assert_refused(r, 1, "report", (const char *[]){ "--help", NULL }, "command line");
	assert_refused(r, 1, "report", (const char *[]){ NEW, NULL }, "more files");
	assert_int_equal(gpumemtrace_table(r, "blocks", NULL, &s, &a), GPUMEMTRACE_USAGE);
	gpumemtrace_answer_free(&a);
	assert_int_equal(gpumemtrace_table(r, "events", "", &s, &a), GPUMEMTRACE_USAGE);
	gpumemtrace_answer_free(&a);
	gpumemtrace_close(r);
	gpumemtrace_close(NULL);
}

/* Rows until the end. */
static int64_t read_all(struct ArrowArrayStream *s, int64_t columns)
{
	struct ArrowArray a;
	int64_t rows = 0;

	while (!s->get_next(s, &a) && a.release) {
		assert_int_equal(a.n_children, columns);
		rows += a.length;
		a.release(&a);
	}
	assert_null(s->get_last_error(s));
	return rows;
}

static struct ArrowArrayStream table(struct gpumemtrace *r, const char *name, const char *columns)
{
	struct ArrowArrayStream s;
	struct gpumemtrace_answer a;

	assert_int_equal(gpumemtrace_table(r, name, columns, &s, &a), GPUMEMTRACE_OK);
	return s;
}

static void tables_outlive_their_recording(void **state)
{
	struct gpumemtrace *r = open_file(NEW);
	struct ArrowArrayStream events = table(r, "events", NULL),
				few = table(r, "events", "size,kind");
	struct ArrowArrayStream blocks = table(r, "allocations", NULL),
				unread = table(r, "allocations", "class");
	struct ArrowSchema schema, child;
	struct ArrowArray a, size;
	char *report = ask_json(&r, 1, "report"), words[40];

	(void)state;
	assert_int_equal(few.get_schema(&few, &schema), 0);
	assert_int_equal(schema.n_children, 2);
	assert_string_equal(schema.children[1]->name, "kind");
	child = *schema.children[0]; /* moved out, and released last */
	schema.children[0]->release = NULL;
	schema.release(&schema);
	assert_string_equal(child.name, "size");
	child.release(&child);
	assert_int_equal(few.get_next(&few, &a), 0);
	size = *a.children[0];
	a.children[0]->release = NULL;
	a.release(&a);
	few.release(&few);
	gpumemtrace_close(r);
	snprintf(words, sizeof(words), "\"events\":%lld,", (long long)read_all(&events, 15));
	assert_non_null(strstr(report, words));
	snprintf(words, sizeof(words), "\"allocs\":%lld,", (long long)read_all(&blocks, 20));
	assert_non_null(strstr(report, words));
	events.release(&events);
	blocks.release(&blocks);
	unread.release(&unread);
	assert_int_equal(size.n_buffers, 2);
	size.release(&size);
	free(report);
}

static void columns_of_the_caller(void **state)
{
	static const uint64_t numbers[] = { 1, 0, 3 };
	static const int32_t ends[] = { 0, 1, 1, 3 };
	static const uint8_t valid = 5;
	const struct gpumemtrace_column columns[] = {
		{ "n", "L", 1, { &valid, NULL, numbers }, { 1, 0, sizeof(numbers) } },
		{ "s", "u", 0, { NULL, ends, "abc" }, { 0, sizeof(ends), 3 } },
	};
	struct ArrowArrayStream s, unread;
	struct gpumemtrace_answer answer;
	struct ArrowArray a;

	(void)state;
	assert_int_equal(gpumemtrace_columns(columns, 2, 3, &s, &answer), 0);
	assert_int_equal(gpumemtrace_columns(columns, 2, 3, &unread, &answer), 0);
	unread.release(&unread);
	assert_int_equal(s.get_next(&s, &a), 0);
	assert_int_equal(a.children[0]->null_count, 1);
	assert_int_equal(((const uint64_t *)a.children[0]->buffers[1])[2], 3);
	assert_memory_equal(a.children[1]->buffers[2], "abc", 3);
	assert_null(a.children[1]->buffers[0]);
	a.release(&a);
	assert_int_equal(read_all(&s, 2), 0);
	s.release(&s);
}

struct asker {
	struct gpumemtrace *r[2];
	char *expected, *both;
};

static void *ask_again(void *ctx)
{
	struct asker *x = ctx;

	for (int i = 0; i < 4; i++) {
		struct ArrowArrayStream s = table(x->r[1], "events", "seq");
		char *again = ask_json(&x->r[1], 1, "report"), *both = ask_json(x->r, 2, "diff");

		assert_string_equal(again, x->expected);
		assert_string_equal(both, x->both);
		assert_true(read_all(&s, 1) > 0);
		s.release(&s);
		free(again);
		free(both);
	}
	return NULL;
}

static void threads_take_turns(void **state)
{
	struct asker x = { .r = { open_file(OLD), open_file(NEW) } },
		     y = { .r = { x.r[0], x.r[1] } };
	pthread_t t[3];

	(void)state;
	x.expected = y.expected = ask_json(&x.r[1], 1, "report");
	x.both = y.both = ask_json(x.r, 2, "diff");
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask_again, i % 2 ? &y : &x), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	free(x.expected);
	free(x.both);
	gpumemtrace_close(x.r[0]);
	gpumemtrace_close(x.r[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_do_not_depend_on_the_order),
		cmocka_unit_test(two_recordings),
		cmocka_unit_test(bytes_are_read_like_the_file),
		cmocka_unit_test(what_cannot_be_answered),
		cmocka_unit_test(tables_outlive_their_recording),
		cmocka_unit_test(columns_of_the_caller),
		cmocka_unit_test(threads_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
